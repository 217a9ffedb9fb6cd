# SPDX-License-Identifier: Apache-2.0
"""Rates and latencies that something could have: seconds that are made of them stay finite."""

from __future__ import annotations

__all__ = ["RANGE_TEXT", "is_sane"]

_LEAST, _MOST = 1e-30, 1e30
RANGE_TEXT = "1e-30 to 1e30"
"""For errors."""


def is_sane(value: float) -> bool:
    """Whether a number is neither tiny nor huge. What is 0 or below is refused elsewhere, where it cannot be.

    Example:
        >>> is_sane(4.5e11), is_sane(0), is_sane(1e300), is_sane(1e-300)
        (True, True, False, False)
    """
    return value <= 0 or _LEAST <= value <= _MOST
