# SPDX-License-Identifier: Apache-2.0
"""Entries of a kept measurement, checked: the file may be of another version, or damaged. All raise ValueError."""

from __future__ import annotations

from typing import Any

__all__ = ["checked_count", "checked_fields", "checked_number", "checked_text"]

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
