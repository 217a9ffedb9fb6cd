# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices flight-record` on records that were made here; tests/distributed has those of real jobs."""

import json
import os
import re
import subprocess
import sys

import artifex_devices as ad
import pytest
from artifex_devices.command_line import main
from artifex_devices.distributed import flight_records


def make_job(folder, *operations, host=None):
    """The records of processes that have come to these operations, one after the other."""
    everyone = tuple(range(len(operations)))
    for process in everyone:
        records = flight_records.FlightRecords(str(folder), process, len(operations), host or os.uname().nodename)
        group = records.group(everyone)
        for operation in operations[process]:
            group.meet(operation, operation.encode().ljust(32, b"\0"))
            records.recorder.end(group.last)
    return folder


def shown_path(path):
    return path if len(path) <= 64 else f"...{path[-61:]}"


def run(capsys, *words):
    code = main(["flight-record", *map(str, words)])
    return code, capsys.readouterr().out


def test_a_process_that_is_behind_is_named(tmp_path, capsys):
    code, text = run(capsys, make_job(tmp_path, ["put", "psum"], ["put"], ["put", "psum"]))
    assert code == 1
    here = rf"at {re.escape(shown_path(__file__))}:\d+"
    assert re.search(rf"processes 0-2 all called put {here}\n", text)
    assert re.search(rf"  process 0 then called psum {here}\n", text)
    assert "  process 1 is behind: it has called nothing after that\n" in text
    assert re.search(rf"process 2 \(pid {os.getpid()} on .*\) runs:\n", text)


def test_processes_that_came_to_different_operations_are_named(tmp_path, capsys):
    code, text = run(capsys, make_job(tmp_path, ["put", "psum"], ["put", "all_gather"]))
    assert code == 1
    assert "process 0 then called psum at " in text
    assert "process 1 then called all_gather at " in text


def test_a_job_that_is_together_needs_no_attention(tmp_path, capsys):
    code, text = run(capsys, make_job(tmp_path, ["put"], ["put"]))
    assert code == 0
    assert "all processes called the same operations\n" in text


def test_last_limits_the_operations(tmp_path, capsys):
    names = [f"step{number}" for number in range(9)]
    _, text = run(capsys, make_job(tmp_path, names), "--last", 2)
    assert [name for name in names if f"  {name} at" in text] == names[-2:]


def test_json_has_all_events(tmp_path, capsys):
    names = [f"step{number}" for number in range(9)]
    _, text = run(capsys, make_job(tmp_path, names), "--json")
    document = json.loads(text)
    assert [event["operation"] for event in document["processes"][0]["events"]] == names
    assert document["groups"] == [
        {
            "processes": "0",
            "common": document["processes"][0]["events"][-1],
            "next": [{"process": 0, "event": None}],
            "behind": [],
            "is_apart": False,
        }
    ]


def test_the_states_of_processes(tmp_path):
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    (record,) = flight_records.read_job(str(make_job(tmp_path, ["put"])))
    assert flight_records.state_of(record) == "runs"
    path = tmp_path / "process_0.flight"
    data = bytearray(path.read_bytes())
    data[24:32] = int(gone.stdout).to_bytes(8, sys.byteorder)
    path.write_bytes(data)
    (record,) = flight_records.read_job(str(tmp_path))
    assert flight_records.state_of(record) == "ended without notice"
    data[56] = 1
    path.write_bytes(data)
    (record,) = flight_records.read_job(str(tmp_path))
    assert flight_records.state_of(record) == "left"
    path.unlink()
    (record,) = flight_records.read_job(str(make_job(tmp_path, ["put"], host="another-host")))
    assert flight_records.state_of(record) == "is on another host"


def test_the_last_job_is_the_default(tmp_path, capsys):
    before = ad.config.flight_record_dir
    ad.config.update("flight_record_dir", str(tmp_path))
    try:
        assert main(["flight-record"]) == 2
        assert "has no jobs; expected a job that crashed or that runs" in capsys.readouterr().err
        for name in ("20260101-000000-1", "20260102-000000-1"):
            (tmp_path / name).mkdir()
            make_job(tmp_path / name, [name])
        assert "20260102-000000-1 at" in run(capsys)[1]
    finally:
        ad.config.update("flight_record_dir", before)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "has no record; expected files process_N.flight"),
        (b"", "process_0.flight is not a flight record"),
        (b"ADFLIGHT" + bytes(5000), "has version 0 of the format; expected 1"),
        (b"ADFLIGHT\1\0\0\0\1\0\0\0" + bytes(5000), "is damaged: 5016 bytes for 1 events"),
    ],
)
def test_folders_without_records_and_damaged_ones_are_refused(tmp_path, capsys, content, text):
    if content is not None:
        (tmp_path / "process_0.flight").write_bytes(content)
    assert main(["flight-record", str(tmp_path)]) == 2
    assert text in capsys.readouterr().err


def test_a_timeline_has_a_summary_and_a_trace(tmp_path, capsys):
    make_job(tmp_path, ["put", "psum"], ["put", "psum"], ["put"])
    trace = tmp_path / "trace.json"
    assert main(["timeline", str(tmp_path), "-o", str(trace)]) == 0
    text = capsys.readouterr().out
    assert f"clock of {os.uname().nodename}: the reference\n" in text
    assert re.search(r"process 2 +1 +[\d.]+ [mu]?s +put at", text)  # the records were made one after the other
    assert re.search(r"process 1 +1 +[\d.]+ [mu]?s +psum at", text)
    events = json.loads(trace.read_text())["traceEvents"]
    operations = [(event["pid"], event["name"]) for event in events if event["ph"] == "X"]
    assert operations == [(0, "put"), (0, "psum"), (1, "put"), (1, "psum"), (2, "put")]
    assert [(event["ph"], event["pid"]) for event in events if event["ph"] in "sf"].count(("s", 2)) == 2
    assert main(["timeline", str(tmp_path), "-o", str(tmp_path / "none" / "trace.json")]) == 2
    assert "No such file or directory" in capsys.readouterr().err


def test_json_of_a_timeline_has_clocks_and_waits(tmp_path, capsys):
    make_job(tmp_path, ["put", "psum"], ["put", "psum"], ["put"])
    assert main(["timeline", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["clocks"] == [{"host": os.uname().nodename, "ahead_s": 0.0, "error_s": 0.0}]
    assert {(wait["process"], wait["times"], wait["operation"]) for wait in document["waits"]} == {
        (2, 1, "put"),  # the records were made one after the other
        (1, 1, "psum"),
    }
    seconds = [wait["waited_s"] for wait in document["waits"]]
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[-1] > 0
    assert {wait["file"] for wait in document["waits"]} == {shown_path(__file__)}


def test_the_setting_is_checked():
    with pytest.raises(TypeError, match=r"config.update: flight_record_dir is 3 \(int\); expected a path or None"):
        ad.config.update("flight_record_dir", 3)
