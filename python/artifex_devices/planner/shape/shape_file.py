# SPDX-License-Identifier: Apache-2.0
"""Shapes described in a TOML file."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.toml import all_mistakes, key_text, line_text, read_toml, unprintable
from artifex_devices.planner.shape.transformer import TransformerShape

_NOT_IN_FILES = ("source", "notes", "parameter_bytes")
_WANTED = {
    "str": "a string", "int": "an integer", "bool": "true or false", "float": "a number",
    "tuple[str, ...]": "an array of strings",
}  # fmt: skip


def shape_of_file(operation: str, path: str) -> TransformerShape:
    """Returns the shape that a TOML file describes; its keys are the fields of a TransformerShape.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is not TOML, or has wrong keys or values; all mistakes at once, with their lines.
    """
    entries, text = read_toml(operation, path)
    known = {field.name: field for field in fields(TransformerShape) if field.name not in _NOT_IN_FILES}
    wrong = []
    for key, value in entries.items():
        if key not in known:
            wrong.append(f"{line_text(text, key)}{key_text(key)} is not a key{did_you_mean(key, known)}")
            continue
        kind = str(known[key].type)
        if not _fits(kind, value):
            wrong.append(f"{line_text(text, key)}{key} is {value!r}; expected {_WANTED[kind]}")
        else:
            wrong += unprintable(value, text, key)
    needed = [name for name, field in known.items() if field.default is MISSING and name != "name"]
    wrong += [f"{name} is missing" for name in needed if name not in entries]
    if wrong:
        problem = f"in {path}: {all_mistakes(wrong)}"
        raise ValueError(f"{operation}: {problem}; expected {', '.join(known)}; correct the file")
    try:
        given: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in entries.items()
        }
        return TransformerShape(**{"name": Path(path).stem, **given}, source=path)
    except ValueError as error:
        raise ValueError(f"{operation}: in {path}: {error}") from None


def _fits(kind: str, value: object) -> bool:
    """Returns whether a value of a file has the type of a field."""
    match kind:
        case "int" | "float":
            return isinstance(value, int if kind == "int" else (int, float)) and not isinstance(value, bool)
        case "tuple[str, ...]":
            return isinstance(value, list) and all(isinstance(each, str) for each in value)
    return isinstance(value, str if kind == "str" else bool)
