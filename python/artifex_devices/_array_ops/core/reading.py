# SPDX-License-Identifier: Apache-2.0
"""Results assembled from boxes of operands: each buffer reads only the tiles that it needs."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from artifex_devices._array_ops.core import blocks
from artifex_devices._array_ops.core.blocks import (
    Box,
    Tiling,
    allocate,
    is_inside,
    piece_count,
    run_all,
    shift,
    tiling,
    views_at,
)
from artifex_devices._array_ops.core.operand_sharding import OperandDevices, Spec, sharding_with, spec_in
from artifex_devices._base.argument_types import Operand
from artifex_devices._base.checks import failure
from artifex_devices._core import Array, Sharding, internal

# Writes one box of a result: fill(out, box, position of a device that holds it).
Fill = Callable[[NDArray[Any], Box, int], None]


class Source:
    """The operand of a result: the tiles of an Array, or a host array as one tile."""

    def __init__(self, operation: str, x: Operand, target: Sharding) -> None:
        """`target` is the sharding of the result; an Array on other devices is replicated on its devices."""
        self.dtype = x.dtype
        if not isinstance(x, Array):
            blocks.check_host_operand(operation, x, target)
            whole = tuple(slice(0, size, 1) for size in x.shape)
            one = (1,) * x.ndim
            self._tiling = Tiling(one, (0,), (0,), (whole,), {0: 0}, x.shape, one)
            self._arrays = [x]
            self._sharding: Sharding | None = None
            return
        if not x.sharding._same_devices(target):
            x = blocks.moved_to(
                operation, x, OperandDevices(target, x.committed), sharding_with(target, ((),) * x.ndim)
            )
        self._sharding = x.sharding
        self._tiling = tiling(x.sharding, x.shape, operation)
        self._arrays = blocks.local_arrays(operation, x)

    def tiles(self, position: int, bounds: Sequence[tuple[int, int]]) -> Iterator[tuple[Box, NDArray[Any]]]:
        """Returns the tiles that a box touches, with their boxes; prefers the replica of the device at `position`.

        `bounds` are (start, stop) of each dimension of the box, none of them empty.
        """
        grid = self._tiling
        near = -1 if self._sharding is None else blocks.buffers_at(self._sharding, (position,))[0]
        coordinates = [
            range(start // side * stride, (stop - 1) // side * stride + 1, stride)
            for (start, stop), side, stride in zip(bounds, grid.sides, grid.strides, strict=True)
        ]
        for steps in itertools.product(*coordinates):
            tile = sum(steps)
            number = near if near >= 0 and grid.tiles[near] == tile else grid.first[tile]
            yield grid.boxes[number], self._arrays[number]

    def box(self, box: Box, position: int) -> NDArray[Any]:
        """Reads one box: a view if one tile holds all of it."""
        bounds = _bounds(box)
        for whole, data in () if bounds is None else self.tiles(position, bounds):
            if is_inside(box, whole):
                view: NDArray[Any] = data[shift(box, whole)]
                return view
        shape = [part.stop - part.start for part in box]
        out: NDArray[Any] = np.empty_like(self._arrays[0], order="C", shape=shape)
        self.copy_box(out, box, position)
        return out

    def copy_box(self, out: NDArray[Any], box: Box, position: int) -> None:
        """Writes one box to `out`, which has the shape of the box and perhaps another dtype."""
        bounds = _bounds(box)
        if bounds is None:
            return
        for whole, data in self.tiles(position, bounds):
            common = tuple(slice(max(b.start, w.start), min(b.stop, w.stop)) for b, w in zip(box, whole, strict=True))
            if all(part.start < part.stop for part in common):
                np.copyto(out[shift(common, box)], data[shift(common, whole)], casting="unsafe")


def _bounds(box: Box) -> list[tuple[int, int]] | None:
    """Returns (start, stop) of each dimension, or None for an empty box."""
    bounds = [(part.start, part.stop) for part in box]
    return bounds if all(start < stop for start, stop in bounds) else None


def assemble(
    operation: str, shape: tuple[int, ...], dtype: DTypeLike, sharding: Sharding, *, committed: bool, fill: Fill
) -> Array:
    """Creates an Array whose boxes are written by `fill`, large ones in pieces and in parallel."""
    result, buffers = allocate(operation, shape, dtype, sharding, committed=committed)
    places = tiling(sharding, shape, operation)
    tasks = [
        functools.partial(fill, out[shift(piece, box)], piece, position)
        for out, box, position in zip(buffers, places.boxes, places.positions, strict=True)
        if out.size
        for piece in pieces_of_box(box, out)
    ]
    run_all(tasks, 2 * sum(out.nbytes for out in buffers))
    return result


def _cuts(shape: Sequence[int], block: Any) -> tuple[int, list[slice]]:
    """Returns the first long dimension and its slices for the pieces of a block of this shape; none for one piece."""
    count = min(piece_count(block), max(shape, default=1))
    if count <= 1:
        return 0, []
    axis = next(d for d, size in enumerate(shape) if size >= count or size == max(shape))
    size, step = shape[axis], -(-shape[axis] // count)
    return axis, [slice(start, min(start + step, size), 1) for start in range(0, size, step)]


def pieces_of_box(box: Box, block: Any) -> list[Box]:
    """Returns the box, or its pieces along the first long dimension."""
    axis, cuts = _cuts([part.stop - part.start for part in box], block)
    begin = box[axis].start if cuts else 0
    pieces = [(*box[:axis], slice(begin + cut.start, begin + cut.stop, 1), *box[axis + 1 :]) for cut in cuts]
    return pieces or [box]


def element(operation: str, x: Array, index: tuple[Any, ...]) -> Any:
    """Returns one element as a Python number; `index` is a flat position or one int for each dimension."""
    if len(index) == 1 and isinstance(index[0], tuple):
        index = index[0]
    flat = len(index) == 1 and x.ndim != 1
    shape = (x.size,) if flat else x.shape
    if len(index) != len(shape):
        raise failure(
            ValueError,
            operation,
            "another number of indices than of dimensions",
            expected=f"{x.ndim} for shape {x.shape}, or one flat position",
            got=len(index),
        )
    places = []
    for number, size in zip(index, shape, strict=True):
        place = operator.index(number)
        if not -size <= place < size:
            raise failure(
                IndexError,
                operation,
                f"{place} is out of range for an Array of shape {x.shape}",
                expected=f"{-size} to {size - 1}",
            )
        places.append(place % size)
    if flat:
        places = [int(place) for place in np.unravel_index(places[0], x.shape)]
    internal.host_element(x, operation)
    return Source(operation, x, x.sharding).box(tuple(slice(place, place + 1, 1) for place in places), 0).item()


# Writes the results for equally shaped parts: compute(outputs, inputs).
Compute = Callable[[Sequence[NDArray[Any]], Sequence[Any]], Any]

SCALARS = (bool, int, float, complex)


def operand_parts(
    operation: str,
    x: Any,
    devices: OperandDevices,
    shape: tuple[int, ...],
    sharding: Sharding,
    positions: tuple[int, ...],
    boxes: tuple[Box, ...],
) -> Any:
    """Returns the parts of one operand, one for each buffer of the result; a number unchanged."""
    if type(x) in SCALARS:
        return x
    if not isinstance(x, Array) and x.ndim == 0:
        return x
    wanted = boxes if x.shape == shape else [_part(box, x.shape, shape) for box in boxes]
    target = sharding_with(sharding, operand_spec(x.shape, shape, sharding))
    return views_at(operation, x, devices, positions, wanted, target)


def operand_spec(x_shape: tuple[int, ...], shape: tuple[int, ...], sharding: Sharding) -> Spec:
    """Returns the spec of a result of `shape` in the dimensions that an operand of `x_shape` has."""
    offset = len(shape) - len(x_shape)
    spec = spec_in(sharding, len(shape))
    return tuple(spec[offset + d] if size == shape[offset + d] else () for d, size in enumerate(x_shape))


def _part(box: Box, x_shape: tuple[int, ...], shape: tuple[int, ...]) -> Box:
    """Returns the part of an operand that a box of the result needs."""
    offset = len(shape) - len(x_shape)
    return tuple(box[offset + d] if size == shape[offset + d] else slice(0, size, 1) for d, size in enumerate(x_shape))


def pieces_of(compute: Compute, outputs: list[NDArray[Any]], parts: list[Any]) -> list[Callable[[], Any]]:
    """Returns one call for a small buffer, several along its first long dimension for a large one."""
    whole = outputs[0]
    axis, cuts = _cuts(whole.shape, whole)
    if not cuts:
        return [functools.partial(compute, outputs, parts)]
    return [
        functools.partial(
            compute,
            [piece_along(out, axis, cut, whole) for out in outputs],
            [piece_along(part, axis, cut, whole) for part in parts],
        )
        for cut in cuts
    ]


def piece_along(part: Any, axis: int, index: slice, whole: NDArray[Any]) -> Any:
    """Returns the piece of an operand that belongs to a piece of `whole`; all of it if it is broadcast there."""
    if not isinstance(part, np.ndarray):
        return part
    d = axis - (whole.ndim - part.ndim)
    if d < 0 or part.shape[d] != whole.shape[axis]:
        return part
    return part[(*(slice(None),) * d, index)]
