# SPDX-License-Identifier: Apache-2.0
"""Curves against the number of devices, in a world of 4,096: facts about all, and tiny work on each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from measure import Row

COUNTS = (1, 4, 16, 64, 256, 1024, 4096)
MOST_PROGRAMS = 256  # JAX compiles for each count


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """Meshes, shard maps, placing a row on each, a program with a sum on each."""
    if not peer.HAS_MESHES:
        return
    devices = np.array(peer.devices())
    shifts = itertools.count(1)
    for count in COUNTS[::3] if quick else COUNTS:
        common = {"x": float(count), "repeats": 10}

        def new_order(count: int = count) -> np.ndarray:
            return np.roll(devices, next(shifts))[:count]

        yield Row("a Mesh, new order", lambda given: peer.mesh(given, ("x",)), new_order, **common)
        yield Row(
            "devices_indices_map on a new mesh",
            lambda sharding: sharding.devices_indices_map((4096, 64)),
            lambda order=new_order: peer.named(peer.mesh(order(), ("x",)), "x"),
            **common,
        )
        kept = peer.named(peer.mesh(devices[:count], ("x",)), "x")
        value = np.ones((count, 16), np.float32)
        yield Row("device_put, 16 floats per device", lambda _, to=kept, v=value: peer.put(v, to), **common)
        if count <= MOST_PROGRAMS:
            mesh = peer.mesh(devices[:count], ("x",))
            run = peer.mapped(lambda block: peer.lax.psum(block, "x"), mesh, peer.P("x"), peer.P())
            x = peer.put(value, kept)
            yield Row("shard_map + psum of 16 floats per device", lambda _, f=run, x=x: peer.wait(f(x)), **common)
