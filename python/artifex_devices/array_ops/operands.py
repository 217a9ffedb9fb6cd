# SPDX-License-Identifier: Apache-2.0
"""What functions take and give: operands as arrays, results to `out`."""

from __future__ import annotations

from typing import Any

import numpy as np

from artifex_devices._core import Array

__all__ = ["as_operand", "deliver"]


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
            f"or a number, got {x!r}; convert it first by np.asarray(x, dtype=...)"
        )
    return array


def deliver(operation: str, result: Array, out: Any) -> Any:
    """The result, or `out` once the result is brought there.

    Raises:
        TypeError: out is no ndarray, or cannot hold the dtype.
        ValueError: out has another shape.
    """
    if isinstance(out, tuple) and len(out) == 1:
        (out,) = out
    if out is None:
        return result
    if not isinstance(out, np.ndarray):
        raise TypeError(
            f"{operation}: out is no ndarray; Arrays do not change: expected an ndarray to bring the result to, got "
            f"{type(out).__name__}; leave out away and use the result"
        )
    if out.shape != result.shape:
        raise ValueError(
            f"{operation}: out has another shape than the result; expected {result.shape}, got {out.shape}; make it by "
            f"np.empty({result.shape}, dtype)"
        )
    np.copyto(out, np.asarray(result), casting="same_kind")
    return out
