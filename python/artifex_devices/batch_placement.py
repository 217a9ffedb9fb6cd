# SPDX-License-Identifier: Apache-2.0
"""Placing batches: by one process the whole of it, by several each its own part."""

from __future__ import annotations

import itertools
from typing import Any

from artifex_devices import _core
from artifex_devices._core import Array, NamedSharding, Sharding
from artifex_devices._placement.device_put import device_put
from artifex_devices._tree.prefix import per_leaf

__all__ = ["batch_share", "place_batch"]


def place_batch(operation: str, batch: Any, target: Any) -> Any:
    """device_put; but of ndarrays to devices of several processes each process gives its own part.

    No message is sent for it, so that it may run beside other work, as prefetching does.

    Args:
        operation: Begins messages.
        batch: Tree of arrays and numbers. Arrays in it are moved, whatever they lie on.
        target: A Device or Sharding, or a prefix tree of them.

    Raises:
        ValueError: A part does not fit the sharding, or the shape of the whole does not follow from it.
    """
    if _core._current_client().process_count() == 1:
        return device_put(batch, target)
    from artifex_devices import tree_util
    from artifex_devices._placement.construct import make_array_from_process_local_data
    from artifex_devices._placement.target import PLACES

    leaves, structure = tree_util.tree_flatten(batch)
    places = per_leaf(operation, "sharding", target, batch, PLACES)
    placed = []
    for number, leaf in enumerate(leaves):
        place = places[number] if isinstance(places, list) else places
        is_shared = isinstance(place, Sharding) and not place.is_fully_addressable
        if is_shared and not isinstance(leaf, Array):
            placed.append(make_array_from_process_local_data(place, leaf))
        else:
            placed.append(device_put(leaf, place))
    return tree_util.tree_unflatten(structure, placed)


def batch_share(sharding: Sharding, length: int, dimension: int = 0) -> slice:
    """Which rows of a batch this process feeds.

    Args:
        sharding: Of the whole batch; only what it does to `dimension` counts.
        length: Of that dimension in the whole batch.
        dimension: Its number.

    Returns:
        A slice of the dimension: everything in a process alone, or where no process has less than all.

    Raises:
        ValueError: The rows of this process do not follow each other, or it has none.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> from artifex_devices.batch_placement import batch_share
        >>> with ad.simulate(4):
        ...     batch_share(ad.NamedSharding(ad.Mesh(np.array(ad.devices()), ("data",)), ad.P("data")), 64)
        slice(0, 64, None)
    """
    spec = sharding.spec if isinstance(sharding, NamedSharding) else ()
    rank = max(dimension + 1, len(spec))
    shape = tuple(length if d == dimension else sharding.num_devices for d in range(rank))
    boxes = {
        (box[dimension].start or 0, length if box[dimension].stop is None else box[dimension].stop)
        for box in sharding.addressable_devices_indices_map(shape).values()
    }
    rows = sorted(boxes)
    follow = all(one[1] == other[0] for one, other in itertools.pairwise(rows))
    if not rows or not follow:
        raise ValueError(
            f"batch_share: the rows that this process holds of {sharding} are {rows}; expected some that follow each "
            "other; order the mesh by process, as make_mesh and DeviceMeshManager do"
        )
    return slice(rows[0][0], rows[-1][1])
