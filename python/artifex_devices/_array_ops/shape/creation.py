# SPDX-License-Identifier: Apache-2.0
"""New Arrays like others (zeros_like and similar functions), and with their elements repeated: broadcast, tile, pad."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import ArrayLike, DTypeLike, NDArray

from artifex_devices._array_ops.core.arguments import as_array, check_order, on_host, size_tuple
from artifex_devices._array_ops.core.blocks import Box, allocate
from artifex_devices._array_ops.core.operand_sharding import is_split, sharding_with, spec_of
from artifex_devices._array_ops.core.per_block import apply_along
from artifex_devices._array_ops.core.reading import Source, assemble
from artifex_devices._array_ops.core.registry import implements
from artifex_devices._array_ops.shape.rearranging import copy_shards
from artifex_devices._array_ops.shape.reshaping import expand_dims, ravel
from artifex_devices._base.argument_types import Shape
from artifex_devices._base.checks import failure
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array, NamedSharding, Sharding, internal
from artifex_devices._placement.device_put import device_put
from artifex_devices._placement.target import resolve_target, sharding_of_new
from artifex_devices.layout import Format

ZERO = object()  # the value of zeros, for any dtype


def filled(operation: str, shape: Shape, value: Any, dtype: DTypeLike | None, device: Any) -> Array:
    """Returns a new Array full of one value, written on its own devices.

    `value` is a number, ZERO, or None for uninitialized memory. `device` is a target of device_put; a Sharding may be
    replaced as by `fitting`.
    """
    sizes = size_tuple(operation, shape)
    target = resolve_target(operation, device, "device")
    sharding = fitting(sharding_of_new(operation, target), sizes)
    array = _filled_at(operation, sizes, value, dtype, sharding, committed=target is not None)
    return device_put(array, target, donate=True) if isinstance(target, Format) else array


def fitting(device: Any, shape: tuple[int, ...]) -> Any:
    """Returns `device` as the place of a new Array; replicates on its mesh where a Sharding does not divide `shape`.

    So `device=x.device`, which is a Sharding where x is on several devices, takes any shape.
    """
    if not isinstance(device, NamedSharding):
        return device
    try:
        device.shard_shape(shape)
    except ValueError:
        return sharding_with(device, ())
    return device


def _filled_at(
    operation: str, shape: tuple[Any, ...], value: Any, dtype: DTypeLike | None, sharding: Sharding, *, committed: bool
) -> Array:
    if value is None:
        return allocate(operation, shape, np.dtype(dtype), sharding, committed=committed)[0]
    if value is ZERO:
        value = np.zeros((), dtype)  # some dtypes have no 0, but all have zero bits, as in NumPy

    def fill(out: NDArray[Any], box: Box, position: int) -> None:
        np.copyto(out, value, casting="unsafe")

    return assemble(operation, shape, np.dtype(dtype), sharding, committed=committed, fill=fill)


def _like(
    operation: str,
    value: Any,
    a: Array,
    dtype: DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: Shape | None = None,
    *,
    device: Any = None,
) -> Array:
    check_order(operation, order)
    kind = a.dtype if dtype is None else np.dtype(dtype)
    sizes = a.shape if shape is None else size_tuple(operation, shape)
    if device is None and sizes == a.shape:
        return _filled_at(operation, sizes, value, kind, a.sharding, committed=a.committed)
    return filled(operation, sizes, value, kind, device)


implements(np.zeros_like)(functools.partial(_like, "zeros_like", ZERO))
implements(np.ones_like)(functools.partial(_like, "ones_like", 1))
implements(np.empty_like)(functools.partial(_like, "empty_like", None))


@implements(np.full_like)
def _full_like(a: Array, fill_value: ArrayLike, *args: Any, **options: Any) -> Array:
    """Implements np.full_like; a fill value with dimensions is broadcast."""
    if np.ndim(fill_value) == 0:
        value = on_host("full_like", fill_value, "fill_value") if isinstance(fill_value, Array) else fill_value
        return _like("full_like", value, a, *args, **options)
    result = _like("full_like", None, a, *args, **options)
    values = np.broadcast_to(on_host("full_like", fill_value, "fill_value"), result.shape)
    source = Source("full_like", values, result.sharding)
    return assemble(
        "full_like", result.shape, result.dtype, result.sharding, committed=result.committed, fill=source.copy_box
    )


@implements(np.broadcast_to)
def broadcast_to(array: ArrayLike, shape: Shape, subok: bool = False) -> Any:
    """Implements np.broadcast_to, as a copy: new dimensions and dimensions that had size 1 are not sharded."""
    if not isinstance(array, Array):
        return np.broadcast_to(array, shape)
    wanted = tuple(map(operator.index, size_tuple("broadcast_to", shape)))
    offset = len(wanted) - array.ndim
    fits = offset >= 0 and all(size in (1, wanted[offset + d]) for d, size in enumerate(array.shape))
    if not fits or min(wanted, default=0) < 0:
        raise failure(
            ValueError,
            "broadcast_to",
            f"shape {array.shape} does not broadcast to {wanted}",
            expected="equal sizes or 1 in each dimension from the last one on",
            fix="reshape it first",
        )
    if wanted == array.shape:
        return array
    same = [size == wanted[offset + d] for d, size in enumerate(array.shape)]
    spec = spec_of(array)
    kept = tuple(axes if same[d] else () for d, axes in enumerate(spec))
    if any(is_split(array.sharding, axes) for axes, stays in zip(spec, same, strict=True) if not stays):
        # Only some devices hold the element of a sharded dimension of size 1.
        array = internal.moved(array, sharding_with(array.sharding, kept), array.committed)
    return copy_shards(
        "broadcast_to",
        array,
        wanted,
        (*((),) * offset, *kept),
        lambda view, box: np.broadcast_to(view, tuple(part.stop - part.start for part in box)),
        lambda box: tuple(box[offset + d] if same[d] else slice(0, 1, 1) for d in range(len(same))),
    )


@implements(np.broadcast_arrays)
def _broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    operands = [x if isinstance(x, Array) else np.asarray(x) for x in args]  # None and text too, as in NumPy
    shape = np.broadcast_shapes(*(x.shape for x in operands))
    return tuple(broadcast_to(x, shape) for x in operands)


@implements(np.meshgrid)
def _meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Any, ...]:
    """Implements np.meshgrid: each result is sharded along the dimension of its own coordinates."""
    if indexing not in ("xy", "ij"):
        raise failure(
            ValueError,
            "meshgrid",
            "Valid values for `indexing` are 'xy' and 'ij'",
            expected="one of them",
            got=safe_repr(indexing),
        )
    order = [1, 0, *range(2, len(xi))] if indexing == "xy" and len(xi) > 1 else list(range(len(xi)))
    arrays = [ravel(as_array("meshgrid", x, xi)) for x in xi]
    grids = [expand_dims(x, tuple(d for d in range(len(xi)) if d != own)) for own, x in zip(order, arrays, strict=True)]
    return tuple(grids) if sparse else _broadcast_arrays(*grids)


@implements(np.tile)
def _tile(A: Array, reps: Shape) -> Array:  # noqa: N803 - NumPy's name
    counts = list(map(operator.index, size_tuple("tile", reps, "reps")))
    x: Array = A
    if len(counts) > x.ndim:
        x = expand_dims(x, tuple(range(len(counts) - x.ndim)))
    counts = [1] * (x.ndim - len(counts)) + counts
    sizes = {d: x.shape[d] * n for d, n in enumerate(counts) if n != 1}
    return apply_along("tile", x, sizes, lambda part: np.tile(part, counts), x.dtype)


@implements(np.pad)
def _pad(array: Array, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Array:
    if isinstance(pad_width, dict):
        named = {normalize_axis_index(d, array.ndim): np.broadcast_to(w, 2) for d, w in pad_width.items()}
        pad_width = [named.get(d, (0, 0)) for d in range(array.ndim)] or 0
    sides = np.broadcast_to(on_host("pad", pad_width, "pad_width"), (array.ndim, 2)).tolist()
    sizes = {d: array.shape[d] + sum(width) for d, width in enumerate(sides) if any(width)}

    def pad(part: NDArray[Any]) -> NDArray[Any]:
        return np.pad(part, sides or pad_width, mode=mode, **kwargs)

    return apply_along("pad", array, sizes, pad, array.dtype)
