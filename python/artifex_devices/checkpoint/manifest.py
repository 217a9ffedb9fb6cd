# SPDX-License-Identifier: Apache-2.0
"""checkpoint.json: shapes and dtypes of the arrays of a checkpoint, and its Python values.

A folder is a checkpoint of this package if it has this file. docs/formats/checkpoint.md describes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from artifex_devices import _core
from artifex_devices._base.safe_repr import safe_repr

FILE = "checkpoint.json"
_FORMAT = "artifex_devices.checkpoint"
_VERSION = 1
_MAX_BYTES = 1 << 28

# For each type of Python values: its text, and the value of a text.
_VALUES: dict[type, tuple[Callable[[Any], str], Callable[[str], Any]]] = {
    bool: (str, lambda text: {"True": True, "False": False}[text]),
    int: (hex, lambda text: int(text, 16)),
    float: (float.hex, float.fromhex),
    complex: (lambda value: f"{value.real.hex()} {value.imag.hex()}", lambda text: complex(*_floats(text))),
    str: (str, str),
}
VALUE_TYPES = tuple(_VALUES)


@dataclass(frozen=True)
class Manifest:
    """The contents of checkpoint.json."""

    arrays: dict[str, tuple[tuple[int, ...], np.dtype[Any]]]
    values: dict[str, Any]
    process_count: int


def write(folder: Path, manifest: Manifest) -> None:
    """Writes the file of a folder, and waits for the storage."""
    arrays = {name: {"shape": list(shape), "dtype": dtype.name} for name, (shape, dtype) in manifest.arrays.items()}
    values = {
        name: {"type": type(value).__name__, "text": _VALUES[type(value)][0](value)}
        for name, value in manifest.values.items()
    }
    document = {
        "format": _FORMAT,
        "version": _VERSION,
        "process_count": manifest.process_count,
        "arrays": arrays,
        "values": values,
    }
    with (folder / FILE).open("x", encoding="utf-8") as file:
        file.write(json.dumps(document, indent=1) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read(operation: str, folder: Path) -> Manifest:
    """Reads the file of a folder.

    Raises:
        OSError: It cannot be read.
        ValueError: It is damaged, or of a later version.
    """
    path = folder / FILE
    with path.open("rb") as file:
        text = file.read(_MAX_BYTES + 1)
    if len(text) > _MAX_BYTES:
        raise _damaged(operation, path, f"has more than {_MAX_BYTES} bytes")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise _damaged(operation, path, "is not JSON") from None
    version = document.get("version") if isinstance(document, dict) else None
    if not isinstance(document, dict) or document.get("format") != _FORMAT or type(version) is not int:
        raise _damaged(operation, path, f"does not have the format {_FORMAT}")
    if version > _VERSION:
        raise ValueError(
            f"{operation}: {str(path)!r} has version {version}; expected at most {_VERSION}; "
            "update with `pip install -U artifex_devices`"
        )
    try:
        count = document["process_count"]
        if type(count) is not int or count < 1:
            raise ValueError(count)
        return Manifest(
            {name: _array(row) for name, row in document["arrays"].items()},
            {name: _value(row) for name, row in document["values"].items()},
            count,
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, MemoryError) as error:
        raise _damaged(operation, path, f"has an entry that is not valid: {safe_repr(error)}") from None


def _array(row: dict[str, Any]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    shape = row["shape"]
    if (
        not isinstance(shape, list)
        or len(shape) > 64
        or not all(type(size) is int and 0 <= size < 2**63 for size in shape)
    ):
        raise ValueError(shape)
    if not isinstance(row["dtype"], str):
        raise ValueError(row["dtype"])
    return tuple(shape), _core._dtype_from_name(row["dtype"])


def _value(row: dict[str, Any]) -> Any:
    kinds = {kind.__name__: read for kind, (_, read) in _VALUES.items()}
    if not isinstance(row["text"], str):
        raise ValueError(row["text"])
    return kinds[row["type"]](row["text"])


def _floats(text: str) -> tuple[float, float]:
    real, imaginary = text.split(" ")
    return float.fromhex(real), float.fromhex(imaginary)


def _damaged(operation: str, path: Path, what: str) -> ValueError:
    return ValueError(
        f"{operation}: {str(path)!r} {what}; expected a file that checkpoint.save wrote; restore another checkpoint"
    )
