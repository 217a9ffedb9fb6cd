# SPDX-License-Identifier: Apache-2.0
"""Flight records: files that outlive the processes, with their last operations between processes; and reports."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from artifex_devices._base.checks import failure
from artifex_devices._base.text import printable, seconds_text
from artifex_devices._core import internal
from artifex_devices._core.internal import FlightEvent, FlightGroup, FlightRecord
from artifex_devices.config import config
from artifex_devices.distributed.flight_folders import SUFFIX, is_host_here, new_job, opened_folder, remove_old_jobs

_ENDED = "ended without notice"
_LAST = 3  # operations of each process in an error


class FlightRecords:
    """The records of the processes of a job on this host; this process writes its own.

    Example of a folder: /tmp/artifex_devices-1000/flight/20261124-093012-4711, with process_0.flight, process_1.flight.
    """

    def __init__(self, folder: str, process: int, process_count: int, host: str) -> None:
        """Creates the file of this process; OSError where that fails."""
        self.folder = folder
        self._path = os.path.join(folder, f"process_{process}{SUFFIX}")
        self.recorder = internal.FlightRecorder(self._path, process, process_count, host)
        self._groups: dict[tuple[int, ...], FlightGroup] = {}

    def group(self, processes: tuple[int, ...]) -> FlightGroup:
        """Returns the group of these processes, ascending."""
        found = self._groups.get(processes)
        if found is None:
            found = self._groups[processes] = self.recorder.group(processes)
        return found

    def close(self) -> None:
        """Removes the file of this process, and the folder with the last one: the job has ended well."""
        self.recorder.leave()
        with contextlib.suppress(OSError):
            os.unlink(self._path)
            os.rmdir(self.folder)

    def report(self, ended: Collection[int] = ()) -> str:
        """Formats lines for an error: the last operations of this host's processes, and which process is behind.

        `ended` are processes that are known to have ended, though the system may still list them.
        """
        try:
            records = read_job(self.folder)
        except (OSError, ValueError) as error:  # an error about an error does not help
            return f"The flight records cannot be read: {error}"
        title = f"Flight records (artifex_devices flight-record {self.folder}):"
        return "\n".join(
            [title, *(f"  {line}" for line in [*verdicts(records), *last_operations(records, _LAST, ended)])]
        )


def make_job_folder(directory: str) -> str:
    """Creates the folder of a new job, and removes the folders of all but the last jobs; raises OSError on failure."""
    with opened_folder(directory) as (path, opened):
        own = new_job(opened)
        remove_old_jobs(opened, own)
    return os.path.join(path, own)


def last_job() -> str:
    """Returns the folder of the last job that has records; raises ValueError without any."""
    directory: str | None = config.flight_record_dir
    jobs = sorted(entry.path for entry in os.scandir(directory)) if directory and os.path.isdir(directory) else []
    if not jobs:
        raise failure(
            ValueError,
            "flight record",
            f"{printable(directory or 'config.flight_record_dir')} has no jobs",
            expected="a job that crashed or that runs",
            fix="give its folder",
        )
    return jobs[-1]


def read_job(folder: str) -> list[FlightRecord]:
    """Reads the records of a folder by process; ValueError if none exists or one is damaged, OSError if unreadable."""
    names = [name for name in os.listdir(folder) if name.endswith(SUFFIX)]
    if not names:
        raise failure(
            ValueError,
            "flight record",
            f"{printable(folder)} has no record",
            expected=f"files process_N{SUFFIX} of a job that did not end well",
            fix="a job that ends well removes them",
        )
    records = [internal.read_flight_record(os.path.join(folder, name)) for name in names]
    return sorted(records, key=lambda record: record.process)


def state_of(record: FlightRecord) -> str:
    """Returns the last state of a process: "left" its job, "runs", "ended without notice", or "is on another host"."""
    if record.has_left:
        return "left"
    if not is_host_here(record.host):
        return "is on another host"
    try:
        with open(f"/proc/{record.pid}/stat") as file:
            has_ended = file.read().rpartition(")")[2].split()[0] in "ZX"  # its parent has not read its exit status yet
    except OSError:
        has_ended = True
    return _ENDED if has_ended else "runs"


class GroupReport(NamedTuple):
    """The operations of a group of processes, by their records."""

    processes: str  # "0-3,6"
    common: FlightEvent | None  # the last meeting that all of them reached
    members: list[tuple[int, FlightEvent | None]]  # each process, and its first meeting after that
    behind: list[int]  # processes without such a meeting, where other processes have one
    is_apart: bool  # whether they reached different meetings


def compare(records: Sequence[FlightRecord]) -> list[GroupReport]:
    """Returns a report for each group; groups with a fault are first."""
    return [GroupReport(*row) for row in internal.compare_flight_records(records)]


def verdicts(records: Sequence[FlightRecord]) -> list[str]:
    """Returns sentences about the groups in which a process is behind or elsewhere, or that all groups are together."""
    lines: list[str] = []
    for report in compare(records):
        if not report.behind and not report.is_apart:
            continue
        common = f"all called {described(report.common)}" if report.common else "have called no operation together yet"
        lines.append(f"processes {printable(report.processes)} {common}")
        for process, event in report.members:
            call = f"then called {described(event)}" if event else "is behind: it has called nothing after that"
            lines.append(f"  process {process} {call}")
    return lines or ["all processes called the same operations"]


def last_operations(records: Iterable[FlightRecord], count: int, ended: Collection[int] = ()) -> list[str]:
    """Returns the state of each process and its operations, the latest last; `ended` as for FlightRecords.report."""
    now_ns = time.time_ns()
    lines = []
    for record in records:
        state = _ENDED if record.process in ended else state_of(record)
        events = record.events  # a copy
        lines.append(f"process {record.process} (pid {record.pid} on {printable(record.host)}) {state}:")
        lines += [f"  {described(event)}, {_ago(event, now_ns)}" for event in events[-count:]]
        if not events:
            lines.append("  no operation with other processes")
    return lines


def described(event: FlightEvent) -> str:
    """Formats the operation and the line of the program; texts of the file are escaped for a terminal."""
    is_named = f"{os.path.basename(event.file)}:{event.line}" in event.operation
    text = f"{event.operation} at {event.file}:{event.line}" if event.file and not is_named else event.operation
    return printable(text)


def _ago(event: FlightEvent, now_ns: int) -> str:
    what = "meets" if event.kind == "meeting" else f"moves bytes by {event.route}"
    begun = f"begun {seconds_text(max(now_ns - event.begin_ns, 0) / 1e9)} ago"
    if event.outcome == "lasts":
        return f"{what}, {begun}, and not done"
    return f"{what}, {begun}, {event.outcome} after {seconds_text((event.end_ns - event.begin_ns) / 1e9)}"
