# SPDX-License-Identifier: Apache-2.0
"""`out=` of NumPy's functions: an ndarray to bring the result to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._array_ops.core.operands import check_unmasked
from artifex_devices._array_ops.core.reading import Source
from artifex_devices._base.clearable_cache import remembered
from artifex_devices._core import Array

__all__ = ["check_reduction_out", "check_target", "check_targets", "deliver", "host_target", "loop_dtype"]


def host_target(operation: str, out: Any) -> NDArray[Any] | None:
    """`out` as NumPy takes it, also as a tuple of one; None where there is none.

    Raises:
        TypeError: It is not an ndarray.
        ValueError: It is a masked array, or read-only.
    """
    if isinstance(out, tuple) and len(out) == 1:
        (out,) = out
    if out is None:
        return None
    if isinstance(out, np.ndarray):
        check_target(operation, out)
        return out
    raise TypeError(
        f"{operation}: out is no ndarray; Arrays do not change: expected an ndarray to bring the result to, got "
        f"{type(out).__name__}; leave out away and use the result"
    )


def check_target(operation: str, out: NDArray[Any]) -> None:
    """Checks that results can be written to an ndarray, also where they have no elements.

    Raises:
        ValueError: It is a masked array, or read-only.
    """
    check_unmasked(operation, out, "out")
    if not out.flags.writeable:
        raise ValueError(
            f"{operation}: out is read-only; expected an ndarray to write to, got one of shape {out.shape} with "
            "flags.writeable False; give np.empty_like(out)"
        )


def check_targets(
    ufunc: np.ufunc, kinds: tuple[Any, ...], targets: tuple[NDArray[Any], ...], options: tuple[tuple[str, Any], ...]
) -> None:
    """Checks `out` of a ufunc for operands of these dtypes, or of these types of Python numbers.

    Raises:
        TypeError: Results cannot be cast to it.
        ValueError: One is a masked array, or read-only.
    """
    for target in targets:
        check_target(ufunc.__name__, target)
    _check_dtypes(ufunc, kinds, tuple(target.dtype for target in targets), options)


@remembered(maxsize=1024)
def _check_dtypes(
    ufunc: np.ufunc, kinds: tuple[Any, ...], out_dtypes: tuple[Any, ...], options: tuple[tuple[str, Any], ...]
) -> None:
    """Raises NumPy's TypeError where results cannot be cast to `out`; a call without elements would not notice."""
    samples = [kind(1) if isinstance(kind, type) else np.ones(1, kind)[:0] for kind in kinds]
    ufunc(*samples, out=tuple(np.empty(0, dtype) for dtype in out_dtypes), **dict(options))


@remembered(maxsize=1024)
def check_reduction_out(
    function: Any,
    kind: Any,
    ndim: int,
    axes: tuple[int, ...],
    keepdims: bool,
    out_dtype: Any,
    options: tuple[tuple[str, Any], ...] = (),
) -> None:
    """Asks NumPy whether a reduction of one element can be written to an `out` of this dtype; raises its error."""
    out = np.empty((1,) * (ndim if keepdims else ndim - len(axes)), out_dtype)
    with np.errstate(all="ignore"):
        function(np.ones((1,) * ndim, kind), axis=axes, out=out, keepdims=keepdims, **dict(options))


@remembered(maxsize=1024)
def loop_dtype(ufunc: np.ufunc, kind: Any, out_dtype: Any) -> Any:
    """The dtype in which NumPy reduces or accumulates where `out` is given and dtype is not: out takes part."""
    return ufunc.resolve_dtypes((out_dtype, kind, None), casting="unsafe", reduction=True)[0]


def deliver(operation: str, result: Array, out: Any, casting: Any = "same_kind") -> Any:
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
    if not np.can_cast(result.dtype, target.dtype, casting):
        raise TypeError(
            f"{operation}: out of dtype {target.dtype} cannot hold the result; expected {result.dtype}, got "
            f"{target.dtype}; make it by np.empty({result.shape}, np.{result.dtype})"
        )
    _core._check_transfer("device_to_host", False, result.shape, result.dtype, result.sharding, "host", operation)
    whole = tuple(slice(0, size, 1) for size in result.shape)
    Source(operation, result, result.sharding).copy_box(target, whole, 0)
    return target
