# SPDX-License-Identifier: Apache-2.0
"""The timeline of a job, from the flight records of its processes: a trace for Perfetto, and stragglers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from artifex_devices._base.text import printable, seconds_text, table_lines
from artifex_devices._core import internal
from artifex_devices._core.internal import FlightEvent, FlightRecord
from artifex_devices.distributed.flight_records import described

_MEETINGS, _EXCHANGES = 1, 2  # tracks of a process
_FIRST = 5  # rows of the summary


class HostClock(NamedTuple):
    """Offset of a host's clock from the first host's clock."""

    host: str
    ahead_ns: int
    error_ns: int  # largest possible error; -1 if no meeting determines the offset


class Member(NamedTuple):
    """A process in a meeting; times by the clock of the first host. The end is 0 if the process is still in it."""

    record: int
    event: int
    begin_ns: int
    end_ns: int


class RecordedMeeting(NamedTuple):
    """A meeting that several processes reached."""

    operation: str
    processes: str
    members: list[Member]
    last: int  # place of the member that arrived last
    waited_ns: int  # by all other members, for the last


class Wait(NamedTuple):
    """A process that arrived last at the meetings of one line of the program."""

    process: int
    event: FlightEvent  # its event in the first of these meetings
    times: int
    waited_ns: int  # by all other processes, for this process


class Timeline:
    """Times and waits of one job, by its records. Source: measured by the clocks of the hosts."""

    def __init__(self, records: Sequence[FlightRecord]) -> None:
        self.records = list(records)
        self._events = [record.events for record in self.records]  # each access of a record copies them
        clocks, self._clock_of, meetings = internal.flight_timeline(self.records)
        self.clocks = [HostClock(*row) for row in clocks]
        self.meetings = [
            RecordedMeeting(operation, processes, [Member(*row) for row in rows], last, waited_ns)
            for operation, processes, rows, last, waited_ns in meetings
        ]

    @property
    def waits(self) -> list[Wait]:
        """Processes for which others waited, by operation and line; the longest waits are first."""
        events: dict[tuple[str, int], list[FlightEvent]] = defaultdict(list)
        waited: dict[tuple[str, int], int] = defaultdict(int)
        for meeting in self.meetings:
            last = meeting.members[meeting.last]
            record = self.records[last.record]
            event = self._events[last.record][last.event]
            key = (described(event), record.process)
            events[key].append(event)
            waited[key] += meeting.waited_ns
        found = [Wait(key[1], events[key][0], len(events[key]), waited[key]) for key in events]
        return sorted(found, key=lambda wait: -wait.waited_ns)

    def to_dict(self) -> dict[str, Any]:
        """Returns the clocks and the waits; times in seconds, null for a clock that is not aligned."""
        clocks = [
            {
                "host": clock.host,
                "ahead_s": None if clock.error_ns < 0 and index else clock.ahead_ns / 1e9,
                "error_s": None if clock.error_ns < 0 and index else clock.error_ns / 1e9,
            }
            for index, clock in enumerate(self.clocks)
        ]
        waits = [
            {
                "process": wait.process,
                "times": wait.times,
                "waited_s": wait.waited_ns / 1e9,
                "operation": wait.event.operation,
                "file": wait.event.file,
                "line": wait.event.line,
            }
            for wait in self.waits
        ]
        return {"clocks": clocks, "waits": waits}

    def trace(self) -> dict[str, Any]:
        """Returns the trace in the JSON format of Chrome, which https://ui.perfetto.dev and chrome://tracing open.

        A process has a track of meetings and one of exchanges. An arrow goes from the process that arrived last to each
        other process. An event without an end ends with the last event of all.
        """
        events: list[dict[str, Any]] = []
        origin_ns = min(
            (self._begin_ns(n, event) for n, events in enumerate(self._events) for event in events), default=0
        )
        end_ns = max((self._end_ns(n, event) for n, events in enumerate(self._events) for event in events), default=0)
        for number, record in enumerate(self.records):
            name = f"process {record.process} (pid {record.pid} on {record.host})"
            events.append(_named("process_name", record.process, 0, name))
            events.append(_named("thread_name", record.process, _MEETINGS, "meetings"))
            events.append(_named("thread_name", record.process, _EXCHANGES, "exchanges of bytes"))
            for event in self._events[number]:
                begin_ns = self._begin_ns(number, event)
                events.append(
                    {
                        "name": event.operation,
                        "ph": "X",
                        "pid": record.process,
                        "tid": _MEETINGS if event.kind == "meeting" else _EXCHANGES,
                        "ts": (begin_ns - origin_ns) / 1e3,
                        "dur": ((self._end_ns(number, event) if event.end_ns else end_ns) - begin_ns) / 1e3,
                        "args": {
                            "line": f"{event.file}:{event.line}",
                            "outcome": event.outcome,
                            "processes": event.processes,
                            "route": event.route,
                            "bytes": event.bytes,
                        },
                    }
                )
        events += self._arrows(origin_ns)
        return {
            "traceEvents": events,
            "displayTimeUnit": "ns",
            "otherData": {clock.host: self._clock_text(clock) for clock in self.clocks},
        }

    def summary(self, width: int = 0) -> str:
        """Formats lines of at most `width` characters: the clocks, and which processes others waited for, where."""
        lines = [f"clock of {printable(clock.host)}: {self._clock_text(clock)}" for clock in self.clocks]
        rows = self.waits[:_FIRST]
        if not rows:
            return "\n".join([*lines, "no meeting of several processes"])
        table = [("came last", "times", "others waited", "operation")]
        for wait in rows:
            waited = seconds_text(wait.waited_ns / 1e9, 3)
            table.append((f"process {wait.process}", str(wait.times), waited, described(wait.event)))
        return "\n".join([*lines, *table_lines(table, right=(1, 2), width=width)])

    def _clock_text(self, clock: HostClock) -> str:
        if clock is self.clocks[0]:
            return "the reference"
        if clock.error_ns < 0:
            return "not aligned: its processes had no meeting with the first host's; times are by its own clock"
        return f"{seconds_text(clock.ahead_ns / 1e9)} ahead, at most {seconds_text(clock.error_ns / 1e9)} wrong"

    def _begin_ns(self, record: int, event: Any) -> int:
        return int(event.begin_ns) - self.clocks[self._clock_of[record]].ahead_ns

    def _end_ns(self, record: int, event: Any) -> int:
        return int(event.end_ns or event.begin_ns) - self.clocks[self._clock_of[record]].ahead_ns

    def _arrows(self, origin_ns: int) -> list[dict[str, Any]]:
        arrows: list[dict[str, Any]] = []
        for meeting in self.meetings:
            last = meeting.members[meeting.last]
            for member in meeting.members:
                if member is last or not member.end_ns:
                    continue
                shared = {"name": "came last", "cat": "meeting", "id": len(arrows), "tid": _MEETINGS}
                begin, end = (last.begin_ns - origin_ns) / 1e3, (member.end_ns - origin_ns) / 1e3
                arrows.append({**shared, "ph": "s", "pid": self.records[last.record].process, "ts": begin})
                arrows.append({**shared, "ph": "f", "bp": "e", "pid": self.records[member.record].process, "ts": end})
        return arrows


def _named(kind: str, process: int, track: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": process, "tid": track, "args": {"name": name}}
