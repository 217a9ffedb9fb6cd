# SPDX-License-Identifier: Apache-2.0
"""Facts of the machine, and its peak rate of copying memory."""

from __future__ import annotations

import datetime
import os
import platform
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

COPY_BYTES = 256 << 20
QUIET_LOAD = 0.5
_QUIET_SECONDS = 240.0  # the load average falls by e in a minute, from 50 or so after a run with many threads


def cpu_model() -> str:
    """Model name in /proc/cpuinfo."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def memory_bytes() -> int:
    """Physical memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def load_when_quiet(seconds: float = _QUIET_SECONDS) -> float:
    """Polls the load average until it is below QUIET_LOAD or the seconds have passed, and returns it.

    Without the wait it would show the threads of a measurement that has just ended.
    """
    end = time.monotonic() + seconds
    while (load := os.getloadavg()[0]) >= QUIET_LOAD and time.monotonic() < end:
        time.sleep(1)
    return load


def machine_facts(*, quick: bool) -> dict[str, Any]:
    """Conditions of a measurement; waits for a quiet machine unless `quick`."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": memory_bytes(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_before": load_when_quiet(0 if quick else _QUIET_SECONDS),
    }


def _best(run: Any, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return COPY_BYTES / min(times)


def numpy_copy_rate(threads: int, repeats: int) -> float:
    """Bytes per second of np.copyto, split over threads."""
    source = np.ones(COPY_BYTES, np.uint8)
    target = np.zeros(COPY_BYTES, np.uint8)
    parts = [
        (target[begin : begin + COPY_BYTES // threads], source[begin : begin + COPY_BYTES // threads])
        for begin in range(0, COPY_BYTES, COPY_BYTES // threads)
    ]
    with ThreadPoolExecutor(threads) as pool:
        return _best(lambda: list(pool.map(lambda part: np.copyto(*part), parts)), repeats)


def copy_limits(*, quick: bool) -> dict[str, float]:
    """Bytes per second of a streaming copy of 256 MiB into existing memory, best of several.

    Source: measured here, by NumPy's loop and by the core's, whose stores bypass the cache, between huge pages.
    """
    repeats = 3 if quick else 10
    cores = len(os.sched_getaffinity(0))
    counts = sorted({1, cores})
    limits = {f"numpy copyto, {n} threads": numpy_copy_rate(n, repeats) for n in counts}
    from artifex_devices import _core

    source, target = (_core.internal.host_empty((COPY_BYTES,), np.dtype(np.uint8)) for _ in range(2))
    source[...] = 1
    target[...] = 0
    copy_views = _core.internal.copy_views
    limits["the core's streaming stores, all workers"] = _best(lambda: copy_views([target], [source]), repeats)
    return limits


def raised(limits: dict[str, float], again: dict[str, float]) -> dict[str, float]:
    """The best of both, because a shared machine reaches its limit only at times."""
    return {name: max(rate, limits.get(name, 0.0)) for name, rate in again.items()}
