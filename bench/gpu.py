# SPDX-License-Identifier: Apache-2.0
"""Copies to, from and on a GPU against plain calls of the CUDA driver and against JAX, as a table.

JAX is measured in a process of its own, where it is installed with GPUs. Without a usable GPU every row says "not
measured". docs/performance_rows.md shows the file that `--out bench/gpu.json` writes.

Example:
    python bench/gpu.py
    python bench/gpu.py --out bench/gpu.json
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from gpu_table import BATCH, BYTES, RESHARDED, ROWS, TINY, conditions, table
from json_rows import json_rows

DRIVER = Path(__file__).resolve().parents[1] / "tests" / "python" / "contract"
ROUNDS = 20
BATCHES = 12
AHEAD = 2  # batches of JAX that are being placed while one is used


def seconds(call: Callable[[], Any], prepare: Callable[[], Any] = lambda: None) -> float:
    """The median time of a call, after two that are not counted."""
    times = []
    for _ in range(ROUNDS + 2):
        prepare()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times[2:])


def source_bytes() -> Any:
    """An ndarray of BYTES random bytes."""
    return np.random.default_rng(7).integers(0, 255, BYTES, np.uint8)


def batches() -> list[Any]:
    """BATCHES ndarrays of BATCH bytes that exist already: no time of a producer is measured."""
    return [np.random.default_rng(seed).integers(0, 255, BATCH, np.uint8) for seed in range(BATCHES)]


def by_library_and_driver() -> Iterator[tuple[float, float]]:
    """Seconds of this library and of the plain driver, for each row."""
    import artifex_devices as ad
    from artifex_devices import _core
    from artifex_devices.prefetch import prefetch_to_device

    sys.path.insert(0, str(DRIVER))
    from cuda_driver import Allocation, Gpu

    gpu, device = Gpu(0), ad.devices("cuda")[0]
    here = ad.SingleDeviceSharding(device)
    locked = ad.SingleDeviceSharding(device, memory_kind="pinned_host")
    source = source_bytes()
    host, one, other = gpu.locked_bytes(BYTES), Allocation(gpu, RESHARDED), Allocation(gpu, RESHARDED)

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
    with_two = _core.internal.make_client(None, 2, None, False, backend=_core.internal.cuda_backend(devices_per_gpu=2))
    mesh = ad.Mesh(np.array(with_two.devices()), ("x",))
    value = np.tile(source, RESHARDED // BYTES).reshape(1 << 15, -1)
    rows = ad.device_put(value, ad.NamedSharding(mesh, ad.P("x")))
    yield put(rows, ad.NamedSharding(mesh, ad.P(None, "x"))), plain(other.address, one.address, RESHARDED)
    given = batches()

    def feed() -> None:
        for batch in prefetch_to_device(iter(given), here):
            batch.block_until_ready()

    yield seconds(feed) / BATCHES, plain(one.address, host.ctypes.data, BATCH)
    yield put(np.float32(1), here), plain(one.address, host.ctypes.data, TINY)


def by_jax() -> dict[str, Any]:
    """Seconds of JAX by row, and its version. Run in a process of its own."""
    import jax

    device = jax.devices("cuda")[0]
    here = jax.sharding.SingleDeviceSharding(device)
    locked = jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host")
    source = source_bytes()

    def put(value: Any, sharding: Any) -> float:
        return seconds(lambda: jax.device_put(value, sharding).block_until_ready())

    in_locked = jax.device_put(source, locked).block_until_ready()
    on_gpu = jax.device_put(source, here).block_until_ready()
    fresh: list[Any] = []
    given = batches()

    def feed() -> None:
        waiting: deque[Any] = deque()
        for batch in given:
            waiting.append(jax.device_put(batch, here))
            if len(waiting) > AHEAD:
                waiting.popleft().block_until_ready()
        while waiting:
            waiting.popleft().block_until_ready()

    times = [
        put(in_locked, here),
        put(on_gpu, locked),
        put(source, here),
        seconds(
            lambda: np.asarray(fresh.pop()), lambda: fresh.append(jax.device_put(source, here).block_until_ready())
        ),
        None,  # needs two devices of one GPU, which JAX does not have
        seconds(feed) / BATCHES,
        put(np.float32(1), here),
    ]
    return {"version": jax.__version__, "times": times}


def of_jax() -> dict[str, Any]:
    """What by_jax returns in a new process; no version where JAX is not installed or has no GPU."""
    nothing = {"version": None, "times": [None] * len(ROWS)}
    if importlib.util.find_spec("jax") is None:
        return nothing
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "JAX_PLATFORMS": "cuda"}
    done = subprocess.run(
        [sys.executable, __file__, "--jax"], env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else nothing


def measure() -> dict[str, Any]:
    """Times of all rows and their conditions. A GPU must be usable."""
    import artifex_devices as ad
    from artifex_devices import _core

    report = _core.internal.cuda_report()
    jax = of_jax()
    version = report["driver_version"]
    rows = [
        {"name": row.name, "ours": ours, "driver": driver, "jax": by_jax}
        for row, (ours, driver), by_jax in zip(ROWS, by_library_and_driver(), jax["times"], strict=True)
    ]
    return {
        "gpu": report["gpus"][0]["name"],
        "cuda": f"{version // 1000}.{version % 1000 // 10}",
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "artifex_devices": ad.__version__,
        "jax": jax["version"],
        "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC",
        "rounds": ROUNDS,
        "rows": rows,
    }


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="file for the numbers, JSON")
    parser.add_argument("--jax", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.jax:
        print(json.dumps(by_jax()))
        return 0
    from artifex_devices import _core

    report = _core.internal.cuda_report()
    if report["problem"]:
        print(f"{table(None)}\nNot measured: CUDA is not usable: {report['problem']}; {report['fix']}.")
        return 0
    measured = measure()
    print(f"{table(measured)}\n{conditions(measured)}.")
    if options.out:
        options.out.write_text(json_rows(measured), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
