# SPDX-License-Identifier: Apache-2.0
"""broadcast_to, meshgrid, tile and pad: results with more elements, computed where the elements are placed."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._array_ops.core.arguments import as_array, require_unsharded
from artifex_devices._array_ops.core.blocks import Box, allocate, blocks_at, run_all, tiling
from artifex_devices._array_ops.core.dispatch import implements
from artifex_devices._array_ops.core.layout import sharding_with, spec_of
from artifex_devices._array_ops.shape.rearranging import copy_shards
from artifex_devices._array_ops.shape.reshaping import expand_dims, ravel
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """np.broadcast_to, as a copy: new dimensions and those that had size 1 are not sharded."""
    if not isinstance(array, Array):
        return np.broadcast_to(array, shape)
    wanted = tuple(operator.index(size) for size in shape) if np.iterable(shape) else (operator.index(shape),)
    offset = len(wanted) - array.ndim
    fits = offset >= 0 and all(size in (1, wanted[offset + d]) for d, size in enumerate(array.shape))
    if not fits or min(wanted, default=0) < 0:
        raise ValueError(
            f"broadcast_to: shape {array.shape} does not broadcast to {wanted}; expected equal sizes or 1 in each "
            "dimension from the last one on; reshape it first"
        )
    if wanted == array.shape:
        return array
    same = [size == wanted[offset + d] for d, size in enumerate(array.shape)]
    spec = spec_of(array)
    kept = tuple(axes if same[d] else () for d, axes in enumerate(spec))
    if kept != spec:  # only some devices hold the element of a sharded dimension of size 1
        array = _core._moved(array, sharding_with(array.sharding, kept), array.committed)
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
    """np.meshgrid: each result is sharded along the dimension of its own coordinates."""
    if indexing not in ("xy", "ij"):
        raise ValueError(
            f"meshgrid: Valid values for `indexing` are 'xy' and 'ij'; expected one of them, got {safe_repr(indexing)}"
        )
    order = [1, 0, *range(2, len(xi))] if indexing == "xy" and len(xi) > 1 else list(range(len(xi)))
    arrays = [ravel(as_array("meshgrid", x, xi)) for x in xi]
    grids = [expand_dims(x, tuple(d for d in range(len(xi)) if d != own)) for own, x in zip(order, arrays, strict=True)]
    return tuple(grids) if sparse else _broadcast_arrays(*grids)


def _local(operation: str, x: Array, shape: tuple[int, ...], compute: Any) -> Array:
    """Each shard computed from that of x by compute(part); dimensions that grow are not sharded."""
    sharding = sharding_with(x.sharding, spec_of(x))
    places = tiling(sharding, shape, operation)
    mine = tiling(x.sharding, x.shape, operation)
    views = blocks_at(x, places.positions, _boxes_of(places.tiles, mine.tiles, mine.boxes), operation)
    assert views is not None
    result, buffers = allocate(operation, shape, x.dtype, sharding, committed=x.committed)

    def task(buffer: NDArray[Any], view: NDArray[Any]) -> Any:
        return lambda: np.copyto(buffer, compute(view))

    run_all([task(b, v) for b, v in zip(buffers, views, strict=True) if b.size], x.nbytes + result.nbytes)
    return result


def _boxes_of(wanted: tuple[int, ...], tiles: tuple[int, ...], boxes: tuple[Box, ...]) -> list[Box]:
    by_tile = dict(zip(tiles, boxes, strict=True))
    return [by_tile[tile] for tile in wanted]


@implements(np.tile)
def _tile(A: Any, reps: Any) -> Array:  # noqa: N803 - NumPy's name
    counts = [operator.index(n) for n in reps] if np.iterable(reps) else [operator.index(reps)]
    x: Array = A
    if len(counts) > x.ndim:
        x = expand_dims(x, tuple(range(len(counts) - x.ndim)))
    counts = [1] * (x.ndim - len(counts)) + counts
    require_unsharded("tile", x, [d for d, n in enumerate(counts) if n != 1])
    shape = tuple(size * n for size, n in zip(x.shape, counts, strict=True))
    return _local("tile", x, shape, lambda part: np.tile(part, counts))


@implements(np.pad)
def _pad(array: Array, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Array:
    if isinstance(pad_width, dict):
        named = {normalize_axis_index(d, array.ndim): np.broadcast_to(w, 2) for d, w in pad_width.items()}
        pad_width = [named.get(d, (0, 0)) for d in range(array.ndim)] or 0
    sides = np.broadcast_to(np.asarray(pad_width), (array.ndim, 2)).tolist()
    require_unsharded("pad", array, [d for d, width in enumerate(sides) if any(width)])
    shape = tuple(size + before + after for size, (before, after) in zip(array.shape, sides, strict=True))
    return _local("pad", array, shape, lambda part: np.pad(part, sides or pad_width, mode=mode, **kwargs))
