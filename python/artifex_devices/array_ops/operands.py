# SPDX-License-Identifier: Apache-2.0
"""What functions take: operands as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from artifex_devices._core import Array
from artifex_devices.shown import shown

__all__ = ["as_operand"]


def as_operand(operation: str, x: Any) -> Any:
    """An Array as it is, anything else as an ndarray.

    Raises:
        TypeError: It is no array of numbers.
    """
    if isinstance(x, (Array, np.ndarray)):
        return x
    array = np.asarray(x)
    if array.dtype == object:
        raise TypeError(
            f"{operation}: an operand of type {type(x).__name__} is no array of numbers; expected an Array, an ndarray "
            f"or a number, got {shown(x)}; convert it first by np.asarray(x, dtype=...)"
        )
    return array
