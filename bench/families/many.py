# SPDX-License-Identifier: Apache-2.0
"""4,096 CPU devices in one process, reshards over 8 and over all of them, and a mesh of 1,048,576 devices without
memory.

The first call that makes the devices is timed once for each process. JAX cannot make a million CPU devices.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from measure import Row

DEVICES = 4096
VERY_MANY = 1 << 20


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """Devices, mesh, shard map, a round trip, threads; then the million."""
    if not peer.HAS_MESHES:
        return
    begin = time.perf_counter()
    devices = peer.devices()
    yield Row("4,096 devices: create", samples=[time.perf_counter() - begin])
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
    yield Row("4,096 devices: threads of the process", samples=[_status("Threads:")], unit="count")
    if peer.NAME == "artifex_devices":
        yield from _reshards(peer, devices, repeats)
        yield from _very_many(repeats)


def _reshards(peer: Any, devices: Any, repeats: int) -> Iterator[Row]:
    """From rows to columns, with a copy for each pair of shards, of which JAX would compile millions."""
    value = np.ones((4096, 4096), np.float32)
    for count in (8, DEVICES):
        mesh = peer.mesh(np.array(devices[:count]), ("x",))
        array = peer.put(value, peer.named(mesh, "x"))
        to = peer.named(mesh, None, "x")
        yield Row(
            f"reshard 64 MiB, rows -> columns, {count:,} devices",
            lambda _, array=array, to=to: peer.put(array, to),
            bytes=value.nbytes,
            repeats=repeats,
        )


def _very_many(repeats: int) -> Iterator[Row]:
    """Planning for 1,048,576 devices: a query about one of them touches no other."""
    import artifex_devices as ad

    gc.collect()
    before = _status("VmRSS:")
    with ad.simulate(VERY_MANY, compile_only=True):
        mesh = ad.make_mesh((1024, 1024), ("x", "y"))
        yield Row(
            "1,048,576 devices: memory of one, before use",
            samples=[1024 * (_status("VmRSS:") - before) / VERY_MANY],
            unit="bytes",
        )
        rows = ad.NamedSharding(mesh, ad.P(("x", "y")))
        plane = ad.NamedSharding(mesh, ad.P("x", "y"))
        devices = ad.make_mesh((4,), ("z",)).devices
        shape = (1 << 20, 1 << 20)
        yield Row("1,048,576 devices: mesh", lambda _: ad.make_mesh((1024, 1024), ("x", "y")), repeats=repeats)
        yield Row(
            "1,048,576 devices: NamedSharding, its hash, text and shard shape",
            lambda spec: _look(ad.NamedSharding(mesh, spec), shape),
            lambda: ad.P(("y", "x")) + ad.P(),
            repeats=repeats,
        )
        yield Row(
            "1,048,576 devices: one device's shard index",
            lambda _: plane.device_index(devices[3], shape),
            calls=200,
            repeats=repeats,
        )
        yield Row(
            "1,048,576 devices: byte totals of a reshard, rows to 2-D blocks",
            lambda _: ad._core.internal.reshard_bytes(rows, plane, shape, 4),
            repeats=repeats,
        )


def _look(sharding: Any, shape: tuple[int, int]) -> Any:
    return hash(sharding), repr(sharding), sharding.shard_shape(shape), sharding == sharding.with_memory_kind("device")


def _status(name: str) -> float:
    with open("/proc/self/status") as file:
        return next(float(line.split()[1]) for line in file if line.startswith(name))
