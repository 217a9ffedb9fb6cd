# SPDX-License-Identifier: Apache-2.0
"""Elements at other places: each part of a result is copied from where the elements lie, in one parallel copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._array_ops.core.blocks import Box, allocate, blocks_at, read_box, tiling
from artifex_devices._array_ops.core.layout import Cuts, sharding_with
from artifex_devices._core import Array

__all__ = ["copy_boxes", "copy_shards"]

# A view of a part of the result, and the view of the operand that it is a copy of.
Copies = Iterable[tuple[NDArray[Any], NDArray[Any]]]


def copy_shards(
    operation: str,
    x: Array,
    shape: tuple[int, ...],
    cuts: Cuts,
    source: Callable[[NDArray[Any], Box], NDArray[Any]],
    source_box: Callable[[Box], Box],
) -> Array:
    """A result whose every shard is a rearranged view of what its device holds of x.

    Args:
        operation: Name for errors.
        x: The operand.
        shape: Of the result.
        cuts: Of the result; they must leave its parts where those of x are.
        source: The view of a part of x that a part of the result (the box) is a copy of, in its shape.
        source_box: The part of x that a part of the result needs.

    Returns:
        An Array of the dtype of x.
    """
    sharding = sharding_with(x.sharding, cuts)
    places = tiling(sharding, shape, operation)
    views = blocks_at(x, places.positions, [source_box(box) for box in places.boxes], operation)
    assert views is not None
    result, buffers = allocate(operation, shape, x.dtype, sharding, committed=x.committed)
    _core._copy_views(buffers, [source(view, box) for view, box in zip(views, places.boxes, strict=True)])
    return result


def copy_boxes(
    operation: str,
    x: Array,
    shape: tuple[int, ...],
    cuts: Cuts,
    pieces: Callable[[Box], Iterable[tuple[Box, Box]]],
    turn: Callable[[NDArray[Any]], NDArray[Any]] = lambda view: view,
) -> Array:
    """A result put together from boxes of x, wherever they lie.

    Args:
        operation: Name for errors.
        x: The operand.
        shape: Of the result.
        cuts: Of the result.
        pieces: For a part of the result: boxes inside it, counted from its own first element, each with its box of x.
        turn: Makes of a box of x what comes into the box of the result.

    Returns:
        An Array of the dtype of x.
    """
    result, buffers = allocate(operation, shape, x.dtype, sharding_with(x.sharding, cuts), committed=x.committed)
    targets: list[NDArray[Any]] = []
    sources: list[NDArray[Any]] = []
    for buffer, box in zip(buffers, tiling(result.sharding, shape, operation).boxes, strict=True):
        for inside, wanted in pieces(box):
            place: Any = (*inside, ...)  # a view also without dimensions, where [()] is a number
            targets.append(buffer[place])
            sources.append(turn(read_box(x, wanted, operation)))
    _core._copy_views(targets, sources)
    return result
