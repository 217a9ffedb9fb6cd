# SPDX-License-Identifier: Apache-2.0
"""Texts and documents of traces whose events are given."""

import pytest
from artifex_devices.profiler.trace import ProcessClock, Trace

US = 1000
SHARED = 1 << 62  # of numbers that are the same in all processes


def row(kind, process, device, name, begin_us, end_us, *, detail="", busy_us=0, nbytes=(0, 0), meeting=0, line=0):
    ends = 0 if end_us is None else end_us * US
    file = "/work/run.py" if line else ""
    return (kind, process, device, 1, name, detail, begin_us * US, ends, busy_us * US, *nbytes, meeting, file, line)


CLOCKS = (ProcessClock(0, "a", 0.0, 0.0, True), ProcessClock(1, "b", 1e-3, None, False))
ROWS = (
    row("collective", 0, "cpu:0", "psum", 10, 90, detail="step", busy_us=10, meeting=7, line=3),
    row("collective", 0, "cpu:1", "psum", 10, 90, detail="step", busy_us=30, meeting=7, line=3),
    row("transfer", 1, "", "put", 100, 110, nbytes=(2048, 1024), line=9),
    row("exchange", 1, "", "send", 101, 105, nbytes=(0, 64)),
    row("span", 0, "", "load", 100, None, detail="n=1"),
)


def test_the_text_of_a_trace():
    assert str(Trace(ROWS, (), CLOCKS, dropped=3)).splitlines() == [
        "Trace: 5 events of 2 processes, 100 us",
        "clock of process 0: the reference, on a",
        "clock of process 1: not aligned: round trips contradict each other; times are by the clock of b",
        "3 events were not recorded: the trace is full",
        "",
        "slowest           times  others waited  operation",
        "process 0, cpu:1      1          20 us  step: psum at run.py:3",
        "",
        "kind        events    time  bytes",
        "span             1     0 s",
        "collective       2  160 us",
        "transfer         1   10 us  1.0 KiB of 2.0 KiB planned",
        "exchange         1    4 us  64 bytes",
    ]
    assert str(Trace()) == "Trace: 0 events, 0 s"
    assert repr(Trace(ROWS[4:])) == "<Trace: 1 event, 0 s>"


@pytest.mark.parametrize(
    ("clock", "text"),
    [
        (ProcessClock(1, "b", 0.0, 0.0, True), "that of process 0, on b"),
        (ProcessClock(1, "b", 0.0, 2e-6, True), "that of process 0, on b, at most 2 us wrong by round trips"),
        (ProcessClock(1, "b", 3e-3, 2e-6, False), "3 ms ahead, on b, at most 2 us wrong by round trips"),
    ],
)
def test_the_clock_of_a_process(clock, text):
    assert Trace(ROWS, (), (clock,)).as_dict()["otherData"] == {"clock of process 1": text}


def test_a_meeting_of_processes_within_a_collective_is_counted_once():
    within = [row("collective", p, f"cpu:{p}", "psum", 10, 90, busy_us=10 * p, meeting=SHARED + 7) for p in range(2)]
    within += [row("meeting", p, "", "processes 0, 1", 20 + 40 * p, 80, meeting=SHARED + 7) for p in range(2)]
    alone = [row("meeting", p, "", "checkpoint", 100 + 40 * p, 150, meeting=SHARED + 8) for p in range(2)]
    trace = Trace(sorted(within + alone, key=lambda each: each[6]))
    ((_, rows, _), _) = trace._tables()
    assert ("process 1", "1", "40 us", "checkpoint") in rows
    assert not [each for each in rows if "processes 0, 1" in each[3]]


def test_the_document_of_a_trace():
    document = Trace(ROWS, [(0, "cpu:0", 15 * US, 512)], CLOCKS, dropped=3).as_dict()
    assert document["otherData"]["not recorded"] == "3 events"
    assert "not recorded" not in Trace(ROWS).as_dict()["otherData"]
    named = {each["name"]: each for each in document["traceEvents"] if each["ph"] == "X"}
    assert named["load"]["args"] == {"detail": "n=1", "end": "it lasted when the trace ended"}
    assert (named["load"]["ts"], named["load"]["dur"]) == (90.0, 10.0)  # until the last end of an event
    assert named["put"]["args"] == {"line": "/work/run.py:9", "planned bytes": 2048, "actual bytes": 1024}
    assert named["send"]["args"] == {"actual bytes": 64}
    assert named["psum"]["args"] == {"detail": "step", "line": "/work/run.py:3", "ran before, in us": 30.0}
    begin, end = (each for each in document["traceEvents"] if each["name"] == "came last")
    shared = {"name": "came last", "cat": "collective", "id": 0, "pid": 0}
    tracks = {
        each["args"]["name"]: each["tid"]
        for each in document["traceEvents"]
        if each["name"] == "thread_name" and each["pid"] == 0
    }
    assert sorted(tracks) == ["cpu:0", "cpu:1", "thread 1"]
    assert begin == {**shared, "ph": "s", "tid": tracks["cpu:1"], "ts": 0.0}
    assert end == {**shared, "ph": "f", "bp": "e", "tid": tracks["cpu:0"], "ts": 80.0}
    (memory,) = [each for each in document["traceEvents"] if each["ph"] == "C"]
    assert memory == {"name": "memory of cpu:0", "ph": "C", "pid": 0, "ts": 5.0, "args": {"bytes": 512}}
