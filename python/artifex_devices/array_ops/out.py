# SPDX-License-Identifier: Apache-2.0
"""`out=` of NumPy's functions: an ndarray to bring the result to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._core import Array
from artifex_devices.array_ops.reading import Source

__all__ = ["deliver", "host_target"]


def host_target(operation: str, out: Any) -> NDArray[Any] | None:
    """`out` as NumPy takes it, also as a tuple of one; None where there is none.

    Raises:
        TypeError: It is no ndarray.
    """
    if isinstance(out, tuple) and len(out) == 1:
        (out,) = out
    if out is None or isinstance(out, np.ndarray):
        return out
    raise TypeError(
        f"{operation}: out is no ndarray; Arrays do not change: expected an ndarray to bring the result to, got "
        f"{type(out).__name__}; leave out away and use the result"
    )


def deliver(operation: str, result: Array, out: Any) -> Any:
    """The result, or `out` once the result is brought there.

    Raises:
        TypeError: out is no ndarray, or cannot hold the dtype.
        ValueError: out has another shape.
    """
    target = host_target(operation, out)
    if target is None:
        return result
    if target.shape != result.shape:
        raise ValueError(
            f"{operation}: out has another shape than the result; expected {result.shape}, got {target.shape}; make it "
            f"by np.empty({result.shape}, dtype)"
        )
    if not np.can_cast(result.dtype, target.dtype, "same_kind"):
        raise TypeError(
            f"{operation}: out of dtype {target.dtype} cannot hold the result; expected {result.dtype}, got "
            f"{target.dtype}; make it by np.empty({result.shape}, np.{result.dtype})"
        )
    _core._check_transfer("device_to_host", False, result.shape, result.dtype, result.sharding, "host", operation)
    whole = tuple(slice(0, size, 1) for size in result.shape)
    Source(operation, result, result.sharding).copy_box(target, whole, 0)
    return target
