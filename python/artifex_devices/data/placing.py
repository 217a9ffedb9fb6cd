# SPDX-License-Identifier: Apache-2.0
"""The rows of a batch that this process holds, and the placement of these rows as its part of the global batch."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from artifex_devices import tree_util
from artifex_devices._base.leaf_types import PyTree
from artifex_devices._core import NamedSharding, PartitionSpec, internal
from artifex_devices._placement.device_put import device_put
from artifex_devices._placement.target import PLACES, resolve_target, sharding_of_new
from artifex_devices._tree.prefix import per_leaf
from artifex_devices.batch_placement import place_batch
from artifex_devices.layout import Format

Rows = tuple[tuple[int, int], ...]  # intervals of dimension 0, ascending, not adjacent


class Placement:
    """The target of all batches of an iteration."""

    def __init__(self, operation: str, target: Any, *, has_mask: bool) -> None:
        """`has_mask` is whether the batches are pairs of a tree and a mask of its rows, which is placed with them.

        Raises:
            TypeError: The target is of another type.
            ValueError: It is a PartitionSpec, and no mesh is set.
        """
        self._operation = operation
        self._target = resolve_target(operation, target, "sharding")
        if has_mask:
            self._target = (self._target, _of_rows(_leaves(self._target)[0]))
        self._rows: dict[tuple[Any, int], Rows] = {}

    def rows(self, size: int) -> Rows:
        """Returns the rows that this process holds of any leaf of a batch of this size.

        Raises:
            IndivisibleError: The sharding does not divide the size (a ValueError).
        """
        return _joined(itertools.chain(*(self._rows_of(target, size) for target in _leaves(self._target))))

    def place(self, batch: PyTree, rows: Rows, size: int) -> PyTree:
        """Places the rows of this process, which `rows(size)` returned. Sends no messages."""
        if internal.current_client().process_count() == 1:
            return device_put(batch, self._target, may_alias=True)  # the arrays are new, and nothing writes to them
        leaves: list[Any]
        leaves, structure = tree_util.tree_flatten(batch)
        places = per_leaf(self._operation, "sharding", self._target, batch, PLACES)
        if not isinstance(places, list):
            places = [places] * len(leaves)
        own = [_part(leaf, rows, self._rows_of(place, size)) for leaf, place in zip(leaves, places, strict=True)]
        return place_batch(self._operation, tree_util.tree_unflatten(structure, own), self._target, size)

    def _rows_of(self, target: Any, size: int) -> Rows:
        key = (target, size)
        found = self._rows.get(key)
        if found is None:
            if len(self._rows) > 1000:  # a batch has few targets and sizes
                self._rows.clear()
            found = self._rows[key] = _rows_of(self._operation, target, size)
        return found


def _leaves(target: Any) -> list[Any]:
    return tree_util.tree_leaves(target, is_leaf=lambda node: isinstance(node, PLACES))


def _rows_of(operation: str, target: Any, size: int) -> Rows:
    """Returns the rows of dimension 0 that this process holds; the other dimensions do not count."""
    sharding = sharding_of_new(operation, target)
    others = len(sharding.spec) - 1 if isinstance(sharding, NamedSharding) else 0
    # As many elements as devices in each other dimension: every spec divides that.
    parts = internal.process_parts(sharding, (size, *[sharding.num_devices] * others), operation)
    mine = parts.get(internal.current_client().process_index())
    return _joined(mine[0]) if mine else ()


def _joined(intervals: Any) -> Rows:
    """Returns the union of intervals."""
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(intervals):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return tuple(joined)


def _part(leaf: Any, rows: Rows, wanted: Rows) -> Any:
    """Returns some rows of an array that has `rows`, one after the other."""
    if rows == wanted:
        return leaf
    pieces, before = [], 0
    for begin, end in rows:
        pieces += [leaf[before + b - begin : before + e - begin] for b, e in wanted if begin <= b and e <= end]
        before += end - begin
    return np.concatenate([leaf[:0], *pieces])


def _of_rows(target: Any) -> Any:
    """Returns the target of an array of rank 1 that has the rows of another."""
    target = target.sharding if isinstance(target, Format) else target
    return target.update(spec=PartitionSpec(*target.spec[:1])) if isinstance(target, NamedSharding) else target
