# SPDX-License-Identifier: Apache-2.0
"""Numbers that callers give, as Python numbers."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

_LIMIT = 2**62


def plain(value: object) -> Any:
    """Returns the Python number or bool for a NumPy scalar, and other values unchanged.

    Example:
        >>> plain(np.int64(8)), plain(np.float32(0.5)), plain("8")
        (8, 0.5, '8')
    """
    return value.item() if isinstance(value, (np.bool_, np.integer, np.floating)) else value


def make_plain(part: object) -> None:
    """Replaces NumPy scalars in the fields of a frozen dataclass, also in tuples."""
    for name, value in vars(part).items():
        object.__setattr__(part, name, tuple(map(plain, value)) if isinstance(value, tuple) else plain(value))


def is_count(value: object, minimum: int = 1) -> TypeGuard[int]:
    """Returns whether the value is an int from `minimum` to below 2**62."""
    return is_number(value, int) and minimum <= value < _LIMIT


def is_number(value: object, *kinds: type[float]) -> TypeGuard[float]:
    """Returns whether the value is of one of the kinds, no bool, and at most 2**62."""
    return isinstance(value, kinds) and not isinstance(value, bool) and abs(value) <= _LIMIT
