# SPDX-License-Identifier: Apache-2.0
"""Elements in another order: transpose, swapaxes, flip, roll and rot90, in one parallel copy."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import ArrayLike, NDArray

from artifex_devices._array_ops.core.arguments import axis_tuple, on_host
from artifex_devices._array_ops.core.blocks import Box, allocate, blocks_at, copy_views, tiling
from artifex_devices._array_ops.core.operand_sharding import Spec, any_explicit, is_split, sharding_with, spec_of
from artifex_devices._array_ops.core.reading import Source
from artifex_devices._array_ops.core.registry import implements
from artifex_devices._array_ops.shape.reshaping import ravel, reshape, same_bytes
from artifex_devices._base.argument_types import Axes, Shape
from artifex_devices._base.checks import failure
from artifex_devices._core import Array
from artifex_devices.errors import ShardingTypeError


def copy_shards(
    operation: str,
    x: Array,
    shape: tuple[int, ...],
    spec: Spec,
    source: Callable[[NDArray[Any], Box], NDArray[Any]],
    source_box: Callable[[Box], Box],
) -> Array:
    """Creates a result each of whose shards is a copy of a rearranged view of a shard of x on the same device.

    `source_box` returns the box of x to read for a box of the result, and `source(view, box)` the view to copy.
    """
    sharding = sharding_with(x.sharding, spec)
    places = tiling(sharding, shape, operation)
    views = blocks_at(x, places.positions, [source_box(box) for box in places.boxes], operation)
    result, buffers = allocate(operation, shape, x.dtype, sharding, committed=x.committed)
    copy_views(buffers, [source(view, box) for view, box in zip(views, places.boxes, strict=True)])
    return result


def copy_boxes(
    operation: str,
    x: Array,
    shape: tuple[int, ...],
    spec: Spec,
    pieces: Callable[[Box], Iterable[tuple[Box, Box]]],
    turn: Callable[[NDArray[Any]], NDArray[Any]] = lambda view: view,
) -> Array:
    """Assembles a result from boxes of x, on any device.

    `pieces` takes a box of the result and returns pairs: a box relative to it, and the box of x for it. `turn`
    rearranges a view of a box of x.
    """
    result, buffers = allocate(operation, shape, x.dtype, sharding_with(x.sharding, spec), committed=x.committed)
    targets: list[NDArray[Any]] = []
    sources: list[NDArray[Any]] = []
    source = Source(operation, x, result.sharding)
    places = tiling(result.sharding, shape, operation)
    for buffer, box, position in zip(buffers, places.boxes, places.positions, strict=True):
        for inside, wanted in pieces(box):
            place: Any = (*inside, ...)  # [()] would be a number without dimensions
            targets.append(buffer[place])
            sources.append(turn(source.box(wanted, position)))
    copy_views(targets, sources)
    return result


@implements(np.transpose)  # np.permute_dims is the same function
def transpose(a: Array, axes: Axes = None) -> Array:
    """Implements np.transpose."""
    order = tuple(reversed(range(a.ndim))) if axes is None else axis_tuple("transpose", axes, a.ndim, "axes")
    if len(order) != a.ndim:
        raise failure(
            ValueError,
            "transpose",
            "axes does not name every dimension",
            expected=f"{a.ndim} of them",
            got=f"{axes} for shape {a.shape}",
        )
    if order == tuple(range(a.ndim)):
        return a
    shape = tuple(a.shape[d] for d in order)
    spec = spec_of(a)
    turned = tuple(spec[d] for d in order)
    long = [d for d in order if a.shape[d] != 1]
    if long == sorted(long):  # only dimensions of size 1 are moved
        return same_bytes("transpose", a, shape, turned)
    back = [order.index(d) for d in range(a.ndim)]
    return copy_shards(
        "transpose",
        a,
        shape,
        turned,
        lambda view, box: view.transpose(order),
        lambda box: tuple(box[d] for d in back),
    )


@implements(np.matrix_transpose, np.linalg.matrix_transpose)
def matrix_transpose(x: Array, /) -> Array:
    """Implements np.matrix_transpose: the last two dimensions are swapped."""
    if x.ndim < 2:
        raise failure(
            ValueError,
            "matrix_transpose",
            "the operand is not a matrix",
            expected="at least two dimensions",
            got=f"shape {x.shape}",
        )
    return swapaxes(x, -1, -2)


@implements(np.swapaxes)
def swapaxes(a: Array, axis1: int, axis2: int) -> Array:
    """Implements np.swapaxes."""
    i, j = normalize_axis_index(axis1, a.ndim, "axis1"), normalize_axis_index(axis2, a.ndim, "axis2")
    order = list(range(a.ndim))
    order[i], order[j] = j, i
    return transpose(a, order)


@implements(np.moveaxis)
def _moveaxis(a: Array, source: Shape, destination: Shape) -> Array:
    sources = axis_tuple("moveaxis", source, a.ndim, "source")
    destinations = axis_tuple("moveaxis", destination, a.ndim, "destination")
    if len(sources) != len(destinations):
        raise failure(
            ValueError,
            "moveaxis",
            "source and destination differ in length",
            expected="equal lengths",
            got=f"{source} and {destination}",
        )
    order = [d for d in range(a.ndim) if d not in sources]
    for to, moved in sorted(zip(destinations, sources, strict=True)):
        order.insert(to, moved)
    return transpose(a, order)


@implements(np.flip)
def flip(m: Array, axis: Axes = None) -> Array:
    """Implements np.flip: along a sharded dimension devices exchange their shards."""
    dims = set(range(m.ndim)) if axis is None else set(axis_tuple("flip", axis, m.ndim))
    turned: Any = (*(slice(None, None, -1 if d in dims else 1) for d in range(m.ndim)), ...)

    def pieces(box: Box) -> Iterator[tuple[Box, Box]]:
        mirrored = tuple(
            slice(m.shape[d] - part.stop, m.shape[d] - part.start, 1) if d in dims else part
            for d, part in enumerate(box)
        )
        yield tuple(slice(0, part.stop - part.start, 1) for part in box), mirrored

    return copy_boxes("flip", m, m.shape, spec_of(m), pieces, lambda view: view[turned])


@implements(np.fliplr)
def _fliplr(m: Array) -> Array:
    if m.ndim < 2:
        raise failure(
            ValueError,
            "fliplr",
            "the operand has no second dimension",
            expected="at least two",
            got=f"shape {m.shape}",
            fix="use np.flip",
        )
    return flip(m, 1)


@implements(np.flipud)
def _flipud(m: Array) -> Array:
    if m.ndim < 1:
        raise ValueError(f"flipud: the operand has no dimension; expected at least one, got shape {m.shape}")
    return flip(m, 0)


@implements(np.roll)
def roll(a: Array, shift: ArrayLike, axis: Axes = None) -> Array:
    """Implements np.roll: along a sharded dimension the elements that leave a shard are copied to the next device."""
    if axis is None:
        rolled: Array = reshape(roll(ravel(a), shift, 0), a.shape)
        return rolled
    axes = axis_tuple("roll", axis, a.ndim, allow_duplicate=True)
    shifts = [0] * a.ndim
    for by, d in np.broadcast(on_host("roll", shift, "shift"), np.asarray(axes)):
        shifts[d] += operator.index(by)
    shifts = [by % size if size else 0 for by, size in zip(shifts, a.shape, strict=True)]
    spec = spec_of(a)
    moving = [d for d, by in enumerate(shifts) if by and is_split(a.sharding, spec[d])]
    wrong = [d for d in moving if any_explicit(a.sharding, spec[d])]
    if wrong:
        raise failure(
            ShardingTypeError,
            "roll",
            f"dimensions {wrong} are sharded over Explicit axes {[spec[d] for d in wrong]}",
            expected="unsharded ones or Auto axes",
            got=f"{a.shape} with {a.sharding}",
            fix="replicate it first: ad.reshard(x, ad.NamedSharding(x.sharding.mesh, ad.P()))",
        )

    def pieces(box: Box) -> Iterator[tuple[Box, Box]]:
        by_dimension = [_rolled(part, by, size) for part, by, size in zip(box, shifts, a.shape, strict=True)]
        for chosen in itertools.product(*by_dimension):
            yield tuple(inside for inside, _ in chosen), tuple(source for _, source in chosen)

    return copy_boxes("roll", a, a.shape, spec, pieces)


def _rolled(part: slice, by: int, size: int) -> list[tuple[slice, slice]]:
    """Returns the source of one dimension of a box: one range, or two around the end."""
    length = part.stop - part.start
    if not length:
        return []
    start = (part.start - by) % size
    first = min(length, size - start)
    runs = [(slice(0, first, 1), slice(start, start + first, 1))]
    if first < length:
        runs.append((slice(first, length, 1), slice(0, length - first, 1)))
    return runs


@implements(np.rot90)
def _rot90(m: Array, k: int = 1, axes: Axes = (0, 1)) -> Array:
    i, j = axis_tuple("rot90", axes, m.ndim)
    turns = k % 4
    if turns == 0:
        return m
    if turns == 2:
        return flip(m, (i, j))
    return swapaxes(flip(m, j), i, j) if turns == 1 else flip(swapaxes(m, i, j), j)
