# SPDX-License-Identifier: Apache-2.0
"""Memory of probes: use, free bytes, and the affine law between batch size and bytes."""

from __future__ import annotations

import math
import resource
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from artifex_devices._base.public_path import public
from artifex_devices._core import Machine, internal
from artifex_devices._core.internal import cgroup_report
from artifex_devices._hardware.system_files import SystemFiles
from artifex_devices.batch_measurement.throughput import candidate_lines

HOST = "host"


@public("artifex_devices.batch_measurement")
@dataclass(frozen=True)
class MemoryUse:
    """Bytes of one memory during a probe.

    Attributes:
        before: Bytes in use at the start.
        peak: Peak of the bytes in use, including `before`; None if it could not be observed.
        after: Bytes in use after batch and results were freed.
        source: Origin of the numbers.
    """

    before: int
    peak: int | None
    after: int
    source: str


@public("artifex_devices.batch_measurement")
class MemoryMeter(Protocol):
    """Source of memory measurements; memories are named "host", "cpu:0" and so on."""

    def start(self) -> None:
        """Starts counting for a probe."""

    def stop(self) -> dict[str, MemoryUse]:
        """Ends the probe; returns its use by memory."""

    def bounds(self) -> dict[str, int]:
        """Returns the allowed peak of the next probe in bytes, as in MemoryUse, by memory."""


@public("artifex_devices.batch_measurement")
@dataclass(frozen=True)
class MemoryFit:
    """peak bytes = base_bytes + bytes_per_example * batch, fitted to the measured peaks of one memory.

    Attributes:
        memory: "cpu:0", or "host" for the memory of the process.
        base_bytes: Bytes in use independent of the batch.
        bytes_per_example: Bytes for each example.
        residual_bytes: Largest difference between a measured peak and the fit.
        bound_bytes: Allowed peak; None if it is not known.
        max_batch_size: Largest batch whose peak stays within the bound by this fit; None without bound or growth.
        source: Origin of the numbers.
    """

    memory: str
    base_bytes: float
    bytes_per_example: float
    residual_bytes: float
    bound_bytes: int | None
    max_batch_size: int | None
    source: str


class ProcessMemory:
    """The meter that counts Arrays by the accounting of their devices, and resident memory by the kernel."""

    def __init__(self, fraction: float) -> None:
        self._fraction = fraction
        self._host = HostMemory()
        self._window: internal.MemoryWindow | None = None

    def start(self) -> None:
        """Starts counting, after cached free memory is released."""
        internal.trim()
        self._window = internal.MemoryWindow()
        self._host.start()

    def stop(self) -> dict[str, MemoryUse]:
        """Returns the use of the host and of the devices that the probe used."""
        window, self._window = self._window, None
        assert window is not None
        window.close()
        found = {
            str(device): MemoryUse(start, peak, in_use, "bytes of Arrays, by the device's own accounting")
            for device, (start, in_use, peak, _, _) in zip(window.devices, window.use(), strict=True)
            if peak > start
        }
        host = self._host.stop()
        if host is not None:
            found[HOST] = MemoryUse(*host)
        return found

    def bounds(self) -> dict[str, int]:
        """Returns the bytes in use plus the fraction of the free bytes, by device and for the host."""
        window = internal.MemoryWindow()
        stats = {str(device): device.memory_stats() for device in window.devices}
        window.close()
        found = {name: (row["bytes_in_use"], row["bytes_limit"] - row["bytes_in_use"]) for name, row in stats.items()}
        host = self._host.in_use_and_free()
        if host is not None:
            found[HOST] = host
        return {name: in_use + int(self._fraction * max(0, free)) for name, (in_use, free) in found.items()}


def fit_memory(
    memory: str, peaks: Sequence[tuple[int, int]], bound: int | None, multiple_of: int, source: str
) -> MemoryFit | None:
    """Fits peaks, (batch size, bytes), by least absolute error; returns None for fewer than 2 sizes."""
    if len(peaks) < 2:
        return None
    points = np.array(sorted(peaks), dtype=np.float64)
    sizes, used = points[:, 0], points[:, 1]
    bases, slopes = candidate_lines(sizes, used)
    best = np.argmin(np.abs(bases[:, None] + slopes[:, None] * sizes - used).mean(axis=1))
    base, slope = float(bases[best]), float(slopes[best])
    residual = float(np.abs(base + slope * sizes - used).max())
    largest = None
    if bound is not None and slope > 0:
        # The quotient of floats may be too large by one.
        largest = max(0, math.floor((bound - base) / slope))
        while largest > 0 and base + slope * largest > bound:
            largest -= 1
        largest -= largest % multiple_of
    return MemoryFit(memory, base, slope, residual, bound, largest, source)


def predicted_peak(uses: Sequence[tuple[int, MemoryUse]], size: int, *, is_host: bool) -> int:
    """Returns a cautious prediction of the peak in bytes, from (batch size, use) of at least one probe, ascending.

    A full host ends the process, so its memory is assumed to grow with the square of the batch until three sizes show
    otherwise. A full device only raises an error.
    """
    points = [(count, float(use.peak)) for count, use in uses if use.peak is not None]
    last_size, last = points[-1]
    if size <= last_size:
        return int(max(peak for count, peak in points if count <= last_size))
    if len(points) == 1:
        # All bytes of the first probe are assumed to grow with the batch.
        base = float(min(uses[0][1].before, last))
        ratio = size / last_size
        return math.ceil(base + (last - base) * (ratio * ratio if is_host else ratio))
    predictions = [last]
    fit = fit_memory("", [(count, int(peak)) for count, peak in points], None, 1, "")
    assert fit is not None
    predictions.append(fit.base_bytes + fit.bytes_per_example * size + fit.residual_bytes)
    before_size, before = points[-2]
    secant = (last - before) / (last_size - before_size)
    predictions.append(last + secant * (size - last_size))
    if is_host and len(points) == 2:
        square = (last - before) / (last_size**2 - before_size**2)
        predictions.append(last + square * (size**2 - last_size**2))
    if len(points) >= 3:
        # Extrapolates a growing slope (bytes proportional to the square of the batch).
        first_size, first = points[-3]
        bend = (secant - (before - first) / (before_size - first_size)) / (last_size - first_size)
        predictions.append(predictions[-1] + max(0.0, bend) * (size - last_size) * (size - before_size))
    return math.ceil(max(predictions))


_RESET = "resident memory of the process: VmHWM of /proc/self/status, reset before the probe through clear_refs"
_NOT_RESET = (
    "resident memory of the process: VmHWM of /proc/self/status, which could not be reset; peaks below an earlier one "
    "are not seen"
)

# The file of a limit, and the file of the usage that counts against it: version 2 of control groups, and 1.
_USAGE_BESIDE = {"memory.max": "memory.current", "memory.limit_in_bytes": "memory.usage_in_bytes"}
_NO_LIMIT = 1 << 60  # version 1 writes the largest number of whole pages


class HostMemory:
    """Resident memory of this process without swapped pages; the kernel's counters may be behind by some 100 KiB."""

    def __init__(self, root: str = "") -> None:
        self._root = root
        self._files = SystemFiles(root or "/")
        self._before: tuple[int, int] | None = None
        self._was_reset = False

    def start(self) -> None:
        """Resets the peak, if the kernel allows it."""
        self._was_reset = False
        with suppress(OSError):
            Path(f"{self._root}/proc/self/clear_refs").write_text("5")
            self._was_reset = True
        self._before = self._resident_and_peak()

    def stop(self) -> tuple[int, int | None, int, str] | None:
        """Returns bytes before, at the peak (None if not observed), now, and the source, or None without /proc."""
        now = self._resident_and_peak()
        if now is None or self._before is None:
            return None
        resident, highest = self._before
        if self._was_reset:
            return resident, max(now[1], now[0], resident), now[0], _RESET
        return resident, now[1] if now[1] > highest else None, now[0], _NOT_RESET

    def in_use_and_free(self) -> tuple[int, int] | None:
        """Returns resident bytes, and free bytes for the process; None if either is not known."""
        now = self._resident_and_peak()
        if now is None:
            return None
        free = [Machine.live().usable_memory_bytes - now[0], *self._free_of_groups()]
        available = self._files.table("/proc/meminfo")[0].get("MemAvailable")
        if available is not None:
            free.append(available)
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        size = self._files.table("/proc/self/status")[0].get("VmSize")
        if limit != resource.RLIM_INFINITY and size is not None:
            free.append(limit - size)
        return now[0], max(0, min(free))

    def _resident_and_peak(self) -> tuple[int, int] | None:
        status, _ = self._files.table("/proc/self/status")
        return (status["VmRSS"], status["VmHWM"]) if {"VmRSS", "VmHWM"} <= status.keys() else None

    def _free_of_groups(self) -> Iterator[int]:
        """Yields the free bytes of each control group above the process; inactive file pages count as free."""
        system = SystemFiles()  # the report has paths with the root
        for path, text in cgroup_report(self._root)["files"]:
            folder, _, name = path.rpartition("/")
            if name not in _USAGE_BESIDE or not text.isdecimal() or int(text) >= _NO_LIMIT:
                continue
            used = system.number(f"{folder}/{_USAGE_BESIDE[name]}")
            if used is not None:
                rows = (line.split() for line in (system.read(f"{folder}/memory.stat")[0] or "").splitlines())
                stat = {row[0]: row[1] for row in rows if len(row) == 2 and row[1].isdecimal()}
                yield int(text) - used + int(stat.get("total_inactive_file", stat.get("inactive_file", 0)))
