# SPDX-License-Identifier: Apache-2.0
"""The files _METADATA and _strings.json of an Orbax checkpoint: names of the arrays, and texts."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any

from artifex_devices._base.checks import failure
from artifex_devices._base.regular_file import read_regular_file
from artifex_devices._base.safe_repr import safe_repr

FILE = "_METADATA"
_STRINGS = "_strings.json"
_MAX_BYTES = 1 << 28
_ARRAYS = ("jax.Array", "np.ndarray", "scalar")  # as Orbax 0.12 names the types of leaves


@dataclass
class TreeMetadata:
    """What the metadata says.

    Attributes:
        names: Names of the arrays: the keys of their path with dots, as they are stored.
        texts: Texts, by name.
        left_out: Names of None and of empty containers.
        is_zarr3: Whether arrays are in the format Zarr 3, or None if no file says it.
        stores_fill_values: Whether chunks that only have the fill value are stored, so that a missing chunk is a loss.
    """

    names: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    is_zarr3: bool | None = None
    stores_fill_values: bool = False


def read_tree_metadata(operation: str, folder: str) -> TreeMetadata | None:
    """Returns the contents of _METADATA, or None if there is no such file, as in old checkpoints.

    Raises:
        ValueError: It is not metadata of Orbax, or has one name twice.
        OSError: It cannot be read.
    """
    document = _json(operation, f"{folder}/{FILE}")
    if document is None:
        return None
    found = TreeMetadata()
    seen = set()
    try:
        texts = None
        for entry in document["tree_metadata"].values():
            name = ".".join(str(key["key"]) for key in entry["key_metadata"])
            kind = entry["value_metadata"]["value_type"]
            if name in seen or not is_name_within(name):
                raise ValueError(f"the name {safe_repr(name)} occurs twice or leaves the folder")
            seen.add(name)
            if kind in _ARRAYS:
                found.names.append(name)
            elif kind == "string":
                texts = (_json(operation, f"{folder}/{_STRINGS}") or {}) if texts is None else texts
                found.texts[name] = str(texts[name])
            else:
                found.left_out.append(name)
        found.is_zarr3 = bool(document.get("use_zarr3", False))
        found.stores_fill_values = bool(document.get("store_array_data_equal_to_fill_value", False))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise _damaged(operation, f"{folder}/{FILE}", error) from None
    return found


def is_name_within(name: str) -> bool:
    """Returns whether a name, as a path in a folder, stays in it."""
    return bool(name) and not name.startswith("/") and "\0" not in name and ".." not in name.split("/")


def _json(operation: str, path: str) -> Any:
    if not os.path.lexists(path):
        return None
    try:
        document = json.loads(read_regular_file(path, _MAX_BYTES))
        if not isinstance(document, dict):
            raise ValueError("it is not an object")
    except (ValueError, RecursionError) as error:
        raise _damaged(operation, path, error) from None
    return document


def _damaged(operation: str, path: str, error: Exception) -> ValueError:
    return failure(
        ValueError,
        operation,
        f"{path!r} is not metadata of Orbax: {safe_repr(error)[:300]}",
        expected="the file that Orbax wrote",
        fix="copy the checkpoint again",
    )
