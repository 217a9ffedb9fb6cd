# SPDX-License-Identifier: Apache-2.0
"""Recording of a trace: `with profiler.trace("trace.json"):`, in one process and in a job of several."""

from __future__ import annotations

import errno
import json
import os
import socket
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artifex_devices._base.checks import check_type, entered_twice, never_entered
from artifex_devices._base.digest import digest_of
from artifex_devices._core import Client, internal
from artifex_devices.distributed import transport as transports
from artifex_devices.distributed.tags import Tag
from artifex_devices.distributed.transport import Exchange, Transport
from artifex_devices.profiler.trace import ProcessClock, Trace

_TRIPS = 64
_MOST_TRIPS = 1024  # where other programs use the cores
_GOOD_ERROR_NS = 12_000
_LAST = -1  # instead of a time: no further round trip
_OPERATION = "profiler.trace"
_STAMP = struct.Struct("<q")


class _Part(NamedTuple):
    """Events of one process, by its own clock."""

    host: str
    clock: str  # equal where processes read the same clock
    rows: list[list[Any]]
    memory: list[list[Any]]
    dropped: int


class _OpenTrace(Trace):
    """A trace that its `with` block records."""

    def __init__(self, path: Path | None) -> None:
        super().__init__()
        self._path = path
        self._recording: internal.TraceRecording | None = None
        self._client: Client | None = None

    def __enter__(self) -> Trace:
        """Starts to record; RuntimeError if it has recorded a block already, OSError if there is no folder for it."""
        if self._recording is not None:
            raise entered_twice("trace", "this trace has recorded a block already", "profiler.trace(...)")
        if self._path is not None and not self._path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, f"{os.strerror(errno.ENOENT)} for the trace", str(self._path.parent))
        if self._path is not None and self._path.is_dir():
            fix = f"write ad.profiler.trace({str(self._path / 'trace.json')!r})"
            raise IsADirectoryError(errno.EISDIR, f"profiler.trace: the path is a folder; {fix}", str(self._path))
        self._client = internal.current_client()
        self._recording = internal.TraceRecording(self._client.process_index())
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        recording, client = self._recording, self._client
        if recording is None or client is None:
            raise never_entered("trace", "profiler.trace(...)")
        recording.stop()
        own, count = client.process_index(), client.process_count()
        in_job = count > 1 and transports.is_installed(client)
        rows, memory = recording.events(), recording.memory()
        if in_job:  # the simulated processes of one interpreter record all events
            rows = [row for row in rows if row[1] == own]
            memory = [value for value in memory if value[0] == own]
        part = _Part(socket.gethostname(), _clock_identity(), rows, memory, recording.dropped)
        path = self._path
        if in_job and kind is None:
            transport = transports.of_client(client, _OPERATION)
            with transport.exclusive(_OPERATION):
                parts, clocks = _gather(part, transport, count)
            if own != 0:
                path = None
        else:
            parts, clocks = [part], []
            if in_job and path is not None:  # others may not come: each process writes its own
                path = path.with_name(f"{path.stem}.process_{own}{path.suffix}")
        rows, memory = _merged(parts, clocks)
        super().__init__(rows, memory, clocks, sum(each.dropped for each in parts))
        if path is not None:
            path.write_text(json.dumps(self.as_dict()), encoding="utf-8")


def trace(path: str | os.PathLike[str] | None = None) -> Trace:
    """Records what a `with` block does over time, for https://ui.perfetto.dev, notebooks and `print`.

    Recorded are transfers with planned and actual bytes, collectives with an arrow from the slowest participant to each
    other one, waits for data, batches of `prefetch_to_device`, meetings and exchanges of processes, spans of
    `annotate`, and the memory of the devices of the current world. While no trace is open, an operation pays one
    integer comparison.

    In a job of several processes, every process must open the trace, and leave the block together: process 0 gathers
    all events and writes the file. The clocks are compared by messages there and back. If a block ends by an exception,
    each process writes its own events as `trace.process_N.json`.

    Args:
        path: File for the trace, or None to write no file.

    Returns:
        A Trace, complete after the block: in a job in process 0, in others with their own events.

    Raises:
        TypeError: `path` is not a path.
        FileNotFoundError: Its folder does not exist.
        CollectiveError: Another process of the job does not leave the block.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(2), ad.profiler.trace() as trace:
        ...     x = ad.device_put(np.ones(4), ad.devices()[1])
        >>> [(event.kind, event.device, event.detail, event.moved_bytes) for event in trace.events]
        [('transfer', 'cpu:1', 'host -> cpu:1', 32)]
    """
    if path is not None:
        check_type("trace", "path", path, (str, os.PathLike), "a path or None", "write trace('trace.json')")
    return _OpenTrace(None if path is None else Path(path))


def _clock_identity() -> str:
    """Returns a text that is equal in processes that read the same CLOCK_MONOTONIC."""
    texts = []
    for file in ("/proc/sys/kernel/random/boot_id", "/proc/self/timens_offsets"):
        try:
            texts.append(Path(file).read_text(encoding="utf-8").strip())
        except OSError:
            texts.append("")
    return " ".join(texts)


def _gather(part: _Part, transport: Transport, count: int) -> tuple[list[_Part], list[ProcessClock]]:
    """Gathers the parts of all processes, and how their clocks differ, in process 0; others return their own part."""
    everyone = range(count)
    left = transport.left_for_others
    if left is not None:
        left[transport.process_index].append(part)
    transport.agree(f"{_OPERATION}: the end of the block", digest_of(_OPERATION), everyone)
    if left is not None:  # messages would make events of a run depend on how long it takes
        if transport.process_index != 0:
            return [part], []
        return [left[n].pop(0) for n in everyone], [ProcessClock(n, part.host, 0.0, 0.0, True) for n in everyone]
    with transport.exchange(_OPERATION) as messages:
        if transport.process_index != 0:
            while _STAMP.unpack(_receive(messages, _STAMP.size, 0)) != (_LAST,):
                _send(messages, _STAMP.pack(internal.trace_clock()), 0)
            data = json.dumps(part).encode()
            _send(messages, _STAMP.pack(len(data)), 0)
            _send(messages, data, 0)
            return [part], []
        parts = [part]
        clocks = [ProcessClock(0, part.host, 0.0, 0.0, True)]
        for process in everyone[1:]:
            difference = _compared(messages, process)
            (size,) = _STAMP.unpack(_receive(messages, _STAMP.size, process))
            other = _Part(*json.loads(bytes(_receive(messages, size, process))))
            parts.append(other)
            clocks.append(_clock_of(process, other, part, difference))
        return parts, clocks


def _compared(messages: Exchange, process: int) -> tuple[int, int] | None:
    """Measures how far a process's clock is ahead, and the error, in ns; makes more round trips for large errors."""
    trips = []
    found = None
    for number in range(1, _MOST_TRIPS + 1):
        sent_ns = internal.trace_clock()
        _send(messages, _STAMP.pack(sent_ns), process)
        (answered_ns,) = _STAMP.unpack(_receive(messages, _STAMP.size, process))
        trips.append((sent_ns, answered_ns, internal.trace_clock()))
        if number % _TRIPS == 0:
            found = internal.clock_difference(trips)
            if found is None or found[1] <= _GOOD_ERROR_NS:
                break
    _send(messages, _STAMP.pack(_LAST), process)
    return found


def _clock_of(process: int, part: _Part, first: _Part, found: tuple[int, int] | None) -> ProcessClock:
    if found is None:
        return ProcessClock(process, part.host, 0.0, None, part.clock == first.clock)
    ahead_ns, error_ns = found
    if part.clock == first.clock and abs(ahead_ns) <= error_ns:
        return ProcessClock(process, part.host, 0.0, error_ns / 1e9, True)
    return ProcessClock(process, part.host, ahead_ns / 1e9, error_ns / 1e9, False)


def _merged(parts: Sequence[_Part], clocks: Sequence[ProcessClock]) -> tuple[list[list[Any]], list[Any]]:
    """Returns events by begin and values of memory by time, by the clock of process 0."""
    rows: list[list[Any]] = []
    memory: list[Any] = []
    for place, part in enumerate(parts):
        ahead_ns = round(clocks[place].ahead_s * 1e9) if clocks else 0
        for row in part.rows:
            begin_ns, end_ns = row[6] - ahead_ns, row[7] - ahead_ns if row[7] else 0
            rows.append([*row[:6], begin_ns, end_ns, *row[8:]])
        memory += [(process, device, time_ns - ahead_ns, count) for process, device, time_ns, count in part.memory]
    return sorted(rows, key=lambda row: row[6]), sorted(memory, key=lambda value: value[2])


def _send(messages: Exchange, data: bytes, process: int) -> None:
    """Sends bytes, and waits until they are on their way."""
    messages.send(np.frombuffer(data, np.uint8), process, Tag.TRACE)
    messages.wait_all()


def _receive(messages: Exchange, size: int, process: int) -> memoryview:
    """Receives `size` bytes."""
    memory = np.empty(size, np.uint8)
    messages.receive(memory, process, Tag.TRACE)
    messages.wait_all()
    return memory.data
