# SPDX-License-Identifier: Apache-2.0
"""checkpoint.json: shapes and dtypes of the arrays of a checkpoint, and its Python values.

A folder is a checkpoint of this package if it has this file. docs/formats/checkpoint.md describes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from artifex_devices._base.checks import failure
from artifex_devices._base.safe_repr import safe_repr

FILE = "checkpoint.json"
_FORMAT = "artifex_devices.checkpoint"
_VERSION = 1

# For each type of Python values: its text, and the value of a text.
_VALUES: dict[type, tuple[Callable[[Any], str], Callable[[str], Any]]] = {
    bool: (str, lambda text: {"True": True, "False": False}[text]),
    int: (hex, lambda text: int(text, 16)),
    float: (float.hex, float.fromhex),
    complex: (lambda value: f"{value.real.hex()} {value.imag.hex()}", lambda text: complex(*_floats(text))),
    str: (str, str),
}
VALUE_TYPES = tuple(_VALUES)
Value: TypeAlias = bool | int | float | complex | str  # a leaf other than an array


Path: TypeAlias = tuple[str | int, ...]  # keys of dicts as text, positions in lists and tuples


@dataclass(frozen=True)
class Manifest:
    """The contents of checkpoint.json."""

    arrays: dict[str, tuple[tuple[int, ...], np.dtype[Any]]]
    values: dict[str, Any]
    process_count: int
    paths: dict[str, Path]  # of the leaves whose path is not just their name


def write(folder: str, manifest: Manifest) -> None:
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
        **({"paths": manifest.paths} if manifest.paths else {}),
    }
    with open(f"{folder}/{FILE}", "x", encoding="utf-8") as file:
        file.write(json.dumps(document, indent=1) + "\n")
        file.flush()
        os.fsync(file.fileno())


def values_of(operation: str, path: str, text: str) -> dict[str, Any]:
    """Returns the Python values, by name, of their JSON in checkpoint.json, whose other parts the core reads."""
    kinds = {kind.__name__: read for kind, (_, read) in _VALUES.items()}

    def value(row: dict[str, Any]) -> Any:
        if not isinstance(row["text"], str):
            raise ValueError(row["text"])
        return kinds[row["type"]](row["text"])

    try:
        return {name: value(row) for name, row in json.loads(text).items()}
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, MemoryError) as error:
        raise damaged(operation, path, "value", error) from None


def paths_of(operation: str, path: str, text: str) -> dict[str, Path]:
    """Returns the paths, by name, of their JSON in checkpoint.json."""

    def entry(key: Any) -> str | int:
        if type(key) is not str and (type(key) is not int or key < 0):
            raise ValueError(key)
        return key

    try:
        found = {name: tuple(map(entry, keys)) for name, keys in json.loads(text).items()}
        if not all(found.values()):
            raise ValueError("an empty path")
        return found
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise damaged(operation, path, "path", error) from None


def value_text(value: Value, write: Callable[[Any], str]) -> str:
    """Returns write(value), or hexadecimal digits of an integer with more digits than Python writes in decimal."""
    try:
        return write(value)
    except ValueError:
        return hex(cast(int, value))


def damaged(operation: str, path: str, what: str, error: Exception) -> ValueError:
    """Returns the error for a part of checkpoint.json that `save` does not write."""
    return failure(
        ValueError,
        operation,
        f"{f'{path}/{FILE}'!r} has a {what} that is not valid: {safe_repr(error)}",
        expected="a file that checkpoint.save wrote",
        fix="restore another checkpoint",
    )


def _floats(text: str) -> tuple[float, float]:
    real, imaginary = text.split(" ")
    return float.fromhex(real), float.fromhex(imaginary)
