# SPDX-License-Identifier: Apache-2.0
"""Small Arrays as one ndarray: where all shards lie in one slab, one call of NumPy does what one for each would.

For a few KiB a call costs more than its work. Nothing is gathered that devices would have to send: the slab is the
memory of the shards, and it is read where it lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._array_ops.core.blocks import PARALLEL_BYTES, local_arrays, tiling
from artifex_devices._base.clearable_cache import remembered
from artifex_devices._core import Array, Sharding


class _Grid(NamedTuple):
    """How the shards in a slab make up the whole, in n dimensions."""

    stacked: tuple[int, ...]  # the number of tiles along each dimension, then the size of a tile along each
    mixed: tuple[int, ...]  # both for each dimension in turn
    to_mixed: tuple[int, ...]  # the order of dimensions that makes `mixed` of `stacked`
    to_stacked: tuple[int, ...]  # and back
    in_order: bool  # a tile follows the other in the whole: no dimension is to be moved
    tiles: list[int] | None  # by buffer: its tile; None where buffers are tiles in their order
    first: list[int] | None  # by tile: the first buffer that holds it; None likewise


@remembered(maxsize=4096)
def _grid(sharding: Sharding, shape: tuple[int, ...], operation: str) -> _Grid:
    places = tiling(sharding, shape, operation)
    sides = tuple(size // parts for size, parts in zip(shape, places.parts, strict=True))
    n = len(shape)
    cut = [d for d in range(n) if places.parts[d] > 1]
    tiles = list(places.tiles)
    plain = tiles == list(range(len(tiles)))
    return _Grid(
        stacked=places.parts + sides,
        mixed=tuple(size for both in zip(places.parts, sides, strict=True) for size in both),
        to_mixed=tuple(axis for d in range(n) for axis in (d, n + d)),
        to_stacked=(*range(0, 2 * n, 2), *range(1, 2 * n, 2)),
        in_order=not cut or all(sides[d] == 1 for d in range(cut[-1])),
        tiles=None if plain else tiles,
        first=None if plain else [tiles.index(tile) for tile in range(max(tiles) + 1)],
    )


def is_small(*nbytes: int) -> bool:
    """Whether arrays of so many bytes are not worth more than one call."""
    return 0 < sum(nbytes) < PARALLEL_BYTES


def fused_value(x: Array) -> NDArray[Any] | None:
    """All of a small Array, to be read: a view where tiles follow each other; None where no slab holds all of it."""
    slab: NDArray[Any] | None = _core._slab_array(x)
    if slab is None:
        return None
    shape = x.shape
    if len(slab) == 1:
        return slab.reshape(shape)
    grid = _grid(x.sharding, shape, "fused_value")
    if grid.first is not None:
        slab = slab[grid.first]
    if not grid.in_order:
        slab = slab.reshape(grid.stacked).transpose(grid.to_mixed)
    return slab.reshape(shape)


def fused_values(operands: Sequence[Any]) -> list[Any] | None:
    """All of each Array among operands, the others as they are; None where fused_value has no answer for one."""
    wholes = [fused_value(x) if isinstance(x, Array) else x for x in operands]
    return None if any(whole is None for whole in wholes) else wholes


def from_fused(operation: str, value: Any, dtype: Any, sharding: Sharding, *, committed: bool) -> Array:
    """A new Array of the elements of an ndarray, which are converted as by NumPy's out=.

    Raises:
        IndivisibleError: A dimension is not divisible by its axes (a ValueError).
        ResourceExhaustedError: Out of memory (a MemoryError and a RuntimeError).
    """
    shape = value.shape
    result = _core._empty(shape, dtype, sharding, committed, operation)
    slab = _core._slab_array(result, True)
    if slab is None:
        for buffer, box in zip(local_arrays(result, True, True), tiling(sharding, shape, operation).boxes, strict=True):
            np.copyto(buffer, value[box], casting="unsafe")
        return result
    if len(slab) > 1:
        grid = _grid(sharding, shape, operation)
        if not grid.in_order:
            value = value.reshape(grid.mixed).transpose(grid.to_stacked)
        if grid.tiles is None:
            value = value.reshape(slab.shape)
        else:
            value = value.reshape(-1, *slab.shape[1:])[grid.tiles]
    np.copyto(slab, value, casting="unsafe")
    return result
