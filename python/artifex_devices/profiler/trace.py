# SPDX-License-Identifier: Apache-2.0
"""The value of a trace: its events, the meetings with their slowest participants, a summary, and a chart."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from artifex_devices._base.charts import axes_for
from artifex_devices._base.html import NotebookText, facts, page, table
from artifex_devices._base.leaf_types import Record
from artifex_devices._base.text import bytes_text, seconds_text, table_lines
from artifex_devices._core import internal

if TYPE_CHECKING:
    from artifex_devices._base.charts import Axes

_KINDS = ("span", "collective", "transfer", "wait", "prefetch", "meeting", "exchange")
_ROWS_SHOWN = 8
_WIDTH = 90  # characters in a row of a picture
_SHORTEST = 5  # characters of a name that is cut


class TraceEvent(NamedTuple):
    """Something that took time.

    Attributes:
        kind: "span" (of `annotate`), "collective", "transfer", "wait", "prefetch", "meeting" (of processes) or
            "exchange" (of bytes between processes).
        process: Number of the process.
        device: Device such as "gpu:3"; "" for an event of a thread.
        thread: Number that the system gives the thread.
        name: Description.
        detail: Route of a transfer, mapped function of a collective, processes of a meeting, values of `annotate`.
        begin_s: Begin in seconds since the first event of the trace; of a collective the arrival of the device.
        end_s: End in seconds; None for an event that lasted when the trace ended.
        busy_s: Seconds that a participant of a collective ran before its arrival.
        planned_bytes: Bytes of the plan of a transfer.
        moved_bytes: Bytes that were copied, sent or received.
        meeting: Number that is equal for all that met; 0 for other events.
        file: File of the line of the program.
        line: Its number.
    """

    kind: str
    process: int
    device: str
    thread: int
    name: str
    detail: str
    begin_s: float
    end_s: float | None
    busy_s: float
    planned_bytes: int
    moved_bytes: int
    meeting: int
    file: str
    line: int


class TracedMeeting(NamedTuple):
    """A collective of several devices, or a meeting of several processes.

    Attributes:
        name: Description.
        members: The events of all participants, by begin.
        slowest: The event of the participant for which the rest waited: within a process the participant that ran
            longest before the collective, between processes any participant of the process that came last.
        waited_s: Seconds that all others waited for it together. Participants that share a thread (executor
            "cooperative") run in turn; for them, seconds that they would have waited in threads.
    """

    name: str
    members: tuple[TraceEvent, ...]
    slowest: TraceEvent
    waited_s: float


class ProcessClock(NamedTuple):
    """The clock of a process, compared with that of process 0 by messages there and back.

    Attributes:
        process: Number of the process.
        host: Its host.
        ahead_s: Seconds that its clock is ahead, by which its events were moved; 0 where both share a clock.
        error_s: Most by which the difference that was measured can be wrong; None if it was not measured.
        is_shared: Whether both processes read the same clock, as on one host.
    """

    process: int
    host: str
    ahead_s: float
    error_s: float | None
    is_shared: bool


class Trace(NotebookText):
    """Operations of a program over time. Source: measured by the clock of each process.

    Notebooks and `print` show the summary, `plot` draws it.
    """

    def __init__(
        self,
        rows: Sequence[Sequence[Any]] = (),
        memory: Sequence[tuple[int, str, int, int]] = (),
        clocks: Sequence[ProcessClock] = (),
        dropped: int = 0,
    ) -> None:
        """`rows` and `memory` are from `_TraceRecording`, by the clock of process 0."""
        begins = [row[6] for row in rows] + [value[2] for value in memory]
        origin_ns = min(begins, default=0)
        self._events = tuple(
            TraceEvent._make(
                (
                    *row[:6],
                    (row[6] - origin_ns) / 1e9,
                    (row[7] - origin_ns) / 1e9 if row[7] else None,
                    row[8] / 1e9,
                    *row[9:],
                )
            )
            for row in rows
        )
        self._memory = [(process, device, (time - origin_ns) / 1e9, count) for process, device, time, count in memory]
        self._clocks = tuple(clocks)
        self._dropped = dropped
        self._meetings = tuple(
            TracedMeeting(
                self._events[slowest].name,
                tuple(self._events[member] for member in members),
                self._events[slowest],
                waited_ns / 1e9,
            )
            for members, slowest, waited_ns in internal.trace_meetings([tuple(row) for row in rows])
        )

    @property
    def events(self) -> tuple[TraceEvent, ...]:
        """All events, by begin."""
        return self._events

    @property
    def meetings(self) -> tuple[TracedMeeting, ...]:
        """Collectives of several devices, and meetings of several processes."""
        return self._meetings

    @property
    def collectives(self) -> tuple[TracedMeeting, ...]:
        """The meetings that are collectives of devices."""
        return tuple(meeting for meeting in self._meetings if meeting.slowest.kind == "collective")

    @property
    def clocks(self) -> tuple[ProcessClock, ...]:
        """Clocks of the processes of a job; none for one process."""
        return self._clocks

    def as_dict(self) -> Record:
        """Returns the trace in the JSON format of Chrome, which https://ui.perfetto.dev and chrome://tracing open."""
        tracks = _Tracks(self._events)
        end_s = max((event.end_s or event.begin_s for event in self._events), default=0.0)
        rows: list[dict[str, Any]] = []
        for process in sorted({event.process for event in self._events} | {row[0] for row in self._memory}):
            rows.append(_named("process_name", process, 0, self._process_name(process)))
        for place, (process, name) in enumerate(tracks.names):
            rows.append(_named("thread_name", process, place + 1, name))
            rows.append({**_named("thread_sort_index", process, place + 1, ""), "args": {"sort_index": place}})
        for event, place in zip(self._events, tracks.places, strict=True):
            ended_s = end_s if event.end_s is None else event.end_s
            rows.append(
                {
                    "name": event.name,
                    "cat": event.kind,
                    "ph": "X",
                    "pid": event.process,
                    "tid": place + 1,
                    "ts": event.begin_s * 1e6,
                    "dur": (ended_s - event.begin_s) * 1e6,
                    "args": _arguments(event),
                }
            )
        for number, (meeting, member) in enumerate(self._arrows()):
            shared = {"name": "came last", "cat": meeting.slowest.kind, "id": number}
            rows.append({**shared, "ph": "s", **tracks.at(meeting.slowest, meeting.slowest.begin_s)})
            rows.append({**shared, "ph": "f", "bp": "e", **tracks.at(member, member.end_s or member.begin_s)})
        for process, device, time_s, count in self._memory:
            rows.append(
                {
                    "name": f"memory of {device}",
                    "ph": "C",
                    "pid": process,
                    "ts": time_s * 1e6,
                    "args": {"bytes": count},
                }
            )
        other = {f"clock of process {clock.process}": _clock_text(clock) for clock in self._clocks}
        if self._dropped:
            other["not recorded"] = f"{self._dropped} events"
        return {"traceEvents": rows, "displayTimeUnit": "ns", "otherData": other}

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draws a short trace: a row for each thread and device, arrows from the slowest, steps of memory in use.

        https://ui.perfetto.dev shows long ones: `as_dict` has its format.

        Args:
            ax: Axes of matplotlib to draw into, by default of a new figure.

        Returns:
            The axes.

        Raises:
            ImportError: matplotlib is not installed.
        """
        tracks = _Tracks(self._events)
        end_s = max((event.end_s or event.begin_s for event in self._events), default=0.0)
        several = len({process for process, _ in tracks.names}) > 1
        ax = axes_for("Trace.plot", ax, self._title(), self._notes())
        for kind in _KINDS:
            rows: dict[int, list[tuple[float, float]]] = defaultdict(list)
            for event, place in zip(self._events, tracks.places, strict=True):
                if event.kind == kind:
                    ended_s = end_s if event.end_s is None else event.end_s
                    rows[place].append((event.begin_s, ended_s - event.begin_s))
            colour = f"C{_KINDS.index(kind)}"
            for number, (place, spans) in enumerate(rows.items()):
                ax.broken_barh(spans, (place - 0.35, 0.5), label="" if number else kind, facecolors=colour, alpha=0.7)
        for event, place in zip(self._events, tracks.places, strict=True):
            seconds = (end_s if event.end_s is None else event.end_s) - event.begin_s
            space = int(seconds / end_s * _WIDTH) if end_s > 0 else 0  # characters that fit into the bar
            if space >= min(len(event.name), _SHORTEST):
                middle = (event.begin_s + seconds / 2, place - 0.1)
                name = event.name if len(event.name) <= space else f"{event.name[: space - 1]}\N{HORIZONTAL ELLIPSIS}"
                ax.text(*middle, name, ha="center", va="center", fontsize="x-small", clip_on=True)
        for meeting, member in self._arrows():
            tip = (member.end_s or member.begin_s, tracks.place_of[id(member)])
            tail = (meeting.slowest.begin_s, tracks.place_of[id(meeting.slowest)])
            ax.annotate("", tip, tail, arrowprops={"arrowstyle": "->", "color": "C1"})
        most = max((count for _, _, _, count in self._memory), default=0)
        for place, track in enumerate(tracks.names):
            steps = [(time_s, count) for process, device, time_s, count in self._memory if (process, device) == track]
            if most and steps:
                heights = [place + 0.45 - 0.25 * count / most for _, count in steps]
                times = [time_s for time_s, _ in steps]
                ax.step([*times, max(end_s, times[-1])], [*heights, heights[-1]], where="post", color="black", lw=1)
        names = [f"process {process} {name}" if several else name for process, name in tracks.names]
        ax.set_yticks(range(len(names)), names)
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.set_xlabel(f"s; black steps: memory of arrays, up to {bytes_text(most)}" if most else "s")
        if self._events:
            ax.legend(fontsize="small")
        return ax

    def __repr__(self) -> str:
        return f"<Trace: {self._title()}>"

    def __str__(self) -> str:
        """Formats the title, the clocks, and tables of the slowest participants and of the time by kind."""
        parts = [f"Trace: {self._title()}", *self._notes()]
        for head, rows, right in self._tables():
            parts += ["", *table_lines([head, *rows], right=right)]
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        clocks = facts([(f"clock of process {clock.process}", _clock_text(clock)) for clock in self._clocks])
        tables = [table(head, rows) for head, rows, _ in self._tables()]
        return page(f"Trace: {self._title()}", clocks if self._clocks else "", *tables)

    def _title(self) -> str:
        count = len(self._events)
        ends = [event.end_s or event.begin_s for event in self._events]
        processes = len({event.process for event in self._events})
        several = f" of {processes} processes" if processes > 1 else ""
        return f"{count} event{'' if count == 1 else 's'}{several}, {seconds_text(max(ends, default=0.0), 3)}"

    def _notes(self) -> list[str]:
        notes = [f"clock of process {clock.process}: {_clock_text(clock)}" for clock in self._clocks]
        if self._dropped:
            notes.append(f"{self._dropped} events were not recorded: the trace is full")
        return notes

    def _tables(self) -> list[tuple[tuple[str, ...], list[tuple[str, ...]], tuple[int, ...]]]:
        """Returns head, rows and columns of numbers of each table."""
        tables: list[tuple[tuple[str, ...], list[tuple[str, ...]], tuple[int, ...]]] = []
        slowest: dict[tuple[str, str], list[float]] = defaultdict(list)
        with_collective = {event.meeting for event in self._events if event.kind == "collective"}
        for meeting in self._meetings:
            if meeting.slowest.kind == "meeting" and meeting.slowest.meeting in with_collective:
                continue  # of the same collective
            slowest[_participant(meeting.slowest), _described(meeting.slowest)].append(meeting.waited_s)
        ordered = sorted(slowest.items(), key=lambda item: -sum(item[1]))[:_ROWS_SHOWN]
        if ordered:
            rows: list[tuple[str, ...]] = [
                (who, str(len(waited)), seconds_text(sum(waited), 3), what) for (who, what), waited in ordered
            ]
            tables.append((("slowest", "times", "others waited", "operation"), rows, (1, 2)))
        counts: list[tuple[str, ...]] = []
        for kind in _KINDS:
            found = [event for event in self._events if event.kind == kind]
            if found:
                seconds = sum((event.end_s or event.begin_s) - event.begin_s for event in found)
                moved, planned = (sum(getattr(event, name) for event in found) for name in _BYTES)
                bytes_moved = bytes_text(moved) if moved else ""
                if planned != moved and planned:
                    bytes_moved = f"{bytes_moved} of {bytes_text(planned)} planned".strip()
                counts.append((kind, str(len(found)), seconds_text(seconds, 3), bytes_moved))
        if counts:
            tables.append((("kind", "events", "time", "bytes"), counts, (1, 2)))
        return tables

    def _process_name(self, process: int) -> str:
        hosts = [clock.host for clock in self._clocks if clock.process == process]
        return f"process {process}{f' on {hosts[0]}' if hosts else ''}"

    def _arrows(self) -> list[tuple[TracedMeeting, TraceEvent]]:
        """Returns each meeting with the participants other than its slowest."""
        return [
            (meeting, member)
            for meeting in self._meetings
            for member in meeting.members
            if member is not meeting.slowest
        ]


_BYTES = ("moved_bytes", "planned_bytes")


class _Tracks:
    """Rows of a trace: the threads of each process, then its devices. Events that overlap have several."""

    def __init__(self, events: Sequence[TraceEvent]) -> None:
        threads: dict[tuple[int, int], str] = {}
        prefetching = {(event.process, event.thread) for event in events if event.kind == "prefetch"}
        for event in events:
            if not event.device and (event.process, event.thread) not in threads:
                number = sum(process == event.process for process, _ in threads) + 1
                is_prefetch = (event.process, event.thread) in prefetching
                threads[event.process, event.thread] = f"{'prefetch' if is_prefetch else 'thread'} {number}"
        found: list[tuple[tuple[Any, ...], int, str]] = []  # order, process, name
        ends: dict[tuple[int, str], list[list[float]]] = {}  # of the events that last, of each row
        where: list[tuple[int, str, int]] = []
        for event in events:
            name = event.device or threads[event.process, event.thread]
            rows = ends.setdefault((event.process, name), [])
            end_s = float("inf") if event.end_s is None else event.end_s
            row = next((i for i, open_ends in enumerate(rows) if _fits(open_ends, event.begin_s, end_s)), len(rows))
            if row == len(rows):
                rows.append([])
                order = (event.process, bool(event.device), *_natural(name), row)
                found.append((order, event.process, name if row == 0 else f"{name} ({row + 1})"))
            rows[row].append(end_s)
            where.append((event.process, name if row == 0 else f"{name} ({row + 1})", row))
        self.names = [(process, name) for _, process, name in sorted(found)]
        place_of = {track: place for place, track in enumerate(self.names)}
        self.places = [place_of[process, name] for process, name, _ in where]
        self.place_of = {id(event): place for event, place in zip(events, self.places, strict=True)}

    def at(self, event: TraceEvent, time_s: float) -> dict[str, Any]:
        """Returns the track of an event and a time, as the trace names them."""
        return {"pid": event.process, "tid": self.place_of[id(event)] + 1, "ts": time_s * 1e6}


def _fits(open_ends: list[float], begin_s: float, end_s: float) -> bool:
    """Returns whether an event follows all events of a row or is within the last; drops events that have ended."""
    while open_ends and open_ends[-1] <= begin_s:
        open_ends.pop()
    return not open_ends or end_s <= open_ends[-1]


def _natural(name: str) -> tuple[str, int]:
    """Sorts cpu:10 behind cpu:9."""
    digits = re.search(r"\d+", name)
    return (name[: digits.start()] if digits else name, int(digits[0]) if digits else -1)


def _participant(event: TraceEvent) -> str:
    return f"process {event.process}" if not event.device else f"process {event.process}, {event.device}"


def _described(event: TraceEvent) -> str:
    over = f"{event.detail}: " if event.kind == "collective" and event.detail else ""
    line = f"{os.path.basename(event.file)}:{event.line}" if event.file else ""
    return f"{over}{event.name}{f' at {line}' if line and line not in event.name else ''}"


def _arguments(event: TraceEvent) -> dict[str, Any]:
    """Returns the details that the trace shows of an event, besides its name and times."""
    shown: dict[str, Any] = {}
    if event.detail:
        shown["detail"] = event.detail
    if event.file:
        shown["line"] = f"{event.file}:{event.line}"
    if event.kind == "transfer":
        shown["planned bytes"] = event.planned_bytes
    if event.moved_bytes or event.kind == "transfer":
        shown["actual bytes"] = event.moved_bytes
    if event.kind == "collective":
        shown["ran before, in us"] = round(event.busy_s * 1e6, 3)
    if event.end_s is None:
        shown["end"] = "it lasted when the trace ended"
    return shown


def _clock_text(clock: ProcessClock) -> str:
    if clock.process == 0:
        return f"the reference, on {clock.host}"
    error = "" if not clock.error_s else f", at most {seconds_text(clock.error_s, 3)} wrong by round trips"
    if clock.is_shared:
        return f"that of process 0, on {clock.host}{error}"
    if clock.error_s is None:
        return f"not aligned: round trips contradict each other; times are by the clock of {clock.host}"
    return f"{seconds_text(clock.ahead_s)} ahead, on {clock.host}{error}"


def _named(kind: str, process: int, track: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": process, "tid": track, "args": {"name": name}}
