# SPDX-License-Identifier: Apache-2.0
"""Placing batches: one process places the global batch, several processes each their own part."""

from __future__ import annotations

from typing import Any

from artifex_devices._base.leaf_types import PyTree, Tree
from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices._core import Array, Sharding, internal
from artifex_devices._placement.device_put import device_put
from artifex_devices._placement.target import TargetTree
from artifex_devices._tree.prefix import per_leaf
from artifex_devices.layout import Format

__all__ = ["batch_share", "place_batch"]
add_public_lookup(__name__)


def place_batch(operation: str, batch: Tree, target: TargetTree, length: int | None = None) -> PyTree:
    """Places a batch by device_put, except that each process gives its own part of ndarrays that span processes.

    Sends no messages unless `exchanges_sizes`; without them it can run concurrently with other work, as prefetching
    does.

    Args:
        operation: Name of the operation, for messages.
        batch: Tree of arrays and numbers. Arrays in it are moved from their placement.
        target: A target that `resolve_target` returned.
        length: Size of dimension 0 of the global batch, of which a process may then hold any rows, or none. By default
            it follows from the parts.

    Raises:
        ValueError: A part does not fit the sharding, or does not determine the global shape.
    """
    if internal.current_client().process_count() == 1:
        return device_put(batch, target)
    from artifex_devices import tree_util
    from artifex_devices._placement.construct import array_from_local_data, array_without_shards

    leaves, structure = tree_util.tree_flatten(batch)
    places = _places(operation, batch, target, len(leaves))
    placed = []
    for number, (leaf, place) in enumerate(zip(leaves, places, strict=True)):
        sharding = place.sharding if isinstance(place, Format) else place
        if not isinstance(leaf, Array) and isinstance(sharding, Sharding) and not sharding.is_fully_addressable:
            path = tree_util.keystr(structure.paths()[number])
            shape = None if length is None else (length, *leaf.shape[1:])
            if shape is not None and not sharding.has_addressable_devices:
                leaf = array_without_shards(operation, sharding, shape, leaf.dtype)
            else:
                leaf = array_from_local_data(operation, sharding, leaf, shape, f"leaf {path}: " if path else "")
        placed.append(device_put(leaf, place))
    return tree_util.tree_unflatten(structure, placed)


def exchanges_sizes(operation: str, batch: Tree, target: TargetTree) -> bool:
    """Returns whether place_batch of these makes the processes exchange the sizes of their parts.

    It does for ndarrays on a sharding with `uneven="last-short"` that spans processes.
    """
    if internal.current_client().process_count() == 1:
        return False
    from artifex_devices import tree_util
    from artifex_devices._placement.construct import needs_agreement

    leaves = tree_util.tree_leaves(batch)
    places = _places(operation, batch, target, len(leaves))
    return any(not isinstance(x, Array) and needs_agreement(place) for x, place in zip(leaves, places, strict=True))


def _places(operation: str, batch: Tree, target: TargetTree, count: int) -> list[Any]:
    """Returns the targets of `count` leaves."""
    from artifex_devices._placement.target import PLACES

    places = per_leaf(operation, "sharding", target, batch, PLACES)
    return places if isinstance(places, list) else [places] * count


def batch_share(sharding: object, length: int, dimension: int = 0) -> slice:
    """Returns the rows of a batch that this process holds.

    Args:
        sharding: Sharding of the global batch, or another target of `device_put`; only its effect on `dimension`
            counts.
        length: Size of that dimension in the global batch.
        dimension: Number of the dimension.

    Returns:
        A slice of the dimension: all of it in a single process, or where every process holds everything.

    Raises:
        ValueError: The rows of this process are not contiguous, or it has no rows.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> from artifex_devices.batch_placement import batch_share
        >>> with ad.simulate(4):
        ...     batch_share(ad.NamedSharding(ad.Mesh(np.array(ad.devices()), ("data",)), ad.P("data")), 64)
        slice(0, 64, None)
    """
    from artifex_devices._placement.target import resolve_target, sharding_of_new

    target = resolve_target("batch_share", sharding, "sharding")
    return slice(*internal.batch_share(sharding_of_new("batch_share", target), length, dimension))
