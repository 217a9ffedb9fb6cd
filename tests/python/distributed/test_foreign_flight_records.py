# SPDX-License-Identifier: Apache-2.0
"""Flight records that another program wrote, or that are damaged."""

import struct

import pytest
from artifex_devices.command_line import main
from artifex_devices.distributed.flight_records import compare, read_job
from artifex_devices.distributed.timeline import Timeline

HEADER, MOST = 4096, 1 << 20


def write_record(folder, meetings, *, process=0, count=MOST, host="host"):
    """Writes the record of a process; meetings are texts of their processes, or those and the operation."""
    header = struct.pack("<8sIIIIqqqQI64s", b"ADFLIGHT", 1, len(meetings), process, count, 1, 0, 0, 0, 0, host.encode())
    slots = b""
    for number, meeting in enumerate(meetings, 1):
        processes, operation = (meeting, "psum") if isinstance(meeting, str) else meeting
        numbers = struct.pack("<QqqQQIII4B", number, 1, 2, number, 0, 1, 1, number, 0, 0, 1, 0)
        texts = struct.pack("<24s64s112s", processes.encode(), b"a.py", operation.encode())
        slots += (numbers + texts).ljust(256, b"\0")
    (folder / f"process_{process}.flight").write_bytes(header.ljust(HEADER, b"\0") + slots)


def test_groups_of_a_million_processes_take_no_time_each(tmp_path):
    """Each of 1,024 groups names all processes twice; only those with a record are members."""
    write_record(tmp_path, ["0-1048575,0-1048575"] * 1024)
    reports = compare(read_job(tmp_path))
    assert len(reports) == 1024
    assert {tuple(process for process, _ in report.members) for report in reports} == {(0,)}


def test_members_with_a_record_that_never_came_are_behind(tmp_path):
    write_record(tmp_path, ["0-3,7"], count=8)
    for process in (3, 4, 7):
        write_record(tmp_path, ["4"], process=process, count=8)
    reports = {report.processes: report for report in compare(read_job(tmp_path))}
    assert [process for process, _ in reports["0-3,7"].members] == [0, 3, 7]
    assert reports["0-3,7"].behind == [3, 7]


def test_a_timeline_of_many_meetings_copies_the_events_once(tmp_path, monkeypatch):
    for process in (0, 1):
        write_record(tmp_path, ["0-1"] * 1024, process=process, count=2, host=f"host{process}")
    records, accesses = read_job(tmp_path), []
    of_records = type(records[0])
    events = of_records.events
    monkeypatch.setattr(of_records, "events", property(lambda self: accesses.append(1) or events.__get__(self)))
    timeline = Timeline(records)
    timeline.waits, timeline.trace(), timeline.summary()
    assert len(timeline.meetings) == 1024
    assert len(accesses) == 2


@pytest.mark.parametrize("command", ["flight-record", "timeline"])
def test_texts_of_records_are_shown_escaped(tmp_path, capsys, command):
    evil = "\x1b[2J\x9b"
    for process in (0, 1):
        meetings = [(f"0-1{evil}", f"psum{evil}"), (f"0-1{evil}", f"put {process}{evil}")]
        write_record(tmp_path, meetings, process=process, count=2, host=f"h{process}{evil}")
    main([command, str(tmp_path)])
    shown = capsys.readouterr().out
    assert all(line.isprintable() for line in shown.split("\n"))
    assert r"psum\x1b[2J\x9b at a.py:1" in shown
    assert r"h1\x1b[2J\x9b" in shown
    main([command, "--json", str(tmp_path)])
    assert r"psum\u001b[2J\u009b" in capsys.readouterr().out
