# SPDX-License-Identifier: Apache-2.0
"""Memory of probes: use, free bytes, and the affine law between batch size and bytes."""

from __future__ import annotations

import math
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Protocol

import numpy as np

from artifex_devices import _core
from artifex_devices._base.public_path import public
from artifex_devices._core import Machine, _cgroup_report

HOST = "host"


@public("artifex_devices.batch_measurement")
@dataclass(frozen=True)
class MemoryUse:
    """Bytes that a probe took of one memory.

    Attributes:
        before: In use when the probe began.
        peak: The most that was in use at once, what was there before included; None where it was not seen.
        after: In use when batch and results were gone.
        source: What was counted, and by what.
    """

    before: int
    peak: int | None
    after: int
    source: str


@public("artifex_devices.batch_measurement")
class MemoryMeter(Protocol):
    """What a measurement asks about memory; memories are named "host", "cpu:0" and so on."""

    def start(self) -> None:
        """A probe begins."""

    def stop(self) -> dict[str, MemoryUse]:
        """The probe is over; what it took, by memory."""

    def bounds(self) -> dict[str, int]:
        """By memory: the peak in bytes, as in MemoryUse, that the next probe must not pass."""


@public("artifex_devices.batch_measurement")
@dataclass(frozen=True)
class MemoryFit:
    """peak bytes = base_bytes + bytes_per_example * batch, fitted to the measured peaks of one memory.

    Attributes:
        memory: "cpu:0", or "host" for the memory of the process.
        base_bytes: What is in use whatever the batch.
        bytes_per_example: What one example adds.
        residual_bytes: The largest difference between a measured peak and the fit.
        bound_bytes: The peak that was not to be passed; None where it is not known.
        max_batch_size: The largest batch whose peak stays within the bound by this fit; None without bound or growth.
        source: What was counted, and by what.
    """

    memory: str
    base_bytes: float
    bytes_per_example: float
    residual_bytes: float
    bound_bytes: int | None
    max_batch_size: int | None
    source: str


class ProcessMemory:
    """Counts Arrays by their devices' own accounting, and the resident memory of the process by the kernel's."""

    def __init__(self, fraction: float) -> None:
        """`fraction`: the share of the free bytes that probes may take."""
        self._fraction = fraction
        self._host = HostMemory()
        self._window: _core._MemoryWindow | None = None

    def start(self) -> None:
        """Begins to count; freed memory that is kept for reuse is released first, so that it does not count."""
        _core._trim()
        self._window = _core._MemoryWindow()
        self._host.start()

    def stop(self) -> dict[str, MemoryUse]:
        """The devices that the probe used, and the host."""
        window = self._window
        assert window is not None
        window.close()
        self._window = None
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
        """In use now and the fraction of what is free, of each device and of the host."""
        found = {}
        window = _core._MemoryWindow()
        for device in window.devices:
            stats = device.memory_stats()
            in_use = stats["bytes_in_use"]
            found[str(device)] = in_use + int(self._fraction * max(0, stats["bytes_limit"] - in_use))
        window.close()
        host = self._host.in_use_and_free()
        if host is not None:
            found[HOST] = host[0] + int(self._fraction * host[1])
        return found


def fit_memory(
    memory: str, peaks: Sequence[tuple[int, int]], bound: int | None, multiple_of: int, source: str
) -> MemoryFit | None:
    """Fits the affine law by least absolute error; None for fewer than 2 sizes.

    Args:
        memory: Its name.
        peaks: (batch size, peak bytes), each size once.
        bound: The peak that is not to be passed.
        multiple_of: Batch sizes are multiples of it.
        source: What was counted.
    """
    if len(peaks) < 2:
        return None
    points = np.array(sorted(peaks), dtype=np.float64)
    sizes, used = points[:, 0], points[:, 1]
    lines = [(float(value), 0.0) for value in used]
    for i, j in combinations(range(len(sizes)), 2):
        slope = float((used[j] - used[i]) / (sizes[j] - sizes[i]))
        if slope > 0:
            lines.append((float(used[i] - slope * sizes[i]), slope))
    table = np.array(lines)
    errors = np.abs(table[:, :1] + table[:, 1:] * sizes - used)
    base, slope = lines[int(np.argmin(errors.mean(axis=1)))]
    residual = float(np.abs(base + slope * sizes - used).max())
    largest = None
    if bound is not None and slope > 0:
        # As integers: the quotient of floats may be one too many.
        largest = max(0, math.floor((bound - base) / slope))
        while largest > 0 and base + slope * largest > bound:
            largest -= 1
        largest -= largest % multiple_of
    return MemoryFit(memory, base, slope, residual, bound, largest, source)


def predicted_peak(uses: Sequence[tuple[int, MemoryUse]], size: int, *, is_host: bool) -> int:
    """What a batch larger than all so far may take at its peak, in bytes; rather too much than too little.

    A device that is full raises an error, a host that is full ends the process: there, until three sizes show how
    memory grows, it is taken to grow with the square of the batch.

    Args:
        uses: (batch size, use) of the probes so far, those with a peak, sizes ascending; at least one.
        size: The batch size to come.
        is_host: Whether it is the memory of the process.
    """
    points = [(count, float(use.peak)) for count, use in uses if use.peak is not None]
    last_size, last = points[-1]
    if size <= last_size:
        return int(max(peak for count, peak in points if count <= last_size))
    if len(points) == 1:
        # All that the first probe took is taken to grow with the batch.
        base = float(min(uses[0][1].before, last))
        ratio = size / last_size
        return math.ceil(base + (last - base) * (ratio * ratio if is_host else ratio))
    predictions = [last]
    fit = fit_memory("", [(count, int(peak)) for count, peak in points], None, 1, "")
    assert fit is not None
    predictions.append(fit.base_bytes + fit.bytes_per_example * size + fit.residual_bytes)
    (before_size, before) = points[-2]
    secant = (last - before) / (last_size - before_size)
    predictions.append(last + secant * (size - last_size))
    if is_host and len(points) == 2:
        square = (last - before) / (last_size**2 - before_size**2)
        predictions.append(last + square * (size**2 - last_size**2))
    if len(points) >= 3:
        # Where the growth itself grows (bytes like batch squared), it is continued.
        first_size, first = points[-3]
        bend = (secant - (before - first) / (before_size - first_size)) / (last_size - first_size)
        predictions.append(predictions[-1] + max(0.0, bend) * (size - last_size) * (size - before_size))
    return math.ceil(max(predictions))


_RESET = "resident memory of the process: VmHWM of /proc/self/status, reset before the probe through clear_refs"
_NOT_RESET = (
    "resident memory of the process: VmHWM of /proc/self/status, which could not be reset; peaks below an earlier one "
    "are not seen"
)

# The file of a limit, and the one of what counts against it: version 2 of control groups, and 1.
_USAGE_BESIDE = {"memory.max": "memory.current", "memory.limit_in_bytes": "memory.usage_in_bytes"}
_NO_LIMIT = 1 << 60  # version 1 writes the largest number of whole pages


class HostMemory:
    """Asks the kernel; a fact that it does not give is left out, and said in `source`.

    Memory of child processes and what was swapped out do not count. The kernel's counters may be behind by some
    hundred KiB.
    """

    def __init__(self, root: str = "") -> None:
        """`root`: what comes before /proc and the mounts of control groups."""
        self._root = root
        self._proc = Path(f"{root}/proc")
        self._before: tuple[int, int] | None = None
        self._was_reset = False

    def start(self) -> None:
        """Forgets the peak so far, where the kernel allows it."""
        try:
            (self._proc / "self" / "clear_refs").write_text("5")
            self._was_reset = True
        except OSError:
            self._was_reset = False
        self._before = self._resident_and_peak()

    def stop(self) -> tuple[int, int | None, int, str] | None:
        """Bytes before, at the peak (None if not seen) and now, and what was counted; None without /proc."""
        now = self._resident_and_peak()
        if now is None or self._before is None:
            return None
        resident, highest = self._before
        if self._was_reset:
            return resident, max(now[1], now[0], resident), now[0], _RESET
        peak = now[1] if now[1] > highest else None
        return resident, peak, now[0], _NOT_RESET

    def in_use_and_free(self) -> tuple[int, int] | None:
        """Resident bytes, and those that the process may still take; None where either is not known."""
        now = self._resident_and_peak()
        if now is None:
            return None
        free = [Machine.live().usable_memory_bytes - now[0]]
        available = self._table("meminfo").get("MemAvailable")
        if available is not None:
            free.append(available)
        free += self._free_of_groups()
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        size = self._table("self/status").get("VmSize")
        if limit != resource.RLIM_INFINITY and size is not None:
            free.append(limit - size)
        return now[0], max(0, min(free))

    def _resident_and_peak(self) -> tuple[int, int] | None:
        status = self._table("self/status")
        if "VmRSS" not in status or "VmHWM" not in status:
            return None
        return status["VmRSS"], status["VmHWM"]

    def _table(self, name: str) -> dict[str, int]:
        """Bytes by name from a file with lines of `Name:   123 kB`."""
        try:
            lines = (self._proc / name).read_text(encoding="ascii", errors="replace").splitlines()
        except OSError:
            return {}
        table = {}
        for line in lines:
            words = line.split()
            if len(words) == 3 and words[2] == "kB" and words[1].isdigit():
                table[words[0].rstrip(":")] = int(words[1]) * 1024
        return table

    def _free_of_groups(self) -> list[int]:
        """What each control group of memory above the process has left, files that can be dropped counted as free."""
        found = []
        for path, text in _cgroup_report(self._root)["files"]:
            file = Path(path)
            if file.name not in _USAGE_BESIDE or not text.isdigit():
                continue
            limit, used = int(text), _number(file.with_name(_USAGE_BESIDE[file.name]))
            if used is not None and limit < _NO_LIMIT:
                found.append(limit - used + _inactive_files(file.parent))
        return found


def _number(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _inactive_files(group: Path) -> int:
    try:
        lines = (group / "memory.stat").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return 0
    table = dict(line.split(maxsplit=1) for line in lines if " " in line)
    text = table.get("total_inactive_file", table.get("inactive_file", "0")).strip()
    return int(text) if text.isdigit() else 0
