# SPDX-License-Identifier: Apache-2.0
"""Host arrays brought to Arrays and back, for functions that take both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._core import Array
from artifex_devices.array_ops.dispatch import operand
from artifex_devices.array_ops.layout import home_of, sharding_with
from artifex_devices.array_ops.reading import Source, assemble

__all__ = ["as_array", "bring"]


def as_array(operation: str, x: Any, operands: Sequence[Any]) -> Array:
    """X itself if it is an Array; else it is placed whole where the Arrays among the operands lie.

    Raises:
        RuntimeError: A transfer guard refuses it.
        TypeError: x is no array of numbers.
    """
    if isinstance(x, Array):
        return x
    home = home_of(operation, [y for y in operands if isinstance(y, Array)])
    value = operand(operation, x)
    value = value if isinstance(value, np.ndarray) else np.asarray(value)
    sharding = sharding_with(home.sharding, ((),) * value.ndim)
    source = Source(operation, value, sharding)
    return assemble(operation, value.shape, value.dtype, sharding, committed=home.committed, fill=source.copy_box)


def bring(operation: str, result: Array, out: Any) -> NDArray[Any]:
    """Writes an Array to the ndarray that was given as out=, and returns that.

    Raises:
        TypeError: out is no ndarray, or cannot hold the dtype.
        ValueError: out has another shape.
    """
    if not isinstance(out, np.ndarray):
        raise TypeError(
            f"{operation}: out is no ndarray, and Arrays do not change; expected an ndarray to bring the result to, "
            f"got {type(out).__name__}; leave out away and use the result"
        )
    if out.shape != result.shape:
        raise ValueError(
            f"{operation}: out has another shape than the result; expected {result.shape}, got {out.shape}; make it by "
            f"np.empty({result.shape}, dtype)"
        )
    if not np.can_cast(result.dtype, out.dtype, "same_kind"):
        raise TypeError(
            f"{operation}: out of dtype {out.dtype} cannot hold the result; expected {result.dtype}, got {out.dtype}; "
            f"make it by np.empty({result.shape}, np.{result.dtype})"
        )
    _core._check_transfer("device_to_host", False, result.shape, result.dtype, result.sharding, "host", operation)
    whole = tuple(slice(0, size, 1) for size in result.shape)
    Source(operation, result, result.sharding).copy_box(out, whole, 0)
    return out
