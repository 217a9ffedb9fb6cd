# SPDX-License-Identifier: Apache-2.0
"""Measures the links between the processes of a job; all of them run it together."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from artifex_devices import lax, multihost_utils
from artifex_devices._base.timing import Repeats, without_garbage_collection
from artifex_devices._core import Mesh, NamedSharding, PartitionSpec
from artifex_devices._placement.construct import make_array_from_callback
from artifex_devices._placement.device_put import device_put
from artifex_devices._runtime.devices import devices
from artifex_devices._spmd.shard_map import shard_map
from artifex_devices.distributed import job
from artifex_devices.planner.calibration import ProcessLink

_SMALL = 16  # floats
_LARGE_BYTES = 16 << 20  # sent by each process, and the block of each device in a sum
_SMALL_REPEATS = 51
_LARGE_REPEATS = 7


def measure_processes(largest_bytes: int) -> ProcessLink | None:
    """Measures latencies and rates with blocks up to `largest_bytes`, the same in all processes.

    Returns None in a job of one process.

    Raises:
        CollectiveError: Another process ran another collective, or has ended.
    """
    membership = job.members()
    if membership is None or len(membership[1]) < 2:
        return None
    _, members, local_peers = membership
    first_devices: dict[int, Any] = {}
    for device in devices():
        first_devices.setdefault(device.process_index, device)
    block = min(_LARGE_BYTES, largest_bytes // len(devices())) // 4
    ring = Mesh(np.array(list(first_devices.values())), ("i",))
    mesh = Mesh(np.array(devices()), ("i",))
    latency = _slowest(_send_to_next(ring, _SMALL), _SMALL_REPEATS)
    large = _slowest(_send_to_next(ring, block), _LARGE_REPEATS)
    sum_latency = _slowest(_psum(mesh, _SMALL), _SMALL_REPEATS)
    sum_large = _slowest(_psum(mesh, block), _LARGE_REPEATS)
    return ProcessLink(
        processes=len(members),
        hosts=len({member.host for member in members}),
        transport=_transport(),
        latency=latency,
        rate=4 * block / max(large - latency, 1e-9),
        sum_latency=sum_latency,
        sum_rate=4 * block / max(sum_large - sum_latency, 1e-9),
        shared_memory=bool(local_peers),
    )


def _send_to_next(ring: Mesh, count: int) -> Callable[[], Any]:
    """Sends the block of each process to the next one."""
    rolled = Mesh(np.roll(ring.devices, 1), ("i",))
    source, destination = (NamedSharding(each, PartitionSpec("i")) for each in (ring, rolled))
    values = make_array_from_callback((count * ring.size,), source, lambda index: np.ones(count, np.float32))
    return lambda: device_put(values, destination).block_until_ready()


def _psum(mesh: Mesh, count: int) -> Callable[[], Any]:
    spec = PartitionSpec("i")
    values = make_array_from_callback(
        (count * mesh.size,), NamedSharding(mesh, spec), lambda index: np.ones(count, np.float32)
    )
    program = shard_map(lambda x: lax.psum(x, "i"), mesh=mesh, in_specs=spec, out_specs=PartitionSpec())
    return lambda: program(values).block_until_ready()


def _slowest(run: Callable[[], Any], repeats: int) -> float:
    """Returns the seconds of the slowest process; all start each repeat together."""
    times = []
    run()
    run()
    with without_garbage_collection():
        for _ in range(repeats):
            multihost_utils.sync_global_devices("calibrate")
            begin = time.perf_counter()
            run()
            times.append(time.perf_counter() - begin)
    return Repeats(multihost_utils.process_allgather(np.array(times)).max(axis=0).tolist()).seconds


def _transport() -> str:
    from mpi4py import MPI

    first = MPI.Get_library_version().split("\n")[0].split("\0")[0]
    return " ".join("".join(c if c.isprintable() else " " for c in first).split())[:200]
