# SPDX-License-Identifier: Apache-2.0
"""New shapes and dtypes for the same bytes: reshape, ravel, squeeze, expand_dims and view."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Hashable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from artifex_devices import _core
from artifex_devices._array_ops.core.arguments import axis_tuple, refuse_bool_axis, size_tuple
from artifex_devices._array_ops.core.auto_axes import moved_over_auto
from artifex_devices._array_ops.core.blocks import Box, allocate, local_arrays, run_all, tiling
from artifex_devices._array_ops.core.operand_sharding import Spec, is_split, sharding_with, spec_of
from artifex_devices._array_ops.core.registry import implements, implements_each
from artifex_devices._base.argument_types import Axes, Shape
from artifex_devices._base.checks import failure
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array, internal
from artifex_devices.errors import ShardingTypeError


def same_bytes(operation: str, x: Array, shape: tuple[int, ...], spec: Spec) -> Array:
    """Returns x with another shape and spec on the same memory, if each device has the same elements in that order."""
    return internal.reinterpreted(x, shape, sharding_with(x.sharding, spec), operation)


@implements(np.reshape)
def reshape(a: Any, /, shape: Any, order: Literal["A", "C", "F"] | None = "C", *, copy: bool | None = None) -> Any:
    """Implements np.reshape: new dimensions take the sharding of the dimensions that they replace; shares memory."""
    if not isinstance(a, Array):
        return np.reshape(a, shape, order, copy=copy)
    check_order("reshape", order)
    shape = _full_shape(a, shape)
    if shape == a.shape:
        return a if not copy else np.copy(a)
    if copy is False:
        _check_row_major(a, shape)
    try:
        spec = internal.reshape_spec(a.sharding, a.shape, shape)
    except ShardingTypeError as refusal:
        if copy is False:
            raise
        kept = _kept_spec(a, shape)
        (a,) = moved_over_auto([(a, sharding_with(a.sharding, kept))], refusal)
        spec = internal.reshape_spec(a.sharding, a.shape, shape)
    result = same_bytes("reshape", a, shape, spec)
    return np.copy(result) if copy else result


def _kept_spec(a: Array, shape: tuple[int, ...]) -> Spec:
    """Returns the spec of a without the mesh axes with which it does not take another shape.

    It is empty for an Array that spans processes, because most callers read tiles of other devices then.
    """
    kept: list[tuple[Hashable, ...]] = [()] * a.ndim
    for d, axes in enumerate(spec_of(a) if a.is_fully_addressable else ()):
        kept[d] = axes
        try:
            internal.reshape_spec(sharding_with(a.sharding, tuple(kept)), a.shape, shape)
        except ShardingTypeError:
            kept[d] = ()
    return tuple(kept)


def _check_row_major(a: Array, shape: tuple[int, ...]) -> None:
    """Raises ValueError if another shape needs a copy, as NumPy does."""
    layout, order = a._pjrt_layout, tuple(range(a.ndim))
    if layout != _core.PjRtLayout(_core.Layout(order[::-1])):
        raise failure(
            ValueError,
            "reshape",
            f"copy=False, but an Array of shape {a.shape} stored as {layout} is copied for shape {shape}",
            expected="row-major memory",
            fix=f"leave copy out, or device_put(x, Format(Layout({order}), x.sharding)) first",
        )


def check_order(operation: str, order: str | None) -> None:
    """Refuses column-major order, because shards are row-major."""
    if order not in ("C", "A", "K", None):
        transposed = "np.reshape(x.T, shape)" if operation == "reshape" else "np.ravel(x.T)"
        raise failure(
            TypeError,
            operation,
            "shards of Arrays are row-major",
            expected="order 'C'",
            got=safe_repr(order),
            fix=f"transpose first: {transposed}",
        )


def _full_shape(a: Array, shape: Any) -> tuple[int, ...]:
    try:
        wanted = [operator.index(shape)]
    except TypeError:
        wanted = [operator.index(size) for size in size_tuple("reshape", shape)]
    holes = [d for d, size in enumerate(wanted) if size == -1]
    known = math.prod(size for size in wanted if size != -1)
    if len(holes) == 1 and known > 0 and a.size % known == 0:
        wanted[holes[0]] = a.size // known
    elif len(holes) > 1 or (holes and known == 0) or min(wanted, default=0) < 0 or known != a.size:
        raise failure(
            ValueError,
            "reshape",
            f"shape {tuple(wanted)} is not for {a.size} elements",
            expected=f"sizes whose product is {a.size}, at most one of them -1",
            got=f"an Array of shape {a.shape}",
        )
    return tuple(wanted)


@implements(np.ravel)
def ravel(a: ArrayLike, order: Literal["K", "A", "C", "F"] | None = "C") -> Any:
    """Implements np.ravel, as reshape to one dimension."""
    if not isinstance(a, Array):
        return np.ravel(a, order)
    check_order("ravel", order)
    return reshape(a, (a.size,))


@implements(np.squeeze)
def squeeze(a: Array, axis: Axes = None) -> Array:
    """Implements np.squeeze, on the same memory."""
    refuse_bool_axis("squeeze", axis)
    if axis is None:
        gone = {d for d, size in enumerate(a.shape) if size == 1}
    elif not a.ndim and axis in (0, -1):
        return a  # NumPy treats a number as one element
    else:
        gone = set(axis_tuple("squeeze", axis, a.ndim))
        long = sorted(d for d in gone if a.shape[d] != 1)
        if long:
            raise failure(
                ValueError,
                "squeeze",
                f"dimensions {long} are not of size 1",
                expected="axes of size 1",
                got=f"axis={axis} for shape {a.shape}",
                fix="leave them out",
            )
    if not gone:
        return a
    stay = [d for d in range(a.ndim) if d not in gone]
    spec = spec_of(a)
    cut = sorted(d for d in gone if is_split(a.sharding, spec[d]))
    if cut:
        refusal = failure(
            ShardingTypeError,
            "squeeze",
            f"dimensions {cut} of size 1 are sharded over {[spec[d] for d in cut]}: only one device has elements",
            expected="unsharded ones",
            got=a.sharding,
            fix="replicate it first: ad.reshard(x, ad.NamedSharding(x.sharding.mesh, ad.P()))",
        )
        kept = tuple(() if d in cut else axes for d, axes in enumerate(spec))
        (a,) = moved_over_auto([(a, sharding_with(a.sharding, kept))], refusal)
    return same_bytes("squeeze", a, tuple(a.shape[d] for d in stay), tuple(spec[d] for d in stay))


@implements(np.expand_dims)
def expand_dims(a: ArrayLike, axis: Shape) -> Any:
    """Implements np.expand_dims, on the same memory."""
    if not isinstance(a, Array):
        return np.expand_dims(a, axis)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    ndim = a.ndim + len(axes)
    new = axis_tuple("expand_dims", axes, ndim)
    old = iter(zip(a.shape, spec_of(a), strict=True))
    merged = [(1, ()) if d in new else next(old) for d in range(ndim)]
    return same_bytes("expand_dims", a, tuple(size for size, _ in merged), tuple(axes for _, axes in merged))


@implements_each(np.atleast_1d, np.atleast_2d, np.atleast_3d)
def _at_least(function: Callable[..., Any], *arrays: Any) -> Any:
    """Adds the new dimensions where NumPy adds them: in front, but the third one at the end."""
    ndim = (np.atleast_1d, np.atleast_2d, np.atleast_3d).index(function) + 1
    results = []
    for x in arrays:
        if not isinstance(x, Array):
            results.append(function(x))
        elif x.ndim >= ndim:
            results.append(x)
        else:
            results.append(expand_dims(x, tuple(range(ndim - x.ndim)) if ndim < 3 else ((0, 1, 2), (0, 2), 2)[x.ndim]))
    return results[0] if len(results) == 1 else tuple(results)


def view(x: Array, dtype: DTypeLike | None, kind: Any) -> Array:
    """Returns the bits of x as another dtype; `kind` is NumPy's argument `type`, which must be None."""
    if kind is not None:
        raise NotImplementedError("view: type is not None; expected a dtype alone; leave type out")
    if dtype is None:
        return x
    new = np.dtype(dtype)
    if new == x.dtype:
        return x
    shape = _shape_as(x, new)
    sharding = x.sharding
    own = tiling(sharding, x.shape, "view").boxes
    try:
        boxes = tiling(sharding, shape, "view").boxes
        fits = all(_bytes_of(a, x.dtype) == _bytes_of(b, new) for a, b in zip(own, boxes, strict=True))
    except ValueError:
        fits = False
    if not fits:
        raise failure(
            ShardingTypeError,
            "view",
            (
                f"the last dimension is sharded over {spec_of(x)[-1]}, and the bytes of a shard are not a multiple of "
                f"the {new.itemsize} of {new}"
            ),
            expected="shards of complete items",
            got=f"{x.sharding} for {x.shape} {x.dtype}",
            fix="replicate it first: ad.reshard(x, ad.NamedSharding(x.sharding.mesh, ad.P()))",
        )
    result, buffers = allocate("view", shape, new, sharding, committed=x.committed)
    tasks = [
        functools.partial(_copy, out, part)
        for out, part in zip(buffers, local_arrays("view", x, False, True), strict=True)
    ]
    run_all(tasks, 2 * x.nbytes)
    return result


def _shape_as(x: Array, new: np.dtype[Any]) -> tuple[int, ...]:
    if new.itemsize == x.dtype.itemsize:
        return x.shape
    if not x.ndim:
        raise failure(
            ValueError,
            "view",
            "an Array without dimensions keeps its item size",
            expected=f"a dtype of {x.dtype.itemsize} bytes",
            got=f"{new} of {new.itemsize}",
            fix="add a dimension first: x.reshape(1)",
        )
    nbytes = x.shape[-1] * x.dtype.itemsize
    if nbytes % new.itemsize:
        raise failure(
            ValueError,
            "view",
            f"the last dimension has {nbytes} bytes",
            expected=f"a multiple of the {new.itemsize} of {new}",
            got=f"shape {x.shape} of {x.dtype}",
            fix="choose a smaller dtype",
        )
    return (*x.shape[:-1], nbytes // new.itemsize)


def _bytes_of(box: Box, dtype: np.dtype[Any]) -> tuple[int, int]:
    """Returns the start and the stop of a box along the last dimension, in bytes."""
    return (box[-1].start * dtype.itemsize, box[-1].stop * dtype.itemsize) if box else (0, dtype.itemsize)


def _copy(out: NDArray[Any], part: NDArray[Any]) -> None:
    dense = np.asarray(part, order="C", like=part)
    if out.dtype == bool:
        np.not_equal(dense.view(np.uint8), 0, out=out)
    else:
        np.copyto(out, dense.view(out.dtype))
