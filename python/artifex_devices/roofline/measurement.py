# SPDX-License-Identifier: Apache-2.0
"""Measurement of the machine's CPU devices, once for each machine: see `measure_roofline`."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from artifex_devices import _core
from artifex_devices._base.checks import check_number, wrong_value
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Device, __version__
from artifex_devices._hardware.fingerprint import core_frequency_hz, cpu_model, machine_fingerprint
from artifex_devices._runtime.device_arguments import check_device
from artifex_devices._runtime.devices import devices
from artifex_devices.roofline.cache import (
    cache_directory,
    check_cache,
    measurement_path,
    read_measurement,
    write_measurement,
)
from artifex_devices.roofline.measured import Conditions, MeasuredRoofline, Rate, rate_of

_DTYPES = ("float32", "float64")
_WINDOW_SECONDS = 0.02
_QUOTA_WINDOW_SECONDS = 0.2  # two periods of a cgroup's quota
_FLOPS_FLOOR = 0.05
_BANDWIDTH_FLOOR = 0.10
_NUMPY_SIDE = 1024
_SHORTEST = 0.01
_LONGEST = 600.0
_LARGE_ERROR = 0.25  # from here on a note warns of it

_PREFIX = "roofline"

# Simultaneous measurements would disturb each other. The lock is reentrant, as a user's sys.stderr that gets the
# progress may measure too.
_lock = threading.RLock()
_measurements: dict[Path, MeasuredRoofline] = {}  # of this process, by the path of their file


def measurement_lock() -> contextlib.AbstractContextManager[bool]:
    """The lock that a measurement of this machine holds."""
    return _lock


def measure_roofline(
    device: Device | None = None,
    *,
    refresh: bool = False,
    seconds: float = 2.0,
    isa: str | None = None,
    cache: str | os.PathLike[str] | bool | None = None,
) -> MeasuredRoofline:
    """Measures the FLOP/s and bytes/s of CPU devices on their own workers, and stores them for the machine.

    All workers of the device compute products of float32 and float64 matrices that fit in the caches, with a compiled
    product for the best instruction set of the processor, and with NumPy's own if the device has all cores of the
    process: the best is the peak. STREAM's loops run over arrays of four times the caches, with plain stores and with
    stores that bypass the cache. Each is repeated for 20 ms (200 ms under a CPU quota) at a time, until the three best
    repeats differ by at most 2 % or its time is up.

    Args:
        device: A CPU device; None means all of the process together. The other devices get no work meanwhile.
        refresh: Whether to measure now, even if a measurement is stored.
        seconds: Approximate longest duration in seconds; ten times as long under a CPU quota.
        isa: Instruction set of the product: "baseline", "avx2", "avx512". None tries those of the processor; the
            baseline only if there is no other.
        cache: Directory of the stored result, True for the user's, False to store nothing and measure now; None reads
            the environment variable ARTIFEX_DEVICES_CACHE ("off" or a directory) and otherwise means the user's.

    Returns:
        A MeasuredRoofline: rates with their spread and error, the conditions, and whether it is from the cache. A file
        that is damaged, of another machine or of another user is not used; `notes` report it.

    Raises:
        ValueError: The processor does not run `isa`, or `seconds` is out of range.
        TypeError: An argument is of the wrong type.
        RuntimeError: The device is compile-only, or the machine is too busy for a single repeat.
        MemoryError: There is no memory to stream over.
        KeyboardInterrupt: At Ctrl-C, immediately.

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
    scope = "all CPU devices" if device is None else str(device)
    sharing = _devices_on(lanes, device)
    fingerprint = {**machine_fingerprint(), "lanes": list(lanes), "isa": isa or "best"}
    directory, reason = cache_directory(cache)
    path = measurement_path(directory, fingerprint, _PREFIX) if directory else None
    with measurement_lock():
        notes = [reason] if reason else []
        if path is not None and not refresh:
            cached, reason = _cached(path, fingerprint)
            if cached is not None:
                conditions = dataclasses.replace(cached.conditions, devices_sharing=sharing)
                return dataclasses.replace(cached, scope=scope, conditions=conditions)
            notes += [reason] if reason else []
        found = _measured(device, scope, sharing, together, seconds, isa)
        if path is not None:
            notes.append(write_measurement(path, fingerprint, found))
        found = dataclasses.replace(found, notes=(*found.notes, *notes))
        if path is not None:
            _measurements[path] = found
        return found


def _cached(path: Path, fingerprint: Mapping[str, Any]) -> tuple[MeasuredRoofline | None, str]:
    """The stored measurement, or None and the reason."""
    found, reason = _measurements.get(path), ""
    if found is None:
        found, reason = read_measurement(path, fingerprint, MeasuredRoofline.from_dict)
        if found is None:
            return None, reason
        found = _measurements[path] = dataclasses.replace(found, notes=(*found.notes, f"read from {path}"))
    return dataclasses.replace(found, from_cache=True), ""


def _checked_seconds(seconds: Any) -> float:
    number = check_number("measure_roofline", "seconds", seconds, "write seconds=2.0")
    if not _SHORTEST <= number <= _LONGEST:
        expected = f"{_SHORTEST} to {_LONGEST:.0f}"
        raise wrong_value("measure_roofline", "seconds", seconds, expected, "write seconds=2.0")
    return float(number)


def _check_isa(isa: Any) -> None:
    known = _core._gemm_isas()
    if isa is not None and isa not in known:
        raise (ValueError if isinstance(isa, str) else TypeError)(
            f"measure_roofline: isa is {safe_repr(isa)}; expected None or one that this processor runs: "
            f"{', '.join(map(repr, known))}; leave it out for the fastest"
        )


def _devices_on(lanes: list[int], device: Device | None) -> int:
    """Number of devices of the world that share the measured cores; 1 if all are measured together."""
    if device is None:
        return 1
    return sum(1 for each in devices() if _core._measured_scope(each)[0] == lanes)


def _measured(
    device: Device | None, scope: str, sharing: int, together: bool, seconds: float, isa: str | None
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
    series: dict[str, Any] = {}
    chosen = isas[-1]
    for dtype in _DTYPES:
        rates = []
        for each in isas:
            series = _core._measure_gemm(device, each, dtype, seconds / 4 / len(isas), window)
            how = f"product by Eigen, {each}, {series['workers']} workers"
            rates.append(
                rate_of(series["rates"], series["shares"], expected_share=expected, floor=_FLOPS_FLOOR, how=how)
            )
        fastest = max(range(len(rates)), key=lambda i: rates[i].best)
        chosen = isas[fastest]
        if together:
            rates.append(_numpy_product(dtype, seconds / 8, window, expected))
        products[dtype] = rates
    if not together:
        notes.append("NumPy's product was not measured: its threads are not bound to one device's cores")
    if series["workers"] < workers:
        notes.append(f"only {series['workers']} of {workers} workers could run at the same time")
    kernels, array_bytes, cache_bytes = _core._measure_streams(device, seconds / 3, window)
    streams = [
        rate_of(
            each["rates"],
            each["shares"],
            expected_share=expected,
            floor=_BANDWIDTH_FLOOR,
            how=f"STREAM {kernel}, {each['workers']} workers",
        )
        for kernel, each in kernels.items()
    ]
    if cache_bytes and array_bytes < 2 * cache_bytes:
        notes.append(
            f"arrays of {array_bytes} bytes, for lack of memory, are not well above the caches ({cache_bytes} bytes): "
            "bytes/s may be too high"
        )
    best = [max(rates, key=lambda rate: rate.best) for rates in (*products.values(), streams)]
    error = max(rate.relative_error for rate in best)
    if error > _LARGE_ERROR:
        notes.append(
            f"the machine was busy, or the time short: an error of {100 * error:.0f} %; measure again on a quiet "
            "machine"
        )
    conditions = Conditions(
        date=date,
        cpu_model=cpu_model(),
        isa=chosen,
        workers=series["workers"],
        bound_workers=series["bound_workers"],
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
    return MeasuredRoofline.from_rates(scope, products, streams, conditions, notes)


def _numpy_product(dtype: str, seconds: float, window: float, expected_share: float) -> Rate:
    """FLOP/s of `np.matmul`, in windows of complete calls."""
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


def _replace_lock() -> None:
    global _lock
    _lock = threading.RLock()  # another thread may have held it when the process was forked


os.register_at_fork(after_in_child=_replace_lock)
