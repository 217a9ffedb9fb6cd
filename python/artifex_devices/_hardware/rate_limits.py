# SPDX-License-Identifier: Apache-2.0
"""Limits of rates and latencies: seconds computed from values within them stay finite."""

from __future__ import annotations

_MIN, _MAX = 1e-30, 1e30
RANGE_TEXT = "1e-30 to 1e30"
"""The range as text, for errors."""


def is_sane(value: float) -> bool:
    """Returns whether a number is neither tiny nor huge. Numbers of 0 or below pass; other checks refuse them.

    Example:
        >>> is_sane(4.5e11), is_sane(0), is_sane(1e300), is_sane(1e-300)
        (True, True, False, False)
    """
    return value <= 0 or _MIN <= value <= _MAX
