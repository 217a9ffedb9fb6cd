# SPDX-License-Identifier: Apache-2.0
"""Arguments that NumPy's functions share: operands, axis, where and out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices._array_ops.core.blocks import allocate, check_host_operand
from artifex_devices._array_ops.core.operand_sharding import (
    OperandDevices,
    common_devices,
    sharding_with,
)
from artifex_devices._array_ops.core.reading import Source
from artifex_devices._base.argument_types import Axes, Casting, Operand
from artifex_devices._base.checks import MAX_DIMENSIONS, bounded_list, failure
from artifex_devices._base.clearable_cache import clearable_cache
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array, internal

_SHORTER = "give one for each dimension"


def operand(operation: str, x: object) -> Any:
    """Returns an operand of an element-wise function: an Array, an ndarray or a Python number; others raise."""
    kind = type(x)
    if kind is Array or kind is np.ndarray or kind in (bool, int, float, complex) or isinstance(x, np.generic):
        return x
    return as_operand(operation, x)


def as_operand(operation: str, x: object) -> Operand:
    """Returns an Array unchanged, anything else as an ndarray of numbers without a mask."""
    if isinstance(x, (Array, np.ndarray)):
        check_unmasked(operation, x, "an operand")
        return x
    array = np.asarray(x)
    if array.dtype == object:
        raise failure(
            TypeError,
            operation,
            f"an operand of type {type(x).__name__} is not an array of numbers",
            expected="an Array, an ndarray or a number",
            got=safe_repr(x),
            fix="convert it first by np.asarray(x, dtype=...)",
        )
    return array


def array_operand(operation: str, x: object) -> Array:
    """Returns x; raises TypeError if it is not an Array."""
    if not isinstance(x, Array):
        raise failure(
            TypeError,
            operation,
            "the operand is not an Array while another argument is one",
            expected="an Array",
            got=type(x).__name__,
            fix="place it first by device_put, or pass np.asarray(other)",
        )
    return x


def as_array(operation: str, x: object, operands: Sequence[Any]) -> Array:
    """Returns x if it is an Array; replicates anything else on the devices of the Arrays among the operands."""
    if isinstance(x, Array):
        return x
    devices = common_devices(operation, [y for y in operands if isinstance(y, Array)])
    value = np.asarray(operand(operation, x))
    check_host_operand(operation, value, sharding_with(devices.sharding, ()))
    return replicated_array(operation, value, devices)


def replicated_array(operation: str, value: NDArray[Any], devices: OperandDevices | Array) -> Array:
    """Returns an Array with the elements of an ndarray, replicated on `devices`."""
    sharding = sharding_with(devices.sharding, ())
    array, buffers = allocate(operation, value.shape, value.dtype, sharding, committed=devices.committed)
    for buffer in buffers:
        buffer[...] = value
    return array


def on_host(operation: str, x: object, name: str) -> NDArray[Any]:
    """Converts an argument that decides what an operation does to an ndarray.

    An Array on a GPU is read by an implicit transfer. The error of a transfer guard says how to read it first; `name`
    is the variable in that text.
    """
    if isinstance(x, Array):
        value: NDArray[Any] = internal.host_value(x, operation, f"read {name} first: {name} = ad.device_get({name})")
        return value
    return np.asarray(x)


def check_unmasked(operation: str, x: object, place: str) -> None:
    """Refuses masked arrays, because they would lose their masks silently; `place` is the subject of the error."""
    if type(x) is not np.ndarray and isinstance(x, np.ndarray) and isinstance(x, np.ma.MaskedArray):
        raise masked_array_error(operation, place)


def masked_array_error(operation: str, place: str) -> ValueError:
    """Returns the error for an argument that is a masked array."""
    return failure(
        ValueError,
        operation,
        f"{place} is a masked array",
        expected="an ndarray, as a mask has no place here",
        fix="give x.filled(value), or x.data and x.mask separately",
    )


def where_mask(operation: str, where: object) -> Operand:
    """Returns the mask of `where=`, an Array or ndarray of bools. NumPy converts lists and numbers, but not arrays."""
    if isinstance(where, (Array, np.ndarray)):
        check_unmasked(operation, where, "where")
        if where.dtype != bool:
            raise failure(
                TypeError,
                operation,
                f"where has dtype {where.dtype}",
                expected="bool",
                got=f"an array of {where.dtype}",
                fix="compare it: where=mask != 0",
            )
        return where
    return np.asarray(where, bool)


def check_order(operation: str, order: object) -> None:
    """Refuses `order=` that asks for another than row-major order."""
    if order not in ("K", "A", "C"):
        raise failure(
            TypeError,
            operation,
            "order has no meaning on Arrays",
            expected="'K', 'A' or 'C'",
            got=safe_repr(order),
            fix="leave it out",
        )


def one_axis(operation: str, axis: int, ndim: int) -> int:
    """Returns the dimension that `axis` means, for functions that prefix NumPy's error with their name."""
    return np.lib.array_utils.normalize_axis_index(axis, ndim, operation)


def size_tuple(operation: str, shape: object, name: str = "shape") -> tuple[Any, ...]:
    """Returns the sizes that `shape` means: an int, or an iterable, which may have no end."""
    return tuple(bounded_list(operation, name, shape, MAX_DIMENSIONS, _SHORTER)) if np.iterable(shape) else (shape,)


def axis_tuple(
    operation: str,
    axis: int | Iterable[int] | None,
    ndim: int,
    name: str | None = None,
    *,
    allow_duplicate: bool = False,
) -> tuple[int, ...]:
    """Does what NumPy's normalize_axis_tuple does, also for an iterable, which may have no end."""
    axes: Any = bounded_list(operation, name or "axis", axis, MAX_DIMENSIONS, _SHORTER) if np.iterable(axis) else axis
    return np.lib.array_utils.normalize_axis_tuple(axes, ndim, name, allow_duplicate)


def normal_axes(axis: Axes, ndim: int, *, scalar_has_axis: bool = True) -> tuple[int, ...]:
    """Returns the dimensions that `axis` means, ascending; all for None.

    NumPy's reductions by ufuncs take the axes 0 and -1 of a scalar too, its other ones do not.
    """
    if axis is None:
        return tuple(range(ndim))
    if ndim == 0 and scalar_has_axis and axis in (0, -1):
        return ()
    return tuple(sorted(axis_tuple("reduction", axis, ndim)))


def refuse_bool_axis(operation: str, axis: object) -> None:
    """Refuses bools as axes, as NumPy's functions in C do; NumPy's functions in Python take True as 1."""
    if axis is None or type(axis) is int:
        return
    for one in axis if isinstance(axis, tuple) else (axis,):
        if isinstance(one, (bool, np.bool_)):
            raise TypeError(f"{operation}: an axis is a bool; expected an integer, got {axis}; give axis={int(one)}")


def host_target(operation: str, out: object) -> NDArray[Any] | None:
    """Returns `out` as NumPy takes it, also as a tuple of one: None, or an ndarray that can be written."""
    if isinstance(out, tuple) and len(out) == 1:
        (out,) = out
    if out is None:
        return None
    if isinstance(out, np.ndarray):
        check_target(operation, out)
        return out
    raise TypeError(
        f"{operation}: out is not an ndarray; Arrays are immutable: expected an ndarray to write the result to, got "
        f"{type(out).__name__}; leave out away and use the result"
    )


def check_target(operation: str, out: NDArray[Any]) -> None:
    """Refuses masked and read-only ndarrays, also without elements."""
    check_unmasked(operation, out, "out")
    if not out.flags.writeable:
        raise failure(
            ValueError,
            operation,
            "out is read-only",
            expected="an ndarray to write to",
            got=f"one of shape {out.shape} with flags.writeable False",
            fix="give np.empty_like(out)",
        )


@clearable_cache(maxsize=1024)
def check_ufunc_out(
    ufunc: np.ufunc, kinds: tuple[Any, ...], out_dtypes: tuple[Any, ...], options: tuple[tuple[str, Any], ...]
) -> None:
    """Raises NumPy's TypeError if results cannot be cast to `out`; a call without elements would not notice.

    `kinds` are the dtypes of the operands, or the types of Python numbers.
    """
    samples = [kind(1) if isinstance(kind, type) else np.ones(1, kind)[:0] for kind in kinds]
    ufunc(*samples, out=tuple(np.empty(0, dtype) for dtype in out_dtypes), **dict(options))


@clearable_cache(maxsize=1024)
def check_reduction_out(
    function: Callable[..., Any],
    kind: Any,
    ndim: int,
    axes: tuple[int, ...],
    keepdims: bool,
    out_dtype: Any,
    options: tuple[tuple[str, Any], ...] = (),
) -> None:
    """Raises NumPy's error if a reduction of one element cannot be written to an `out` of this dtype."""
    out = np.empty((1,) * (ndim if keepdims else ndim - len(axes)), out_dtype)
    with np.errstate(all="ignore"):
        function(np.ones((1,) * ndim, kind), axis=axes, out=out, keepdims=keepdims, **dict(options))


@clearable_cache(maxsize=1024)
def loop_dtype(ufunc: np.ufunc, kind: Any, out_dtype: Any) -> Any:
    """Returns the dtype in which NumPy reduces or accumulates if `out` is given and dtype is not: it depends on out."""
    return ufunc.resolve_dtypes((out_dtype, kind, None), casting="unsafe", reduction=True)[0]


def deliver(operation: str, result: Array, out: object, casting: Casting = "same_kind") -> Operand:
    """Returns the result, or `out` after the result has been written to it."""
    target = host_target(operation, out)
    if target is None:
        return result
    if target.shape != result.shape:
        raise failure(
            ValueError,
            operation,
            "out has another shape than the result",
            expected=result.shape,
            got=target.shape,
            fix=f"create it by np.empty({result.shape}, dtype)",
        )
    if not np.can_cast(result.dtype, target.dtype, casting):
        raise failure(
            TypeError,
            operation,
            f"out of dtype {target.dtype} cannot hold the result",
            expected=result.dtype,
            got=target.dtype,
            fix=f"create it by np.empty({result.shape}, np.{result.dtype})",
        )
    internal.host_result(result.sharding, result.shape, result.dtype, operation)
    everything = tuple(slice(0, size, 1) for size in result.shape)
    Source(operation, result, result.sharding).copy_box(target, everything, 0)
    return target
