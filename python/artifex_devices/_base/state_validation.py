# SPDX-License-Identifier: Apache-2.0
"""Checks of stored values: a file or pickle may be of another version, or damaged. All raise ValueError."""

from __future__ import annotations

import dataclasses
from typing import Any

from artifex_devices._base.checks import failure
from artifex_devices._base.safe_repr import safe_repr

_MAX_TEXT = 1000


def checked_fields(value: object, names: set[str], what: str) -> dict[str, Any]:
    """Returns the value, a dict with these entries and no others."""
    if not isinstance(value, dict) or set(value) != names:
        raise ValueError(f"{what} does not have the entries {', '.join(sorted(names))}")
    return value


def checked_text(value: object, what: str) -> str:
    """Returns the value, a printable text of one line."""
    if not isinstance(value, str) or len(value) > _MAX_TEXT or not value.isprintable():
        raise ValueError(f"{what} is not a text of one line")
    return value


def checked_number(value: object, what: str, minimum: float, maximum: float) -> float:
    """Returns the value, a number in this range, both ends included."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not minimum <= value <= maximum:
        raise ValueError(f"{what} is not a number from {minimum:g} to {maximum:g}")
    return float(value)


def checked_count(value: object, what: str, minimum: int) -> int:
    """Returns the value, an integer from `minimum` to 2**53."""
    maximum = 2**53
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        raise ValueError(f"{what} is not an integer from {minimum} to {maximum}")
    return value


def checked_record(owner: type, value: object, what: str, **limits: Any) -> dict[str, Any]:
    """Returns the fields of the dataclass `owner`; checks only fields that are annotated with simple types.

    A str is a text of one line. `limits` has the smallest count of an int, which is 1 by default, and the smallest and
    largest number of each float.
    """
    fields = dict(checked_fields(value, {field.name for field in dataclasses.fields(owner)}, what))
    for field in dataclasses.fields(owner):
        name, entry = field.name, fields[field.name]
        kind, _, optional = str(field.type).partition(" | ")
        if entry is None and optional:
            continue
        if kind == "str":
            checked_text(entry, name)
        elif kind == "bool" and not isinstance(entry, bool):
            raise ValueError(f"{name} is not a bool")
        elif kind == "int":
            checked_count(entry, name, limits.get(name, 1))
        elif kind == "float":
            fields[name] = checked_number(entry, name, *limits[name])
    return fields


def checked_state(owner: type, state: object, **types: type) -> dict[str, Any]:
    """Returns the state of a pickled dataclass, which must have exactly its fields; `types` names fields to check."""
    names = {field.name for field in dataclasses.fields(owner)}
    if not isinstance(state, dict) or set(state) != names:
        found = ", ".join(map(safe_repr, state)) if isinstance(state, dict) else f"a {type(state).__name__}"
        raise failure(
            ValueError,
            owner.__name__,
            f"the pickle's state is {found[:_MAX_TEXT]}",
            expected=f"a dict with {', '.join(sorted(names))}",
            fix="pickle it again with this version",
        )
    wrong = [name for name, kind in types.items() if not isinstance(state[name], kind)]
    if wrong:
        raise failure(
            ValueError,
            owner.__name__,
            f"the pickle's state has {', '.join(wrong)} of another type",
            expected=types[wrong[0]].__name__,
            fix="pickle it again with this version",
        )
    return state
