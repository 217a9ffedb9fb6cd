# SPDX-License-Identifier: Apache-2.0
"""Arguments that NumPy's functions share: operands, axis, where and out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._array_ops.core.blocks import allocate
from artifex_devices._array_ops.core.layout import Placement, common_placement, sharding_with, spec_of
from artifex_devices._array_ops.core.reading import Source, assemble
from artifex_devices._base.clearable_cache import remembered
from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Array, NamedSharding
from artifex_devices.errors import ShardingTypeError


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


def operand(operation: str, x: Any) -> Any:
    """An operand of an element-wise function: an Array, an ndarray or a Python number.

    Raises:
        TypeError: It is something else; the text says what.
        ValueError: It is a masked array.
    """
    kind = type(x)
    if kind is Array or kind is np.ndarray or kind in (bool, int, float, complex) or isinstance(x, np.generic):
        return x
    return as_operand(operation, x)


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


def array_operand(operation: str, x: Any) -> Array:
    """X, which must be an Array.

    Raises:
        TypeError: It is none: another argument was.
    """
    if not isinstance(x, Array):
        raise TypeError(
            f"{operation}: the operand is no Array while another argument is one; expected an Array, got "
            f"{type(x).__name__}; place it first by device_put, or pass np.asarray(other)"
        )
    return x


def normal_axes(axis: Any, ndim: int, *, scalar_has_axis: bool = True) -> tuple[int, ...]:
    """The dimensions that `axis` means, ascending; all for None.

    Without dimensions NumPy's reductions by ufuncs take the axes 0 and -1 too, its other ones do not.

    Raises:
        AxisError: One is out of bounds (a ValueError and an IndexError).
        ValueError: One is named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    if ndim == 0 and scalar_has_axis and axis in (0, -1):
        return ()
    return tuple(sorted(np.lib.array_utils.normalize_axis_tuple(axis, ndim)))


def refuse_bool_axis(operation: str, axis: Any) -> None:
    """Checks that no axis is a bool, for the functions that NumPy writes in C; those in Python take True as 1.

    Raises:
        TypeError: One is.
    """
    if axis is None or type(axis) is int:
        return
    for one in axis if isinstance(axis, tuple) else (axis,):
        if isinstance(one, (bool, np.bool_)):
            raise TypeError(f"{operation}: an axis is a bool; expected an integer, got {axis}; give axis={int(one)}")


def require_unsharded(operation: str, x: Array, axes: Sequence[int]) -> None:
    """Checks that no dimension of `axes` is cut.

    Raises:
        ShardingTypeError: One is; the text gives the sharding to move to (a ValueError).
    """
    spec = spec_of(x)
    wrong = [d for d in axes if spec[d]]
    if not wrong:
        return
    details = ", ".join(f"dimension {d} over {spec[d]}" for d in wrong)
    free = sharding_with(x.sharding, tuple(() if d in axes else names for d, names in enumerate(spec)))
    spec = free.spec if isinstance(free, NamedSharding) else free
    raise ShardingTypeError(
        f"{operation}: a dimension that it works along is cut; expected whole dimensions {tuple(axes)} of an Array of "
        f"shape {x.shape}, got {details}; move it first: reshard(x, NamedSharding(x.sharding.mesh, {spec})), or gather: "
        "np.asarray(x)"
    )


def replicated_array(
    operation: str, shape: tuple[int, ...], value: Any, dtype: Any, placement: Placement | Array
) -> Array:
    """An Array of one value, whole on each device of `placement`."""
    sharding = sharding_with(placement.sharding, ((),) * len(shape))
    array, buffers = allocate(operation, shape, dtype, sharding, committed=placement.committed)
    for buffer in buffers:
        buffer[...] = value
    return array


def as_array(operation: str, x: Any, operands: Sequence[Any]) -> Array:
    """X itself if it is an Array; else it is placed whole where the Arrays among the operands lie.

    Raises:
        RuntimeError: A transfer guard refuses it.
        TypeError: x is no array of numbers.
    """
    if isinstance(x, Array):
        return x
    placement = common_placement(operation, [y for y in operands if isinstance(y, Array)])
    value = operand(operation, x)
    value = value if isinstance(value, np.ndarray) else np.asarray(value)
    sharding = sharding_with(placement.sharding, ((),) * value.ndim)
    source = Source(operation, value, sharding)
    return assemble(operation, value.shape, value.dtype, sharding, committed=placement.committed, fill=source.copy_box)


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
