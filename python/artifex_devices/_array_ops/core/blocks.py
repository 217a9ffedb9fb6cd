# SPDX-License-Identifier: Apache-2.0
"""The shards of Arrays as ndarrays: read without a copy, written where a result lies, worked on in parallel.

Work is done once for each distinct *buffer* of the result; devices that share an arena share the buffers of their
replicas, so a replicated result is computed once.
"""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._array_ops.core.layout import Placement
from artifex_devices._base.clearable_cache import remembered
from artifex_devices._core import Array, Sharding

# A part of an array: slices with start, stop and step 1, one a dimension.
Box = tuple[slice, ...]

PARALLEL_BYTES = 512 << 10  # from here on work is spread over cores; below, waking a worker costs more
PIECE_BYTES = 2 << 20  # and cut into pieces of this size, the same on any number of cores

local_arrays = _core._local_arrays


class Tiling(NamedTuple):
    """How an array of one shape lies in the distinct buffers of a sharding."""

    parts: tuple[int, ...]  # into how many tiles each dimension is cut
    positions: tuple[int, ...]  # by buffer: the first device that shows it, as a position in the mesh
    tiles: tuple[int, ...]  # by buffer: row-major number of its tile over `parts`
    boxes: tuple[Box, ...]  # by buffer


@remembered(maxsize=1024)
def tiling(sharding: Sharding, shape: tuple[int, ...], operation: str) -> Tiling:
    """The Tiling of an array.

    Raises:
        IndivisibleError: A dimension is not divisible by its axes (a ValueError).
    """
    return Tiling(*_core._tiling(sharding, shape, operation))


@remembered(maxsize=1024)
def _buffers_at(sharding: Sharding, positions: tuple[int, ...]) -> tuple[int, ...]:
    return _core._buffers_at(sharding, positions)


def allocate(
    operation: str, shape: tuple[int, ...], dtype: Any, sharding: Sharding, *, committed: bool
) -> tuple[Array, list[NDArray[Any]]]:
    """A new Array and its buffers to write.

    Raises:
        ResourceExhaustedError: Out of memory (a MemoryError and a RuntimeError).
        TypeError: No device holds this dtype.
    """
    array = _core._empty(shape, dtype, sharding, committed, operation)
    return array, local_arrays(array, True, True)


def moved_to(operation: str, x: Array, placement: Placement, sharding: Sharding) -> Array:
    """X laid out by `sharding` on the devices of `placement`; x itself where it is so already.

    Raises:
        RuntimeError: A transfer guard refuses it.
        ValueError: x lies in another world.
    """
    if x.sharding is sharding or x.sharding == sharding:
        return x
    if not x.sharding._same_devices(placement.sharding):
        require_one_world(operation, x, placement.sharding)
        _core._check_transfer("device_to_device", False, x.shape, x.dtype, x.sharding, sharding, operation)
    return _core._moved(x, sharding, x.committed or placement.committed)


def require_one_world(operation: str, x: Array, sharding: Sharding) -> None:
    """Checks that x lies in the world of a sharding.

    Raises:
        ValueError: It does not: worlds share nothing.
    """
    here, there = (next(iter(s.device_set)) for s in (x.sharding, sharding))
    if here.client is not there.client:
        raise ValueError(
            f"{operation}: an operand of shape {x.shape} lies in another world than the others; expected Arrays of one "
            f"`simulate` block, got one on {here} of another; move it first: device_put(x, y.sharding)"
        )


def is_inside(box: Box, whole: Box) -> bool:
    """Whether `whole` contains `box`."""
    return all(w.start <= b.start and b.stop <= w.stop for b, w in zip(box, whole, strict=True))


def _relative(box: Box, whole: Box) -> Box:
    return tuple(slice(b.start - w.start, b.stop - w.start) for b, w in zip(box, whole, strict=True))


def blocks_at(x: Array, positions: tuple[int, ...], boxes: Sequence[Box], operation: str) -> list[NDArray[Any]] | None:
    """Views of the boxes of x out of what each position holds; None when one of them holds too little."""
    mine = tiling(x.sharding, x.shape, operation)
    numbers = _buffers_at(x.sharding, positions)
    arrays = local_arrays(x, False, True)
    views = []
    for number, box in zip(numbers, boxes, strict=True):
        whole = mine.boxes[number]
        if box == whole:
            views.append(arrays[number])
        elif is_inside(box, whole):
            views.append(arrays[number][_relative(box, whole)])
        else:
            return None
    return views


def read_box(x: Array, box: Box, operation: str) -> NDArray[Any]:
    """One box of x as an ndarray: a view where one buffer holds it, else put together from those that it touches."""
    mine = tiling(x.sharding, x.shape, operation)
    arrays = local_arrays(x)
    for number, whole in enumerate(mine.boxes):
        if is_inside(box, whole):
            view: NDArray[Any] = arrays[number][(*_relative(box, whole), ...)]
            return view
    result: NDArray[Any] = np.empty(tuple(s.stop - s.start for s in box), x.dtype)
    seen: set[int] = set()
    for number, whole in enumerate(mine.boxes):
        if mine.tiles[number] in seen:
            continue
        common = tuple(slice(max(b.start, w.start), min(b.stop, w.stop)) for b, w in zip(box, whole, strict=True))
        if all(s.start < s.stop for s in common):
            seen.add(mine.tiles[number])
            result[_relative(common, box)] = arrays[number][_relative(common, whole)]
    return result


def run_all(tasks: Sequence[Callable[[], Any]], touched_bytes: int, spread_from: int | None = None) -> None:
    """Calls every task, over the cores when there is enough to do; each sees the caller's context variables.

    Args:
        tasks: Independent calls; their results are dropped.
        touched_bytes: What they read and write together.
        spread_from: How many of these bytes are worth several cores; by default PARALLEL_BYTES.

    Raises:
        BaseException: The first one that a task raised, once all that had started have ended.
    """
    if len(tasks) < 2 or touched_bytes < (PARALLEL_BYTES if spread_from is None else spread_from):
        for task in tasks:
            task()
        return
    context = contextvars.copy_context()
    _core._run_parallel([functools.partial(context.copy().run, task) for task in tasks])
