# SPDX-License-Identifier: Apache-2.0
"""Copies to, from and on a GPU against plain calls of the CUDA driver, as a table.

Without a usable GPU every row says "not measured".

Example:
    python bench/gpu.py
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import artifex_devices as ad
import numpy as np
from artifex_devices import _core

DRIVER = Path(__file__).resolve().parents[1] / "tests" / "python" / "contract"
BYTES = 256 << 20
TINY = 4
ROUNDS = 20
# name, bytes moved over the slower side of the copy, goal
ROWS = (
    ("host to GPU, locked memory", BYTES, "95 % of cuMemcpyAsync"),
    ("GPU to host, locked memory", BYTES, "95 % of cuMemcpyAsync"),
    ("host to GPU, an ndarray", BYTES, "3 times JAX's device_put"),
    ("GPU to host, an ndarray", BYTES, ""),
    ("rows to columns on one GPU", 2 * BYTES, "90 % of a copy on the GPU"),
    ("device_put of 4 bytes", TINY, "less than JAX's"),
)


def seconds(call: Callable[[], Any], prepare: Callable[[], Any] = lambda: None) -> float:
    """The median time of a call, after one that is not counted."""
    times = []
    for _ in range(ROUNDS + 1):
        prepare()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def measured() -> Iterator[tuple[float, float]]:
    """Seconds of this library and of the plain driver, for each row; 0 where there is no plain call."""
    sys.path.insert(0, str(DRIVER))
    from cuda_driver import Allocation, Gpu

    gpu, device = Gpu(0), ad.devices("cuda")[0]
    here = ad.SingleDeviceSharding(device)
    locked = ad.SingleDeviceSharding(device, memory_kind="pinned_host")
    source = np.random.default_rng(7).integers(0, 255, BYTES, np.uint8)
    host, one, other = gpu.locked_bytes(BYTES), Allocation(gpu, BYTES), Allocation(gpu, BYTES)

    def plain(to: int, origin: int, count: int = BYTES) -> float:
        def copy() -> None:
            gpu.start_copy(to, origin, count)
            gpu.wait()

        return seconds(copy)

    def put(value: Any, sharding: Any) -> float:
        return seconds(lambda: ad.device_put(value, sharding).block_until_ready())

    in_locked = ad.device_put(source, locked)
    yield put(in_locked, here), plain(one.address, host.ctypes.data)
    on_gpu = ad.device_put(source, here)
    yield put(on_gpu, locked), plain(host.ctypes.data, one.address)
    yield put(source, here), plain(one.address, host.ctypes.data)
    fresh: list[Any] = []
    yield (
        seconds(lambda: ad.device_get(fresh.pop()), lambda: fresh.append(ad.device_put(source, here))),
        plain(host.ctypes.data, one.address),
    )
    with_two = _core._make_client(None, 2, None, False, platform="cuda", devices_per_gpu=2)
    mesh = ad.Mesh(np.array(with_two.devices()), ("x",))
    rows = ad.device_put(source.reshape(1 << 14, -1), ad.NamedSharding(mesh, ad.P("x")))
    yield put(rows, ad.NamedSharding(mesh, ad.P(None, "x"))), plain(other.address, one.address)
    yield put(np.float32(1), here), plain(one.address, host.ctypes.data, TINY)


def text(nbytes: int, took: float) -> str:
    """A rate, or microseconds for a tiny copy."""
    if not took:
        return "-"
    return f"{took * 1e6:.1f} us" if nbytes == TINY else f"{nbytes / took / 1e9:.1f} GB/s"


def main() -> int:
    """Prints the table."""
    report = _core._cuda_report()
    print("| copy | this library | plain driver | share | goal |\n|---|---|---|---|---|")
    if report["problem"]:
        for name, _, goal in ROWS:
            print(f"| {name} | not measured | not measured | not measured | {goal} |")
        print(f"\nNot measured: CUDA is not usable: {report['problem']}; {report['fix']}.")
        return 0
    for (name, nbytes, goal), (ours, plain) in zip(ROWS, measured(), strict=True):
        print(f"| {name} | {text(nbytes, ours)} | {text(nbytes, plain)} | {plain / ours:.0%} | {goal} |", flush=True)
    print(f"\n{report['gpus'][0]['name']}, CUDA {report['driver_version']} of {report['library']}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
