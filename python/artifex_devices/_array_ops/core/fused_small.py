# SPDX-License-Identifier: Apache-2.0
"""Small Arrays as one ndarray: if all shards are in one slab, one call of NumPy replaces one for each shard.

For a few KiB a call costs more than its work. Nothing is sent between devices: the slab is the memory of the shards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from artifex_devices._array_ops.core.blocks import PARALLEL_BYTES, local_arrays, tiling
from artifex_devices._base.clearable_cache import clearable_cache
from artifex_devices._core import Array, Sharding, internal


class _Grid(NamedTuple):
    """The order of the shards of a slab in the global array, which has n dimensions. Buffer b holds tile b."""

    stacked: tuple[int, ...]  # number of tiles along each dimension, then size of a tile along each dimension
    mixed: tuple[int, ...]  # both for each dimension
    to_mixed: tuple[int, ...]  # order of dimensions that changes `stacked` to `mixed`
    to_stacked: tuple[int, ...]  # order that changes `mixed` to `stacked`
    in_order: bool  # whether tiles are consecutive in the global array


@clearable_cache(maxsize=4096)
def _grid(sharding: Sharding, shape: tuple[int, ...], operation: str) -> _Grid:
    places = tiling(sharding, shape, operation)
    sides = tuple(size // parts for size, parts in zip(shape, places.parts, strict=True))
    n = len(shape)
    cut = [d for d in range(n) if places.parts[d] > 1]
    return _Grid(
        stacked=places.parts + sides,
        mixed=tuple(size for both in zip(places.parts, sides, strict=True) for size in both),
        to_mixed=tuple(axis for d in range(n) for axis in (d, n + d)),
        to_stacked=(*range(0, 2 * n, 2), *range(1, 2 * n, 2)),
        in_order=not cut or all(sides[d] == 1 for d in range(cut[-1])),
    )


def is_small(*nbytes: int) -> bool:
    """Returns whether arrays with these numbers of bytes are computed in one call."""
    return 0 < sum(nbytes) < PARALLEL_BYTES


def fused_value(x: Array) -> NDArray[Any] | None:
    """Returns the full value of a small Array: a view if tiles are consecutive, None if no slab holds all of it."""
    slab: NDArray[Any] | None = internal.slab_array(x)
    if slab is None:
        return None
    shape = x.shape
    if len(slab) == 1:
        return slab.reshape(shape)
    grid = _grid(x.sharding, shape, "fused_value")
    if not grid.in_order:
        slab = slab.reshape(grid.stacked).transpose(grid.to_mixed)
    return slab.reshape(shape)


def small_value(x: Array) -> NDArray[Any] | None:
    """Returns the fused value of an Array that is computed in one call, else None."""
    return fused_value(x) if is_small(x.nbytes) else None


def fused_values(operands: Sequence[Any]) -> list[Any] | None:
    """Returns the full value of each Array among operands, others unchanged; None if one of them has no full value."""
    wholes = [fused_value(x) if isinstance(x, Array) else x for x in operands]
    return None if any(whole is None for whole in wholes) else wholes


def from_fused(operation: str, value: NDArray[Any], dtype: DTypeLike, sharding: Sharding, *, committed: bool) -> Array:
    """Returns a new Array with the elements of an ndarray, cast as by NumPy's out=."""
    shape = value.shape
    result = internal.empty(shape, dtype, sharding, committed, operation)
    slab = internal.slab_array(result, True)
    if slab is None:
        buffers = local_arrays(operation, result, True, True)
        for buffer, box in zip(buffers, tiling(sharding, shape, operation).boxes, strict=True):
            np.copyto(buffer, value[box], casting="unsafe")
        return result
    if len(slab) > 1:
        grid = _grid(sharding, shape, operation)
        if not grid.in_order:
            value = value.reshape(grid.mixed).transpose(grid.to_stacked)
        value = value.reshape(slab.shape)
    np.copyto(slab, value, casting="unsafe")
    return result
