# SPDX-License-Identifier: Apache-2.0
"""Measures what the machine's CPU devices can do, once for each machine: see `measure_roofline`."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import os
import threading
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from artifex_devices import _core
from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Device, __version__
from artifex_devices._hardware.fingerprint import core_frequency_hz, cpu_model, machine_fingerprint
from artifex_devices._runtime.device_arguments import check_device
from artifex_devices._runtime.devices import devices
from artifex_devices.roofline.cache import (
    cache_directory,
    check_cache,
    file_of,
    read_measurement,
    write_measurement,
)
from artifex_devices.roofline.measured import Conditions, MeasuredRoofline, Rate, rate_of

__all__ = ["measure_roofline", "measuring"]

_DTYPES = ("float32", "float64")
_WINDOW_SECONDS = 0.02
_QUOTA_WINDOW_SECONDS = 0.2  # two periods of a cgroup's quota
_FLOPS_FLOOR = 0.05
_BANDWIDTH_FLOOR = 0.10
_NUMPY_SIDE = 1024
_SHORTEST = 0.01
_LONGEST = 600.0
_LARGE_ERROR = 0.25  # from here on it is said to be one, and why

_PREFIX = "roofline"

# Two measurements at a time would measure each other. Progress goes to sys.stderr, which may be the user's: a write
# that measures again must not wait for itself.
_lock = threading.RLock()
_found: dict[str, MeasuredRoofline] = {}  # of this process, by the name of their file


def measuring() -> contextlib.AbstractContextManager[bool]:
    """The lock that whoever measures this machine holds meanwhile."""
    return _lock


def measure_roofline(
    device: Device | None = None,
    *,
    refresh: bool = False,
    seconds: float = 2.0,
    isa: str | None = None,
    cache: str | os.PathLike[str] | bool | None = None,
) -> MeasuredRoofline:
    """FLOP/s and bytes/s that CPU devices reach, measured on their own workers and kept for the machine.

    Products of float32 and float64 matrices that stay in the caches are computed by all workers of the device at once,
    by a compiled product for the best instruction set of the processor, and by NumPy's own where the device has all
    cores of the process: the best is the peak. STREAM's loops run over arrays of four times the caches, with plain
    stores and with those that bypass the cache. Each is repeated in stretches of 20 ms (200 ms under a CPU quota) until
    the three best lie within 2 % or its time is up.

    Args:
        device: A CPU device; None is all of the process together. The other devices are given no work meanwhile.
        refresh: Measure now, whatever is kept.
        seconds: How long to measure at most, about; ten times as long under a CPU quota.
        isa: Instruction set of the product: "baseline", "avx2", "avx512". None tries those that there are; the
            baseline only where it is the only one.
        cache: Directory in which the result is kept, True for the user's, False to keep nothing and measure now; None
            is what the environment variable ARTIFEX_DEVICES_CACHE says ("off" or a directory), else the user's.

    Returns:
        A MeasuredRoofline: rates with their spread and error, the conditions, and whether it is from the cache. A file
        there that is damaged, of another machine or of another user is not used, which its `notes` tell.

    Raises:
        ValueError: If `isa` is not one that the processor runs, or `seconds` is out of range.
        TypeError: If an argument is of the wrong type.
        RuntimeError: If the device is compile-only, or the machine is too busy for a single repeat.
        MemoryError: If there is no memory to stream over.
        KeyboardInterrupt: At Ctrl-C, at once.

    Example:
        >>> from artifex_devices.roofline import measure_roofline
        >>> found = measure_roofline(seconds=0.2, cache=False)
        >>> found.peak_flops["float32"].best > 1e8 and found.bandwidth.best > 1e8
        True
    """
    if device is not None:
        check_device("measure_roofline", "device", device)
    seconds = _checked_seconds(seconds)
    _check_isa(isa)
    check_cache("measure_roofline", cache)
    lanes, _, all_lanes = _core._measured_scope(device)
    together = len(lanes) == all_lanes
    who = "all CPU devices" if device is None else str(device)
    sharing = _devices_on(lanes, device)
    fingerprint = {**machine_fingerprint(), "lanes": list(lanes), "isa": isa or "best"}
    directory, reason = cache_directory(cache)
    name = str(file_of(directory, fingerprint, _PREFIX)) if directory else ""
    with measuring():
        notes = [reason] if reason else []
        if directory is not None and not refresh:
            kept, why = _kept(name, directory, fingerprint)
            if kept is not None:
                conditions = dataclasses.replace(kept.conditions, devices_sharing=sharing)
                return dataclasses.replace(kept, scope=who, conditions=conditions)
            notes += [why] if why else []
        found = _measured(device, who, sharing, together, seconds, isa)
        if directory is not None:
            notes.append(write_measurement(file_of(directory, fingerprint, _PREFIX), fingerprint, found))
        found = dataclasses.replace(found, notes=(*found.notes, *notes))
        if directory is not None:
            _found[name] = found
        return found


def _kept(name: str, directory: Any, fingerprint: Mapping[str, Any]) -> tuple[MeasuredRoofline | None, str]:
    if name in _found:
        return dataclasses.replace(_found[name], from_cache=True), ""
    path = file_of(directory, fingerprint, _PREFIX)
    kept, why = read_measurement(path, fingerprint, MeasuredRoofline.from_dict)
    if kept is not None:
        kept = _found[name] = dataclasses.replace(kept, from_cache=True, notes=(*kept.notes, f"read from {path}"))
    return kept, why


def _checked_seconds(seconds: Any) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(
            f"measure_roofline: seconds is {shown(seconds)} ({type(seconds).__name__}); expected a number; say "
            "seconds=2.0"
        )
    if not _SHORTEST <= seconds <= _LONGEST:
        raise ValueError(
            f"measure_roofline: seconds is {shown(seconds)}; expected {_SHORTEST} to {_LONGEST:.0f}; say seconds=2.0"
        )
    return float(seconds)


def _check_isa(isa: Any) -> None:
    known = _core._gemm_isas()
    if isa is not None and isa not in known:
        raise (ValueError if isinstance(isa, str) else TypeError)(
            f"measure_roofline: isa is {shown(isa)}; expected None or one that this processor runs: "
            f"{', '.join(map(repr, known))}; leave it out for the fastest"
        )


def _devices_on(lanes: list[int], device: Device | None) -> int:
    """Devices of the world that share the measured cores; 1 where all of them were meant."""
    if device is None:
        return 1
    return sum(1 for each in devices() if _core._measured_scope(each)[0] == lanes)


def _measured(
    device: Device | None, who: str, sharing: int, together: bool, seconds: float, isa: str | None
) -> MeasuredRoofline:
    _, workers, _ = _core._measured_scope(device)
    quota = _core._cgroup_cpus()
    expected = min(1.0, quota / workers) if quota else 1.0
    window = _WINDOW_SECONDS
    if expected < 1:
        window, seconds = _QUOTA_WINDOW_SECONDS, 10 * seconds
    date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    load, frequency = _load_average(), core_frequency_hz()
    isas = [isa] if isa else _core._gemm_isas()
    if len(isas) > 1:
        isas = isas[1:]  # the baseline is never the fastest of several
    products: dict[str, list[Rate]] = {}
    notes: list[str] = []
    told: dict[str, Any] = {}
    chosen = isas[-1]
    for dtype in _DTYPES:
        rates = []
        for each in isas:
            told = _core._measure_gemm(device, each, dtype, seconds / 4 / len(isas), window)
            how = f"product by Eigen, {each}, {told['workers']} workers"
            rates.append(rate_of(told["rates"], told["shares"], expected_share=expected, floor=_FLOPS_FLOOR, how=how))
        fastest = max(range(len(rates)), key=lambda i: rates[i].best)
        chosen = isas[fastest]
        if together:
            rates.append(_numpy_product(dtype, seconds / 8, window, expected))
        products[dtype] = rates
    if not together:
        notes.append("NumPy's product was not measured: its threads are not bound to one device's cores")
    if told["workers"] < workers:
        notes.append(f"only {told['workers']} of {workers} workers could run at the same time")
    kernels, array_bytes, cache_bytes = _core._measure_streams(device, seconds / 3, window)
    streams = [
        rate_of(
            series["rates"],
            series["shares"],
            expected_share=expected,
            floor=_BANDWIDTH_FLOOR,
            how=f"STREAM {kernel}, {series['workers']} workers",
        )
        for kernel, series in kernels.items()
    ]
    if cache_bytes and array_bytes < 2 * cache_bytes:
        notes.append(
            f"arrays of {array_bytes} bytes, for want of memory, are not well above the caches ({cache_bytes} bytes): "
            "bytes/s may be too high"
        )
    best = [max(rates, key=lambda rate: rate.best) for rates in (*products.values(), streams)]
    error = max(rate.relative_error for rate in best)
    if error > _LARGE_ERROR:
        notes.append(
            f"the machine was busy, or the time short: an error of {100 * error:.0f} %; measure anew on a quiet machine"
        )
    conditions = Conditions(
        date=date,
        cpu_model=cpu_model(),
        isa=chosen,
        workers=told["workers"],
        bound_workers=told["bound_workers"],
        devices_sharing=sharing,
        together=together,
        load_average=load,
        frequency_hz=frequency,
        cpu_quota=quota,
        array_bytes=array_bytes,
        cache_bytes=cache_bytes or None,
        numpy_version=np.__version__,
        library_version=__version__,
    )
    return MeasuredRoofline.from_rates(who, products, streams, conditions, notes)


def _numpy_product(dtype: str, seconds: float, window: float, expected_share: float) -> Rate:
    """FLOP/s of `np.matmul`, in windows of whole calls."""
    a, b, out = (np.full((_NUMPY_SIDE, _NUMPY_SIDE), 0.5, dtype) for _ in range(3))
    np.matmul(a, b, out=out)
    cores = len(os.sched_getaffinity(0))
    rates, shares = [], []
    end = time.perf_counter() + seconds
    begin, cpu_begin, calls = time.perf_counter(), time.process_time(), 0
    while True:
        np.matmul(a, b, out=out)
        calls += 1
        now = time.perf_counter()
        if now - begin >= window:
            cpu_now = time.process_time()
            rates.append(2.0 * _NUMPY_SIDE**3 * calls / (now - begin))
            shares.append(min(1.0, (cpu_now - cpu_begin) / (now - begin) / cores))
            begin, cpu_begin, calls = now, cpu_now, 0
            if now >= end:
                break
    return rate_of(
        rates,
        shares,
        expected_share=expected_share,
        floor=_FLOPS_FLOOR,
        how=f"np.matmul of {_NUMPY_SIDE} x {_NUMPY_SIDE}, NumPy {np.__version__} ({_blas_name()})",
    )


def _blas_name() -> str:
    """The BLAS that NumPy is likely to call, its version and threads."""
    import threadpoolctl

    blas = [each for each in threadpoolctl.threadpool_info() if each.get("user_api") == "blas"]
    numpys = [each for each in blas if "numpy" in str(each.get("filepath", ""))] or blas
    if not numpys:
        return "BLAS unknown"
    found = numpys[0]
    return f"{found.get('internal_api')} {found.get('version')}, {found.get('num_threads')} threads"


def _load_average() -> float | None:
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


def _start_anew() -> None:
    global _lock
    _lock = threading.RLock()  # another thread may have held it when the process was forked


os.register_at_fork(after_in_child=_start_anew)
