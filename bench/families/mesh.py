# SPDX-License-Identifier: Apache-2.0
"""Creating meshes and shardings, and computing index maps. Both libraries cache meshes and results."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from measure import Row

SHAPE = (8192, 8192)


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """Rows with 8 devices."""
    if not peer.HAS_MESHES:
        return
    devices = peer.devices()
    grid = np.array(devices).reshape(2, 4)
    mesh = peer.mesh(grid, ("x", "y"))
    orders = itertools.permutations(devices)

    def new_mesh() -> Any:
        return np.array(next(orders)).reshape(2, 4)

    yield Row("Mesh of 8, equal to an existing one", lambda _: peer.mesh(grid, ("x", "y")), calls=200, repeats=30)
    yield Row("Mesh of 8, a new order", lambda given: peer.mesh(given, ("x", "y")), new_mesh, repeats=200)
    yield Row("NamedSharding", lambda _: peer.named(mesh, "x", "y"), calls=200, repeats=30)
    yield Row("PartitionSpec", lambda _: peer.P("x", ("y", "z"), None), calls=200, repeats=30)
    kept = peer.named(mesh, "x", "y")
    yield Row("shard_shape, repeated", lambda _: kept.shard_shape(SHAPE), calls=200, repeats=30)
    yield Row("devices_indices_map, repeated", lambda _: kept.devices_indices_map(SHAPE), calls=50, repeats=30)
    yield Row(
        "NamedSharding on a new mesh + devices_indices_map",
        lambda given: peer.named(given, "x", "y").devices_indices_map(SHAPE),
        lambda: peer.mesh(new_mesh(), ("x", "y")),
        repeats=200,
    )
