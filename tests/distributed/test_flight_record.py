# SPDX-License-Identifier: Apache-2.0
"""Flight records: what each process did last, also one that was killed."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.real_processes


def work(steps):
    """So many reshards, each from rows to columns over all devices."""
    import artifex_devices as ad
    from artifex_devices import P

    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    x = ad.device_put(np.arange(144.0).reshape(12, 12), ad.NamedSharding(mesh, P("x")))
    for _ in range(steps):
        x = ad.reshard(x, ad.NamedSharding(mesh, P(None, "x")))  # the line that the record names
        x = ad.reshard(x, ad.NamedSharding(mesh, P("x")))
    return mesh


LINE = next(n for n, line in enumerate(Path(__file__).read_text().splitlines(), 1) if "the line that" in line)


def record(folder, *options):
    """The exit code and the output of `artifex_devices flight-record`."""
    command = [sys.executable, "-m", "artifex_devices", "flight-record", str(folder), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def only_job(tmp_path):
    (folder,) = (tmp_path / "flight").iterdir()
    return folder


def killed_after_two_steps():
    import artifex_devices as ad

    work(2)
    if ad.process_index() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    work(1)


def test_the_error_of_survivors_shows_what_a_killed_process_did_last(processes, tmp_path):
    job = processes(3, killed_after_two_steps, shielded=True)
    for number in (0, 2):
        name, text = job.errors[number]
        assert name == "CollectiveError"
        assert re.search(r"process 1 \(pid \d+ on .*\) ended without notice:\n", text)
        last = text[text.index("process 1 (pid", text.index("Flight records")) :]
        assert re.match(
            rf"process 1 .*\n(    .*\n)*    .*device_put of float64.*test_flight_record\.py:{LINE + 1}, ", last
        )
    code, output = record(only_job(tmp_path))
    assert code == 1
    assert "process 1 is behind: it has called nothing after that" in output
    code, output = record(only_job(tmp_path), "--json")
    document = json.loads(output)
    assert [each["state"] for each in document["processes"]] == ["ended without notice"] * 3
    ends = [each["events"][-1] for each in document["processes"]]
    assert {Path(event["file"]).name for event in ends} == {"test_flight_record.py"}
    assert document["groups"][0]["behind"] == [1]
    assert document["groups"][0]["common"]["line"] == LINE + 1


def different_branches():
    import artifex_devices as ad
    from artifex_devices import multihost_utils

    work(1)
    if ad.process_index() == 0:
        multihost_utils.sync_global_devices("step")
    else:
        multihost_utils.process_allgather(np.ones(3))


def test_processes_that_came_to_different_calls_are_named_with_their_lines(processes, tmp_path):
    job = processes(2, different_branches)
    for name, text in job.errors:
        assert name == "CollectiveError"
        assert re.search(r"processes 0-1 all called .*device_put of float64.*\n", text)
        assert re.search(r"process 0 then called sync_global_devices at .*test_flight_record.py:\d+\n", text)
        assert re.search(r"process 1 then called process_allgather at .*test_flight_record.py:\d+\n", text)
    assert record(only_job(tmp_path))[0] == 1


def test_a_job_that_ends_well_leaves_nothing(processes, tmp_path):
    def names():
        return [path.name for path in (tmp_path / "flight").iterdir()]

    assert processes(2, worked).values == [3, 3]
    assert names() == []


def worked():
    """How many files the job has, its folder included."""
    from artifex_devices import config

    work(1)
    return sum(1 for _ in Path(config.flight_record_dir).rglob("*"))


@pytest.mark.parametrize("where", ["off", "no folder"])
def test_it_can_be_turned_off_and_does_without_a_folder(processes, tmp_path, where):
    if where == "off":
        assert processes(2, without_a_record, initialize=False).values == [None, None]
    else:
        (tmp_path / "file").write_text("")
        job = processes(2, work_only, environment={"ARTIFEX_FLIGHT_RECORD_DIR": str(tmp_path / "file" / "folder")})
        assert job.values == [True, True]
        assert "operations are not recorded" in job.output
    assert not (tmp_path / "flight").exists()


def work_only():
    return work(1) is not None


def without_a_record():
    import artifex_devices as ad
    from artifex_devices import distributed

    ad.config.update("flight_record_dir", None)
    distributed.initialize()
    work(1)


def test_exchanges_are_recorded_with_their_bytes(processes):
    found = processes(2, events_of_a_reshard).values
    # Of 1,152 bytes each of the 2 processes has 576 in rows, and sends the half of them that the other has in columns.
    assert found == [[("meeting", "", 0, "done"), ("exchange", "messages", 576, "done")]] * 2


def events_of_a_reshard():
    import artifex_devices as ad
    from artifex_devices import P
    from artifex_devices.distributed import flight_records

    mesh = work(0)
    x = ad.device_put(np.arange(144.0).reshape(12, 12), ad.NamedSharding(mesh, P("x")))
    before = own_events(flight_records)
    ad.reshard(x, ad.NamedSharding(mesh, P(None, "x")))
    return [
        (event.kind, event.route, event.bytes, event.outcome) for event in own_events(flight_records)[len(before) :]
    ]


def own_events(flight_records):
    (own,) = (each for each in flight_records.read_job(flight_records.last_job()) if each.pid == os.getpid())
    return own.events
