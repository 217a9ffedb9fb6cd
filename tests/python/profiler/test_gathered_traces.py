# SPDX-License-Identifier: Apache-2.0
"""How process 0 gathers the trace of a job and compares the clocks, in processes that threads play."""

from types import SimpleNamespace

import pytest
from artifex_devices.profiler import recording
from artifex_devices.profiler.recording import _clock_of, _gather, _merged, _Part
from artifex_devices.profiler.trace import ProcessClock
from shared_worlds import Job, QueueTransport


def part_of(process, clock="boot", host=None):
    row = [1, process, "kind", "name", "device", "detail", 1000 + process, 2000 + process, 8]
    return _Part(host or f"host{process}", clock, [row], [[process, "cpu:0", 1500, 8]], process)


@pytest.fixture
def stamps(monkeypatch):
    """The times sent to each process by process 0; -1 after the last one."""
    sent = {1: [], 2: []}
    send = QueueTransport.isend

    def isend(self, buffer, peer, tag):
        if self.process_index == 0:
            sent[peer].append(*recording._STAMP.unpack(bytes(memoryview(buffer))))
        return send(self, buffer, peer, tag)

    monkeypatch.setattr(QueueTransport, "isend", isend)
    monkeypatch.setattr(QueueTransport, "left_for_others", None, raising=False)
    return sent


def test_process_0_gets_all_parts_and_the_others_keep_their_own(stamps, monkeypatch):
    monkeypatch.setattr(recording, "_MOST_TRIPS", 128)
    parts = [part_of(process) for process in range(3)]
    with Job([1, 1, 1]) as job:
        found = job.run(lambda i: _gather(parts[i], job.transports[i], 3))
        assert not any(job.wires.messages.values())
        assert [each.operations for each in job.transports] == [["profiler.trace: the end of the block"]] * 3
    assert found[0][0] == parts
    assert found[1:] == [([parts[1]], []), ([parts[2]], [])]
    first, *others = found[0][1]
    assert first == ProcessClock(0, "host0", 0.0, 0.0, True)
    assert [(clock.process, clock.host) for clock in others] == [(1, "host1"), (2, "host2")]
    for times in stamps.values():
        assert times[-1] == -1
        assert len(times) - 1 in (64, 128)
        assert times[:-1] == sorted(times[:-1])


@pytest.mark.parametrize(
    ("answers", "trips"),
    [
        ([(5, 12_000)], 64),
        ([(5, 12_001), (4, 30_000), (3, 100)], 192),
        ([(5, 12_001)] * 16, 1024),
        ([None], 64),
    ],
)
def test_clocks_are_compared_until_the_error_is_small(answers, trips, monkeypatch):
    sent, counts, left = [], [], list(answers)
    monkeypatch.setattr(recording, "_send", lambda transport, data, process: sent.append((data, process)))
    monkeypatch.setattr(
        recording, "_receive", lambda transport, size, process: recording._STAMP.pack(10**6 + len(sent))[:size]
    )

    def difference(rows):
        counts.append(len(rows))
        assert [answered for _, answered, _ in rows] == [10**6 + i for i in range(1, len(rows) + 1)]
        assert all(begin <= end for begin, _, end in rows)
        return left.pop(0)

    monkeypatch.setattr(recording.internal, "clock_difference", difference)
    assert recording._compared(SimpleNamespace(), 2) == answers[-1]
    assert counts == [64 * i for i in range(1, len(answers) + 1)]
    assert len(sent) == trips + 1
    assert sent[-1] == (recording._STAMP.pack(-1), 2)


@pytest.mark.parametrize(
    ("clock", "found", "expected"),
    [
        ("boot", None, (0.0, None, True)),
        ("other", None, (0.0, None, False)),
        ("boot", (-2000, 2000), (0.0, 2e-6, True)),  # the same clock, as far as can be measured
        ("boot", (2001, 2000), (2.001e-6, 2e-6, False)),
        ("other", (1000, 2000), (1e-6, 2e-6, False)),
    ],
)
def test_clocks_that_are_equal_have_no_difference(clock, found, expected):
    clock = _clock_of(1, part_of(1, clock), part_of(0), found)
    assert (clock.process, clock.host) == (1, "host1")
    assert (clock.ahead_s, clock.error_s, clock.is_shared) == expected


def test_events_of_all_processes_are_in_the_order_of_the_first_clock():
    parts = [part_of(0), part_of(1), part_of(2)]
    parts[2].rows[0][7] = 0  # an event without an end
    clocks = [ProcessClock(i, "host", ahead, 0.0, True) for i, ahead in enumerate((0.0, 500e-9, -100e-9))]
    rows, memory = _merged(parts, clocks)
    assert [(row[1], row[6], row[7], row[8]) for row in rows] == [
        (1, 501, 1501, 8),
        (0, 1000, 2000, 8),
        (2, 1102, 0, 8),
    ]
    assert memory == [(1, "cpu:0", 1000, 8), (0, "cpu:0", 1500, 8), (2, "cpu:0", 1600, 8)]
    assert _merged(parts[:1], [])[0] == parts[0].rows
