# SPDX-License-Identifier: Apache-2.0
"""Parts of Arrays: x[...] and iteration. Only the shards that hold the elements are read."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices._array_ops.core.blocks import Box
from artifex_devices._array_ops.core.fused_small import from_fused, fused_value, is_small
from artifex_devices._array_ops.core.operand_sharding import (
    Spec,
    allowing_uneven,
    any_explicit,
    can_shard,
    num_parts,
    sharding_with,
    spec_of,
)
from artifex_devices._array_ops.core.reading import Source, assemble
from artifex_devices._array_ops.index.selection import Range, Selection, parse
from artifex_devices._base.checks import failure
from artifex_devices._base.clearable_cache import clearable
from artifex_devices._core import Array, NamedSharding, Sharding
from artifex_devices.errors import ShardingTypeError


def get(x: Array, index: Any, operation: str = "index") -> Array:
    """Reads x[index] by NumPy's rules.

    A dimension stays sharded if all its elements are taken, forwards or backwards. Dimensions of an index Array have
    the index's sharding. Other dimensions are not sharded; if Explicit axes shard them, this is an error for the
    operation "index", except for a part on one device that needs no index Array.
    """
    key = _key_of(operation, x, index)
    cached = _basic.get(key)
    if cached is None:
        chosen = parse(x, index)
        if operation == "index":
            _check_explicit(operation, x, chosen)
        leader = _leading_index(x, chosen, index)
        picked = ((),) * chosen.rank if leader is None else spec_of(leader)
        sharding = x.sharding if leader is None else allowing_uneven(x.sharding, leader.sharding)
        cached = chosen, sharding_with(sharding, _indexed_spec(x, chosen, picked))
        if key is not None:
            if len(_basic) >= 4096:
                _basic.clear()
            _basic[key] = cached
    chosen, sharding = cached
    whole = fused_value(x) if key is not None and is_small(x.nbytes) else None
    if whole is None:
        return select(operation, x, chosen, sharding)
    return from_fused(operation, np.asarray(whole[index]), x.dtype, sharding, committed=x.committed)


# The selection of an index without arrays and the sharding of its result, by operation, sharding, shape and index.
_basic: dict[Any, tuple[Selection, Sharding]] = clearable({})


def _key_of(operation: str, x: Array, index: Any) -> Any:
    """Returns the key of an index without arrays in the cache, or None for other indices."""
    parts: list[Any] = [operation, x.sharding, x.shape]
    for part in index if type(index) is tuple else (index,):
        if type(part) is slice:
            bounds = (part.start, part.stop, part.step)
            if not all(bound is None or type(bound) is int for bound in bounds):
                return None
            parts.append(bounds)
        elif part is None or part is Ellipsis or type(part) is int:
            parts.append(part)
        else:
            return None
    return tuple(parts)


def select(operation: str, x: Array, chosen: Selection, sharding: Sharding) -> Array:
    """Returns the Array of a Selection, placed by a sharding on the devices of x."""
    reader = _Reader(Source(operation, x, sharding), chosen)
    return assemble(operation, chosen.shape, x.dtype, sharding, committed=x.committed, fill=reader.fill)


def part_of(operation: str, x: Array, axis: int, part: Any) -> Array:
    """Returns x[part] along one dimension, which stays sharded if that divides its new size."""
    chosen = parse(x, (*(slice(None),) * axis, part))
    spec, sharding, size = spec_of(x), x.sharding, chosen.shape[axis]
    if isinstance(sharding, NamedSharding) and spec[axis] and not can_shard(sharding, spec[axis], size):
        if any_explicit(sharding, spec[axis]):
            raise failure(
                ShardingTypeError,
                operation,
                f"dimension {axis} of the result, of size {size}, cannot be sharded over Explicit axes {spec[axis]}",
                expected=f"a multiple of {num_parts(sharding, spec[axis])}",
                got=size,
                fix="replicate it first: ad.reshard(x, ad.NamedSharding(x.sharding.mesh, ad.P()))",
            )
        spec = (*spec[:axis], (), *spec[axis + 1 :])
    return select(operation, x, chosen, sharding_with(sharding, spec))


def _indexed_spec(x: Array, chosen: Selection, picked: Spec) -> Spec:
    """Returns the spec of the result."""
    before = spec_of(x)
    if not any(before) and not any(picked):
        return ((),) * len(chosen.shape)
    spec: list[tuple[Hashable, ...]] = [()] * len(chosen.shape)
    for r in chosen.ranges:
        axes = before[r.source]
        # As in JAX, a part of a dimension keeps Explicit axes on one device, where nothing is divided.
        if _takes_all(x, chosen, r) or (x.sharding.num_devices == 1 and any_explicit(x.sharding, axes)):
            spec[r.dim] = axes
    used = {name for axes in spec for name in axes}
    for i, axes in enumerate(picked):
        if not used.intersection(axes):
            spec[chosen.at + i] = axes
            used.update(axes)
    return tuple(spec)


def _takes_all(x: Array, chosen: Selection, r: Range) -> bool:
    return chosen.shape[r.dim] == x.shape[r.source] and r.step in (1, -1)


def _check_explicit(operation: str, x: Array, chosen: Selection) -> None:
    """Refuses to drop a sharding over Explicit axes."""
    before = spec_of(x)
    if not any(before) or (x.sharding.num_devices == 1 and not chosen.rank):
        return
    kept = {r.source for r in chosen.ranges if _takes_all(x, chosen, r)}
    for d, axes in enumerate(before):
        if axes and d not in kept and any_explicit(x.sharding, axes):
            raise failure(
                ShardingTypeError,
                operation,
                f"dimension {d} of shape {x.shape} is sharded over Explicit axes {axes}, and an index would unshard it",
                expected="':' for it, or an unsharded dimension",
                fix=(
                    "replicate it first: ad.reshard(x, ad.NamedSharding(x.sharding.mesh, ad.P())), or read it on "
                    "the host: np.asarray(x)[...]"
                ),
            )


def _leading_index(x: Array, chosen: Selection, index: Any) -> Array | None:
    """Returns the first sharded Array among the indices on the mesh of x; picked dimensions have its sharding."""
    shape = chosen.shape[chosen.at : chosen.at + chosen.rank]
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, Array) and part.dtype != bool and part.shape == shape and any(spec_of(part)):
            mine, its = x.sharding, part.sharding
            if isinstance(mine, NamedSharding) and isinstance(its, NamedSharding) and mine.mesh is its.mesh:
                return part
    return None


class _Reader:
    """Writes boxes of x[index]."""

    def __init__(self, source: Source, chosen: Selection) -> None:
        self._source = source
        self._chosen = chosen
        self._picked = slice(chosen.at, chosen.at + chosen.rank)
        of_range: dict[int, Range] = {r.dim: r for r in chosen.ranges}
        # Without the picked dimensions, in the order of the result; None is a new dimension.
        self._others = [(d, of_range.get(d)) for d in range(len(chosen.shape)) if not 0 <= d - chosen.at < chosen.rank]
        self._rank = len(chosen.ranges) + len(chosen.picks)

    def fill(self, out: NDArray[Any], box: Box, position: int) -> None:
        """Writes one box of the result, which is not empty, from the tiles that it touches."""
        chosen = self._chosen
        bounds = [(0, 0)] * self._rank
        for r in chosen.ranges:
            ends = (r.start + box[r.dim].start * r.step, r.start + (box[r.dim].stop - 1) * r.step)
            bounds[r.source] = (min(ends), max(ends) + 1)
        places = []
        for pick in chosen.picks:
            part = pick.places[box[self._picked]] if chosen.rank else pick.places
            places.append(part)
            bounds[pick.source] = (int(part.min()), int(part.max()) + 1)
        for whole, data in self._source.tiles(position, bounds):
            key: list[Any] = [slice(None)] * self._rank
            target: list[Any] = []
            for d, along in self._others:
                if along is None:
                    target.append(0)
                    continue
                window = _window(along, box[d], whole[along.source])
                if window is None:
                    break
                key[along.source], part_of_out = window
                target.append(part_of_out)
            else:
                self._write(out, target, data, key, whole, places)

    def _write(
        self,
        out: NDArray[Any],
        target: list[Any],
        data: NDArray[Any],
        key: list[Any],
        whole: Box,
        places: list[NDArray[Any]],
    ) -> None:
        """Writes the elements of one tile."""
        chosen = self._chosen
        if not chosen.rank:
            for pick in chosen.picks:
                key[pick.source] = int(pick.places) - whole[pick.source].start
            out[(*target, ...)] = data[tuple(key)]
            return
        inside = [place - whole[pick.source].start for pick, place in zip(chosen.picks, places, strict=True)]
        mask: Any = True
        for pick, place in zip(chosen.picks, inside, strict=True):
            mask = mask & (place >= 0) & (place < whole[pick.source].stop - whole[pick.source].start)
        if not np.any(mask):
            return
        target[chosen.at : chosen.at] = [slice(None)] * chosen.rank
        new = sum(r is None for d, r in self._others if d < chosen.at)
        at = chosen.at - new  # the target has an int for each new dimension
        view = np.moveaxis(out[(*target, ...)], range(at, at + chosen.rank), range(chosen.rank))
        sources = [pick.source for pick in chosen.picks]
        local = np.moveaxis(data[tuple(key)], sources, range(len(sources)))
        if not inside:
            view[...] = local
        elif np.all(mask):
            view[...] = _taken(local, inside)
        else:
            here = np.nonzero(mask)
            view[here] = _taken(local, [place[here] for place in inside])


def _taken(local: NDArray[Any], places: list[NDArray[Any]]) -> NDArray[Any]:
    """Returns local[places]; take is faster for one dimension."""
    if len(places) == 1:
        return local.take(places[0], axis=0, mode="clip")  # all of them are in range
    taken: NDArray[Any] = local[tuple(places)]
    return taken


def _window(r: Range, wanted: slice, tile: slice) -> tuple[slice, slice] | None:
    """Returns the slice of a tile that a part of the result needs, and its slice of that part; None if disjoint."""
    if r.step > 0:
        first = max(wanted.start, -((r.start - tile.start) // r.step))
        stop = min(wanted.stop, -((r.start - tile.stop) // r.step))
    else:
        first = max(wanted.start, (r.start - tile.stop) // -r.step + 1)
        stop = min(wanted.stop, (r.start - tile.start) // -r.step + 1)
    if first >= stop:
        return None
    start = r.start + first * r.step - tile.start
    end = start + (stop - first) * r.step
    return slice(start, None if end < 0 else end, r.step), slice(first - wanted.start, stop - wanted.start)


def rows(x: Array, *, backwards: bool = False) -> Iterator[Array]:
    """Yields x[0], x[1], ... or in reverse order."""
    if not x.ndim:
        raise failure(
            TypeError,
            "iter",
            "an Array without dimensions cannot be iterated over",
            expected="a dimension or more",
            got="shape ()",
            fix="use x.item()",
        )
    order = range(x.shape[0])
    # All rows are taken, as in JAX also of a dimension that is sharded over Explicit axes.
    return (get(x, i, "row") for i in (reversed(order) if backwards else order))
