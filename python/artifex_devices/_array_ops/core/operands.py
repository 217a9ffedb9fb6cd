# SPDX-License-Identifier: Apache-2.0
"""What functions take: operands as arrays, masks of `where=`; masked arrays are refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Array

__all__ = ["as_operand", "check_unmasked", "masked_array_error", "where_mask"]


def as_operand(operation: str, x: Any) -> Any:
    """An Array as it is, anything else as an ndarray.

    Raises:
        TypeError: x is not an array of numbers.
        ValueError: x is a masked array.
    """
    if isinstance(x, (Array, np.ndarray)):
        check_unmasked(operation, x, "an operand")
        return x
    array = np.asarray(x)
    if array.dtype == object:
        raise TypeError(
            f"{operation}: an operand of type {type(x).__name__} is no array of numbers; expected an Array, an ndarray "
            f"or a number, got {shown(x)}; convert it first by np.asarray(x, dtype=...)"
        )
    return array


def check_unmasked(operation: str, x: Any, place: str) -> None:
    """Refuses masked arrays, whose masks would be lost silently.

    Args:
        operation: Name for the error.
        x: The value.
        place: Which argument it is, as the subject of the error's sentence.

    Raises:
        ValueError: x is a masked array.
    """
    if type(x) is not np.ndarray and isinstance(x, np.ndarray) and isinstance(x, np.ma.MaskedArray):
        raise masked_array_error(operation, place)


def masked_array_error(operation: str, place: str) -> ValueError:
    """The error for an argument that is a masked array."""
    return ValueError(
        f"{operation}: {place} is a masked array; expected an ndarray, as a mask has no place here; give "
        "x.filled(value), or x.data and x.mask separately"
    )


def where_mask(operation: str, where: Any) -> Any:
    """The mask of `where=`: an Array or an ndarray of bools. NumPy converts lists and numbers, but no arrays.

    Raises:
        TypeError: It is an array of another dtype.
        ValueError: It is a masked array.
    """
    if isinstance(where, (Array, np.ndarray)):
        check_unmasked(operation, where, "where")
        if where.dtype != bool:
            raise TypeError(
                f"{operation}: where has dtype {where.dtype}; expected bool, got an array of {where.dtype}; compare "
                "it: where=mask != 0"
            )
        return where
    return np.asarray(where, bool)
