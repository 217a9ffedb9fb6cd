# SPDX-License-Identifier: Apache-2.0
"""Entries of what was kept, checked: file or pickle may be of another version, or damaged. All raise ValueError."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from artifex_devices._base.safe_repr import shown

__all__ = ["checked_count", "checked_fields", "checked_number", "checked_record", "checked_state", "checked_text"]

_LONGEST_TEXT = 1000


def checked_fields(value: Any, names: set[str], what: str) -> dict[str, Any]:
    """A dict with these entries and no others."""
    if not isinstance(value, dict) or set(value) != names:
        raise ValueError(f"{what} has not the entries {', '.join(sorted(names))}")
    return value


def checked_text(value: Any, what: str) -> str:
    """A text that can be shown in a line."""
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT or not value.isprintable():
        raise ValueError(f"{what} is no text of one line")
    return value


def checked_number(value: Any, what: str, least: float, most: float) -> float:
    """A number in this range, both ends included."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise ValueError(f"{what} is no number from {least:g} to {most:g}")
    return float(value)


def checked_count(value: Any, what: str, least: int) -> int:
    """A whole number of at least so much."""
    most = 2**53
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{what} is no whole number from {least} to {most}")
    return value


def checked_record(
    owner: type, value: Any, what: str, rules: Mapping[str, Any], optional: Collection[str] = ()
) -> dict[str, Any]:
    """The fields of the dataclass `owner`, checked by rules; those in `optional` may be None.

    A rule is `str` (a text of one line), `bool`, an int (the smallest count) or a pair (smallest and largest number).
    """
    fields = dict(checked_fields(value, {field.name for field in dataclasses.fields(owner)}, what))
    for name, rule in rules.items():
        entry = fields[name]
        if entry is None and name in optional:
            continue
        if rule is str:
            checked_text(entry, name)
        elif rule is bool:
            if not isinstance(entry, bool):
                raise ValueError(f"{name} is not a bool")
        elif isinstance(rule, int):
            checked_count(entry, name, rule)
        else:
            fields[name] = checked_number(entry, name, *rule)
    return fields


def checked_state(owner: type, state: Any, **types: type) -> dict[str, Any]:
    """The state of a pickle of a dataclass: all of its fields and no others, those named of that type."""
    names = {field.name for field in dataclasses.fields(owner)}
    if not isinstance(state, dict) or set(state) != names:
        given = ", ".join(map(shown, state)) if isinstance(state, dict) else f"a {type(state).__name__}"
        raise ValueError(
            f"{owner.__name__}: the pickle's state is {given[:_LONGEST_TEXT]}; expected a dict with "
            f"{', '.join(sorted(names))}; pickle it again with this version"
        )
    wrong = [name for name, kind in types.items() if not isinstance(state[name], kind)]
    if wrong:
        raise ValueError(
            f"{owner.__name__}: in the pickle's state {', '.join(wrong)} "
            f"{'is' if len(wrong) == 1 else 'are'} no {types[wrong[0]].__name__}; pickle it again with this version"
        )
    return state
