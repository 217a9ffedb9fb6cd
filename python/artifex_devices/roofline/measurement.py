# SPDX-License-Identifier: Apache-2.0
"""Measurement of the machine's CPU devices, once for each machine: see `measure_roofline`."""

from __future__ import annotations

import dataclasses
import datetime
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from artifex_devices._base.checks import check_number, check_type, wrong_value
from artifex_devices._core import Device, internal
from artifex_devices._hardware.fingerprint import core_frequency_hz, machine_fingerprint
from artifex_devices._runtime.device_arguments import check_device
from artifex_devices._runtime.devices import devices
from artifex_devices.roofline.cache import check_cache, find_or_measure, measurement_path
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

_measurements: dict[Path, MeasuredRoofline] = {}  # of this process, by the path of their file


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
        device: A CPU device, by default all of the process together. The other devices get no work meanwhile.
        refresh: Whether to measure now, even if a measurement is stored.
        seconds: Approximate longest duration in seconds; ten times as long under a CPU quota.
        isa: Instruction set of the product: "baseline", "avx2", "avx512". By default, measures all sets of the
            processor; the baseline only if there is no other.
        cache: Directory of the stored result, True for the user's, False to store nothing and measure now. By default
            the environment variable ARTIFEX_DEVICES_CACHE ("off" or a directory), and without it the user's.

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
    if not _SHORTEST <= check_number("measure_roofline", "seconds", seconds, "write seconds=2.0") <= _LONGEST:
        expected = f"{_SHORTEST} to {_LONGEST:.0f}"
        raise wrong_value("measure_roofline", "seconds", seconds, expected, "write seconds=2.0")
    known, fix = internal.supported_isas(), "leave it out for the fastest"
    expected = f"None or a set that this processor runs: {', '.join(map(repr, known))}"
    check_type("measure_roofline", "isa", isa, (str, type(None)), expected, fix)
    if isa is not None and isa not in known:
        raise wrong_value("measure_roofline", "isa", isa, expected, fix)
    check_cache("measure_roofline", cache)
    lanes, _, all_lanes = internal.measured_scope(device)
    together = len(lanes) == all_lanes
    scope = "all CPU devices" if device is None else str(device)
    # Devices of the world that share the measured cores; 1 if all are measured together.
    sharing = 1 if device is None else sum(1 for each in devices() if internal.measured_scope(each)[0] == lanes)
    fingerprint = {**machine_fingerprint(), "lanes": list(lanes), "isa": isa or "best"}
    found = find_or_measure(
        _measurements,
        measurement_path(cache, fingerprint, "roofline"),
        fingerprint,
        MeasuredRoofline.from_dict,
        lambda: _measured(device, scope, sharing, together, float(seconds), isa),
        refresh=refresh,
    )
    if not found.from_cache:
        return found
    conditions = dataclasses.replace(found.conditions, devices_sharing=sharing)
    return dataclasses.replace(found, scope=scope, conditions=conditions)


def _measured(
    device: Device | None, scope: str, sharing: int, together: bool, seconds: float, isa: str | None
) -> MeasuredRoofline:
    _, workers, _ = internal.measured_scope(device)
    before, frequency = conditions_before(), core_frequency_hz()
    quota = before["cpu_quota"]
    expected = min(1.0, quota / workers) if quota else 1.0
    window, seconds = (_WINDOW_SECONDS, seconds) if expected == 1 else (_QUOTA_WINDOW_SECONDS, 10 * seconds)
    known = internal.supported_isas()
    isas = [isa] if isa else known[1:] or known  # the baseline is never the fastest of several

    def rated(series: Any, floor: float, program: str) -> Rate:
        how = f"{program}, {series['workers']} workers"
        return rate_of(series["rates"], series["shares"], expected_share=expected, floor=floor, how=how)

    products: dict[str, list[Rate]] = {}
    notes: list[str] = []
    for dtype in _DTYPES:
        measured = [internal.measure_gemm(device, each, dtype, seconds / 4 / len(isas), window) for each in isas]
        named = zip(isas, measured, strict=True)
        rates = [rated(series, _FLOPS_FLOOR, f"product by Eigen, {each}") for each, series in named]
        chosen, series = isas[rates.index(max(rates, key=lambda rate: rate.best))], measured[-1]
        products[dtype] = [*rates, *([_numpy_product(dtype, seconds / 8, window, expected)] if together else [])]
    if not together:
        notes.append("NumPy's product was not measured: its threads are not bound to one device's cores")
    if series["workers"] < workers:
        notes.append(f"only {series['workers']} of {workers} workers could run at the same time")
    kernels, array_bytes, cache_bytes = internal.measure_streams(device, seconds / 3, window)
    streams = [rated(each, _BANDWIDTH_FLOOR, f"STREAM {kernel}") for kernel, each in kernels.items()]
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
        **before,
        isa=chosen,
        workers=series["workers"],
        bound_workers=series["bound_workers"],
        devices_sharing=sharing,
        together=together,
        frequency_hz=frequency,
        array_bytes=array_bytes,
        cache_bytes=cache_bytes or None,
    )
    return MeasuredRoofline.from_rates(scope, products, streams, conditions, notes)


def conditions_before() -> dict[str, Any]:
    """Returns the conditions that every measurement records when it starts."""
    try:
        load = os.getloadavg()[0]
    except OSError:  # the system does not report it
        load = None
    machine = machine_fingerprint()
    known = {name: machine[name] for name in ("cpu_model", "cpu_quota", "library_version", "numpy_version")}
    date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {**known, "date": date, "load_average": load}


def _numpy_product(dtype: str, seconds: float, window: float, expected_share: float) -> Rate:
    """Measures FLOP/s of `np.matmul`, in windows of complete calls."""
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
    """Returns the BLAS that NumPy is likely to call, its version and threads."""
    import threadpoolctl

    blas = [each for each in threadpoolctl.threadpool_info() if each.get("user_api") == "blas"]
    numpys = [each for each in blas if "numpy" in str(each.get("filepath", ""))] or blas
    if not numpys:
        return "BLAS unknown"
    found = numpys[0]
    return f"{found.get('internal_api')} {found.get('version')}, {found.get('num_threads')} threads"
