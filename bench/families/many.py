# SPDX-License-Identifier: Apache-2.0
"""4,096 CPU devices in one process. The first call that makes the devices is timed once a process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from measure import Row

DEVICES = 4096


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """Devices, mesh, shard map, a round trip, threads."""
    if not peer.HAS_MESHES:
        return
    begin = time.perf_counter()
    devices = peer.devices()
    yield Row("4,096 devices: make them", samples=[time.perf_counter() - begin])
    assert len(devices) == DEVICES, f"expected {DEVICES} devices, got {len(devices)}"
    grid = np.array(devices).reshape(64, 64)
    shifts = iter(range(1, 10_000))

    def new_grid() -> Any:
        return np.roll(grid, next(shifts), axis=None)

    repeats = 5 if quick else 10
    yield Row("4,096 devices: Mesh", lambda given: peer.mesh(given, ("x", "y")), new_grid, repeats=repeats)
    yield Row(
        "4,096 devices: shard map",
        lambda sharding: sharding.devices_indices_map((8192, 8192)),
        lambda: peer.named(peer.mesh(new_grid(), ("x", "y")), "x", "y"),
        repeats=repeats,
    )
    sharding = peer.named(peer.mesh(grid, ("x", "y")), ("x", "y"))
    value = np.ones((DEVICES, 16), np.float32)
    yield Row(
        "4,096 devices: put + gather (4096,16) f32",
        lambda _: peer.get(peer.put(value, sharding)),
        repeats=repeats,
    )
    yield Row("4,096 devices: threads of the process", samples=[_threads()], unit="count")


def _threads() -> float:
    with open("/proc/self/status") as file:
        return next(float(line.split()[1]) for line in file if line.startswith("Threads:"))
