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


def machine_facts() -> dict[str, Any]:
    """Conditions of a measurement."""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": memory_bytes(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
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

    source, target = (_core._host_empty((COPY_BYTES,), np.dtype(np.uint8)) for _ in range(2))
    source[...] = 1
    target[...] = 0
    limits["the core's streaming stores, all workers"] = _best(lambda: _core._copy_views([target], [source]), repeats)
    return limits


def raised(limits: dict[str, float], again: dict[str, float]) -> dict[str, float]:
    """The best of both, because a shared machine reaches its limit only at times."""
    return {name: max(rate, limits.get(name, 0.0)) for name, rate in again.items()}
