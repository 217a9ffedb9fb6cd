# SPDX-License-Identifier: Apache-2.0
"""The shards of Arrays as ndarrays: read without a copy, written in place, computed in parallel.

Work is done once for each distinct *buffer* of the result. Devices that share an arena share the buffers of their
replicas, so a replicated result is computed once.
"""

from __future__ import annotations

import contextvars
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from artifex_devices._array_ops.core.operand_sharding import OperandDevices
from artifex_devices._base.argument_types import Operand
from artifex_devices._base.checks import failure
from artifex_devices._base.clearable_cache import clearable_cache
from artifex_devices._core import Array, Sharding, internal
from artifex_devices._runtime.cupy_arrays import cupy_blocks
from artifex_devices._runtime.gpu_block import gpu_blocks, is_gpu_block

# A part of an array: one slice for each dimension, with start, stop and step 1.
Box = tuple[slice, ...]

PARALLEL_BYTES = 512 << 10  # from this size on work uses several cores; below, waking a worker costs more
PIECE_BYTES = 2 << 20  # size of the pieces of such work, the same on any number of cores


def local_arrays(operation: str, x: Array, writable: bool = False, some: bool = False) -> list[Any]:
    """Returns an ndarray on each distinct buffer of x in this process, or a GpuBlock on CUDA devices.

    Only the function that allocated x may write to them. With `some`, other tiles may be in other processes.
    """
    if internal.is_on_cuda(x.sharding):
        return gpu_blocks(cupy_blocks(operation, x, writable=writable, some=some) or ())
    arrays: list[Any] = internal.local_arrays(x, writable, some)
    return arrays


def copy_views(targets: list[Any], sources: list[Any]) -> None:
    """Copies each source to the target of its index. They must not overlap."""
    if targets and is_gpu_block(targets[0]):
        for target, source in zip(targets, sources, strict=True):
            np.copyto(target, source)
    else:
        internal.copy_views(targets, sources)


def piece_count(block: Any, piece_bytes: int | None = None) -> int:
    """Returns the number of pieces into which a block is divided for several cores; 1 on a GPU."""
    return 1 if is_gpu_block(block) else -(-block.nbytes // (piece_bytes or PIECE_BYTES))


class Tiling(NamedTuple):
    """The distinct buffers of a sharding, for an array of one shape."""

    parts: tuple[int, ...]  # by dimension: number of tiles
    positions: tuple[int, ...]  # by buffer: position in the mesh of the first device that holds it
    tiles: tuple[int, ...]  # by buffer: row-major number of its tile
    boxes: tuple[Box, ...]  # by buffer
    first: dict[int, int]  # by tile: its first buffer; in the order of the buffers
    sides: tuple[int, ...]  # by dimension: size of a tile; the last tiles may be smaller
    strides: tuple[int, ...]  # by dimension: difference of the numbers of neighbouring tiles


@clearable_cache(maxsize=1024)
def tiling(sharding: Sharding, shape: tuple[int, ...], operation: str) -> Tiling:
    """Returns the Tiling of an array."""
    parts, positions, tiles, boxes = internal.tiling(sharding, shape, operation)
    first: dict[int, int] = {}
    for number, tile in enumerate(tiles):
        first.setdefault(tile, number)
    sides = tuple(-(-size // count) for size, count in zip(shape, parts, strict=True))
    strides = tuple(math.prod(parts[d + 1 :]) for d in range(len(parts)))
    return Tiling(parts, positions, tiles, boxes, first, sides, strides)


@clearable_cache(maxsize=1024)
def buffers_at(sharding: Sharding, positions: tuple[int, ...]) -> tuple[int, ...]:
    return internal.buffers_at(sharding, positions)


def allocate(
    operation: str, shape: tuple[int, ...], dtype: DTypeLike, sharding: Sharding, *, committed: bool
) -> tuple[Array, list[NDArray[Any]]]:
    """Returns a new Array and its buffers to write."""
    array = internal.empty(shape, dtype, sharding, committed, operation)
    return array, local_arrays(operation, array, True, True)


def outputs_of(
    operation: str,
    shape: tuple[int, ...],
    dtypes: Sequence[Any],
    sharding: Sharding,
    *,
    committed: bool,
    into: Sequence[NDArray[Any]] | NDArray[Any] | None,
) -> tuple[list[Any], list[list[NDArray[Any]]]]:
    """Returns results and the buffers of each to write: one new Array for each dtype, or the ndarrays `into`."""
    if into is None:
        allocated = [allocate(operation, shape, dtype, sharding, committed=committed) for dtype in dtypes]
        return [array for array, _ in allocated], [buffers for _, buffers in allocated]
    targets = [into] if isinstance(into, np.ndarray) else list(into)
    for target in targets:
        if target.shape != shape:
            raise failure(
                ValueError,
                operation,
                "out has another shape than the result",
                expected=shape,
                got=target.shape,
                fix=f"create it by np.empty({shape}, dtype)",
            )
        internal.host_result(sharding, shape, target.dtype, operation)
    boxes = tiling(sharding, shape, operation).boxes
    return targets, [[target[box] if box else target for box in boxes] for target in targets]  # target[()] is a number


def moved_to(operation: str, x: Array, devices: OperandDevices, sharding: Sharding) -> Array:
    """Places x by `sharding` on `devices`. Every process with devices of either calls it."""
    if not x.sharding._same_devices(devices.sharding):
        check_move(operation, x, sharding)
    return internal.moved(x, sharding, x.committed or devices.committed)


def check_move(operation: str, x: Array, sharding: Sharding) -> None:
    """Checks that x is in the world of a sharding, as worlds share nothing, and asks the transfer guards."""
    here, there = (next(iter(s.device_set)) for s in (x.sharding, sharding))
    if here.client is not there.client:
        raise failure(
            ValueError,
            operation,
            f"an operand of shape {x.shape} is in another world than the other operands",
            expected="Arrays of one `simulate` block",
            got=f"one on {here} of another",
            fix="move it first: ad.device_put(x, y.sharding)",
        )
    internal.check_transfer("device_to_device", False, x.shape, x.dtype, x.sharding, sharding, operation)


def is_inside(box: Box, whole: Box) -> bool:
    """Returns whether `whole` contains `box`."""
    return all(w.start <= b.start and b.stop <= w.stop for b, w in zip(box, whole, strict=True))


def shift(box: Box, whole: Box) -> tuple[Any, ...]:
    """Returns the index of a box in an ndarray of the box `whole`; the index gives a view even without dimensions."""
    return (*(slice(b.start - w.start, b.stop - w.start) for b, w in zip(box, whole, strict=True)), ...)


@clearable_cache(maxsize=4096)
def covers(held: Sharding, wanted: Sharding, shape: tuple[int, ...], operation: str) -> bool:
    """Returns whether each device, of any process, holds at least the part of an array that `wanted` gives it.

    So all processes decide alike whether an operand has to be moved.
    """
    return held._same_devices(wanted) and internal.covers(held, wanted, shape, operation)


def blocks_at(x: Array, positions: tuple[int, ...], boxes: Sequence[Box], operation: str) -> list[NDArray[Any]]:
    """Returns views of the boxes of x in the buffers at these positions, which hold them."""
    mine = tiling(x.sharding, x.shape, operation)
    arrays = local_arrays(operation, x, False, True)
    views = []
    for number, box in zip(buffers_at(x.sharding, positions), boxes, strict=True):
        whole = mine.boxes[number]
        views.append(arrays[number] if box == whole else arrays[number][shift(box, whole)])
    return views


def views_at(
    operation: str,
    x: Operand,
    devices: OperandDevices,
    positions: tuple[int, ...],
    boxes: Sequence[Box],
    sharding: Sharding,
) -> list[NDArray[Any]]:
    """Returns views of the boxes of x at these positions, after an Array has been moved to `sharding` if necessary.

    The parts by `sharding` contain the boxes.
    """
    if not isinstance(x, Array):
        check_host_operand(operation, x, sharding)
        return [x[box] for box in boxes]
    if not covers(x.sharding, sharding, x.shape, operation):
        x = moved_to(operation, x, devices, sharding)
    return blocks_at(x, positions, boxes, operation)


def check_host_operand(operation: str, x: Any, sharding: Sharding) -> None:
    """Asks the transfer guards whether an ndarray may be copied to devices, and records it; numbers always may be."""
    if not isinstance(x, Array) and x.ndim:
        internal.host_operand(x.shape, x.dtype, sharding, operation)


def run_all(tasks: Sequence[Callable[[], Any]], touched_bytes: int, spread_from: int | None = None) -> None:
    """Calls independent tasks, on several cores from `spread_from` bytes on that they read and write together.

    Each task sees the caller's context variables. The first exception of a task is raised once all tasks that had
    started have ended.
    """
    if len(tasks) < 2 or touched_bytes < (PARALLEL_BYTES if spread_from is None else spread_from):
        for task in tasks:
            task()
        return
    context = contextvars.copy_context()
    internal.run_parallel([functools.partial(context.copy().run, task) for task in tasks])
