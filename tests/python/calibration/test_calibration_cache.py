# SPDX-License-Identifier: Apache-2.0
"""The cache of calibrations survives any file content."""

from __future__ import annotations

import json

import pytest
from artifex_devices import calibration, command_line
from artifex_devices.calibration import ProcessLink
from artifex_devices.calibration import run as calibration_run
from artifex_devices.distributed import job
from calibrations import CONDITIONS


def test_the_cache_keeps_it(stand_in, tmp_path, monkeypatch):
    first = calibration.calibrate(cache=tmp_path, rounds=7)
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("calibration-")
    assert first.notes[-1] == f"stored in {file}"
    assert not first.from_cache
    again = calibration.calibrate(cache=str(tmp_path), rounds=7)
    assert again.from_cache
    monkeypatch.setattr(calibration_run, "_calibrations", {})  # as another process
    read = calibration.calibrate(cache=tmp_path, rounds=3)
    assert read.from_cache
    assert read.to_dict() == first.to_dict()
    assert read.notes[-1] == f"read from {file}"
    assert stand_in == [7]
    assert not calibration.calibrate(cache=tmp_path, refresh=True).from_cache
    assert len(stand_in) == 2
    calibration.calibrate(cache=False)
    monkeypatch.setenv("ARTIFEX_DEVICES_CACHE", "off")
    assert "not stored: ARTIFEX_DEVICES_CACHE=off" in calibration.calibrate().notes
    assert len(stand_in) == 4


def test_notes_say_what_one_process_cannot_measure(stand_in, tmp_path):
    (single, stored) = calibration.calibrate(cache=tmp_path).notes
    assert single == "one process: no links between processes to measure (mpiexec, distributed.initialize)"
    assert stored.startswith("stored in ")


def test_a_job_of_one_process_has_no_process_links(monkeypatch):
    for members, is_in_job in ((None, False), ((0, ("me",), ()), False), ((0, ("me", "other"), ()), True)):
        monkeypatch.setattr(job, "members", lambda members=members: members)
        assert calibration_run._is_in_job() is is_in_job


def test_a_calibration_of_a_job_is_not_stored_and_has_the_links_between_its_processes(stand_in, tmp_path, monkeypatch):
    from artifex_devices.calibration import processes

    links = ProcessLink(2, 1, "an MPI", 1e-4, 3e9, 2e-4, 4e9, True)
    sizes = []
    monkeypatch.setattr(job, "members", lambda: (0, ("one", "two")))
    monkeypatch.setattr(processes, "measure_processes", lambda nbytes: sizes.append(nbytes) or links)
    found = calibration.calibrate(cache=tmp_path, rounds=5)
    assert found.processes == links
    assert sizes == [CONDITIONS.array_bytes]
    assert found.notes == (
        "not stored: in a job of several processes each measures its share of the machine while the other processes do",
    )
    assert list(tmp_path.iterdir()) == []
    assert not calibration.calibrate(cache=tmp_path, rounds=5).from_cache
    assert stand_in == [5, 5]
    monkeypatch.setattr(job, "members", lambda: (0, ("one",)))  # a job of one process is as none
    assert calibration.calibrate(cache=tmp_path, rounds=5).processes is None


@pytest.mark.parametrize("forget", [True, False])
def test_a_stored_calibration_needs_as_many_rounds(stand_in, tmp_path, monkeypatch, forget, capsys):
    def calibrated(**rounds):
        if forget:
            monkeypatch.setattr(calibration_run, "_calibrations", {})  # as another process
        found = calibration.calibrate(cache=tmp_path, **rounds)
        return found.from_cache, found.conditions.rounds

    assert calibrated(rounds=1) == (False, 1)
    assert calibrated(rounds=1) == (True, 1)
    assert calibrated() == (False, 10)  # a rough one does not serve a call that asks for no number
    assert calibrated(rounds=1) == (True, 10)
    assert calibrated(rounds=20) == (False, 20)
    assert calibrated() == (True, 20)
    assert stand_in == [1, 10, 20]
    (file,) = tmp_path.iterdir()
    found = calibration.calibrate(cache=tmp_path, rounds=90)
    assert f"{file} is not used: it was measured with rounds=20, not 90" in found.notes
    assert "in 4.0 s, 90 rounds\n" in str(found)
    monkeypatch.setenv("ARTIFEX_DEVICES_CACHE", str(tmp_path))
    assert command_line.main(["calibrate", "--rounds", "91", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["from_cache"], content["conditions"]["rounds"]) == (False, 91)


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"format": 1}', '{"format": 2, "fingerprint": {}}', "\0"])
def test_a_damaged_file_is_not_used(stand_in, tmp_path, monkeypatch, content):
    calibration.calibrate(cache=tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_text(content)
    monkeypatch.setattr(calibration_run, "_calibrations", {})
    found = calibration.calibrate(cache=tmp_path)
    assert not found.from_cache
    assert any(note.startswith(f"{file} is not used: ") for note in found.notes)


def test_a_file_of_another_machine_is_not_used(stand_in, tmp_path, monkeypatch):
    calibration.calibrate(cache=tmp_path)
    (file,) = tmp_path.iterdir()
    content = json.loads(file.read_text())
    content["fingerprint"]["cpu_model"] = "another one"
    file.write_text(json.dumps(content))
    monkeypatch.setattr(calibration_run, "_calibrations", {})
    assert f"{file} is not used: it is of another machine" in calibration.calibrate(cache=tmp_path).notes
