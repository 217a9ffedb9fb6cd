# SPDX-License-Identifier: Apache-2.0
"""Resident memory of this process: its peak over a piece of the program, and how much more there is."""

from __future__ import annotations

import resource
from pathlib import Path

from artifex_devices._core import Machine, _cgroup_report

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
