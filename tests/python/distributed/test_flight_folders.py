# SPDX-License-Identifier: Apache-2.0
"""Folders of flight records: which folders a new job creates, uses and removes."""

import os
import re
import socket
import struct
import subprocess
import sys

import pytest
from artifex_devices.distributed import flight_folders
from artifex_devices.distributed.flight_records import FlightRecords, make_job_folder

PID = struct.Struct("=q")
PID_OFFSET = 24  # docs/formats/flight_record.md


def name_of(number):
    return f"20000101-0000{number:02}-1"


def job(directory, name, host=None):
    """Makes a folder with a record; the job runs as long as the result exists."""
    (directory / name).mkdir()
    return FlightRecords(str(directory / name), 0, 1, host or socket.gethostname())


def ended_jobs(directory, count=25):
    for number in range(count):
        job(directory, name_of(number))
    return {name_of(number) for number in range(count)}


def names_in(directory):
    return {path.name for path in directory.iterdir()}


def test_the_records_of_the_last_twenty_jobs_stay(tmp_path):
    ended_jobs(tmp_path)
    made = make_job_folder(str(tmp_path))
    assert re.fullmatch(rf"{re.escape(str(tmp_path))}/\d{{8}}-\d{{6}}-{os.getpid()}", made)
    assert os.stat(made).st_mode & 0o777 == 0o700
    assert names_in(tmp_path) == {*(name_of(number) for number in range(6, 25)), os.path.basename(made)}


@pytest.mark.parametrize("day", ["19990101", "20300101"])
def test_a_job_keeps_its_own_folder_whatever_the_clock_says(tmp_path, monkeypatch, day):
    ended_jobs(tmp_path)
    monkeypatch.setattr(flight_folders.time, "strftime", lambda _: f"{day}-000000")
    made = make_job_folder(str(tmp_path))
    assert os.path.basename(made) == f"{day}-000000-{os.getpid()}"
    assert os.path.isdir(made)
    assert len(names_in(tmp_path)) == 20


def test_a_job_whose_name_is_taken_gets_another_one(tmp_path, monkeypatch):
    monkeypatch.setattr(flight_folders.time, "strftime", lambda _: "20300101-000000")
    made = [os.path.basename(make_job_folder(str(tmp_path))) for _ in range(3)]
    first = f"20300101-000000-{os.getpid()}"
    assert made == [first, f"{first}-1", f"{first}-2"]


def test_folders_of_the_user_stay(tmp_path):
    ended_jobs(tmp_path)
    kept = {"empty": [], "0": ["process_0.flight"], name_of(50): [], name_of(51): ["notes.txt"]}
    kept[name_of(52)] = ["process_0.flight"]  # with other content
    for name, files in kept.items():
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).write_text("mine")
    mixed = [job(tmp_path, f"19990101-00000{i}-1") for i in range(3)]
    (tmp_path / "19990101-000000-1" / "notes.txt").write_text("mine")
    (tmp_path / "19990101-000001-1" / "process_1.flight").write_text("mine")
    (tmp_path / "19990101-000002-1" / "process_1.flight").symlink_to(
        tmp_path / "19990101-000001-1" / "process_0.flight"
    )
    mixed.clear()
    (tmp_path / "a file").write_text("")
    for _ in range(2):
        make_job_folder(str(tmp_path))
    stay = {*kept, "a file", *(f"19990101-00000{i}-1" for i in range(3))}
    assert stay <= names_in(tmp_path)
    assert name_of(0) not in names_in(tmp_path)


def test_records_of_running_jobs_stay_whatever_their_process_number(tmp_path):
    ended_jobs(tmp_path)
    running = job(tmp_path, "19990101-000000-1")
    with open(tmp_path / "19990101-000000-1" / "process_0.flight", "r+b") as file:  # as in another PID namespace
        file.seek(PID_OFFSET)
        assert PID.unpack(file.read(PID.size)) == (os.getpid(),)
        file.seek(PID_OFFSET)
        file.write(PID.pack(2**22 + 1))
    make_job_folder(str(tmp_path))
    assert "19990101-000000-1" in names_in(tmp_path)
    assert name_of(0) not in names_in(tmp_path)
    del running
    make_job_folder(str(tmp_path))
    assert "19990101-000000-1" not in names_in(tmp_path)


def test_one_running_process_keeps_the_folder_of_its_job(tmp_path):
    ended_jobs(tmp_path)
    job(tmp_path, "19990101-000000-1")
    running = FlightRecords(str(tmp_path / "19990101-000000-1"), 1, 2, socket.gethostname())
    make_job_folder(str(tmp_path))
    assert os.listdir(tmp_path / "19990101-000000-1") == ["process_0.flight", "process_1.flight"]
    running.close()


def test_records_of_another_host_stay(tmp_path):
    ended_jobs(tmp_path)
    job(tmp_path, "19990101-000000-1", host="elsewhere")
    make_job_folder(str(tmp_path))
    assert "19990101-000000-1" in names_in(tmp_path)


def test_a_killed_process_does_not_keep_its_folder(tmp_path):
    program = (
        "import os, signal, socket, sys\n"
        "from artifex_devices.distributed.flight_records import FlightRecords\n"
        "os.mkdir(sys.argv[1])\n"
        "records = FlightRecords(sys.argv[1], 0, 1, socket.gethostname())\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = tmp_path / "19990101-000000-1"
    subprocess.run([sys.executable, "-c", program, str(killed)], check=False, timeout=60)
    assert os.listdir(killed) == ["process_0.flight"]
    ended_jobs(tmp_path, 19)
    make_job_folder(str(tmp_path))
    assert not killed.exists()


def test_links_are_not_followed(tmp_path):
    directory, other = tmp_path / "flight", tmp_path / "other"
    directory.mkdir()
    other.mkdir()
    ended_jobs(directory)
    job(other, name_of(0))
    (directory / "19990101-000000-1").symlink_to(other / name_of(0))
    make_job_folder(str(directory))
    assert (directory / "19990101-000000-1").is_symlink()
    assert os.listdir(other / name_of(0)) == ["process_0.flight"]
    (tmp_path / "planted").symlink_to(other)
    for path in (f"{tmp_path}/planted", f"{tmp_path}/planted/"):
        with pytest.raises(PermissionError, match=r"/planted is a link; expected a folder of this user"):
            make_job_folder(path)
    assert names_in(other) == {name_of(0)}


def test_the_folder_of_another_user_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr(flight_folders.os, "getuid", lambda: os.stat(tmp_path).st_uid + 1)
    with pytest.raises(PermissionError, match=r"^/\S+ belongs to user \d+; expected a folder of this user"):
        make_job_folder(str(tmp_path))
    assert names_in(tmp_path) == set()


@pytest.mark.parametrize("planted", ["folder", "link"])
def test_what_another_user_put_in_a_folder_open_to_everyone_is_not_used(tmp_path, monkeypatch, planted):
    public, victim = tmp_path / "tmp", tmp_path / "victim"
    for folder in (public, victim, victim / "flight"):
        folder.mkdir()
    public.chmod(0o1777)
    if planted == "link":
        (public / "artifex_devices-1").symlink_to(victim)
    else:
        (public / "artifex_devices-1").mkdir()
    status, lstat = os.lstat(public / "artifex_devices-1"), os.lstat
    other = os.stat_result((*status[:4], os.getuid() + 4711, *status[5:]))
    monkeypatch.setattr(
        flight_folders.os, "lstat", lambda path: other if str(path).endswith("artifex_devices-1") else lstat(path)
    )
    with pytest.raises(PermissionError, match=r"/artifex_devices-1 belongs to user \d+; expected a folder"):
        make_job_folder(f"{public}/artifex_devices-1/flight")
    assert names_in(victim / "flight") == set()


def test_missing_folders_are_created_for_this_user_only(tmp_path):
    before = os.umask(0)
    try:
        make_job_folder(f"{tmp_path}/artifex_devices-1/flight")
    finally:
        os.umask(before)
    for path in ("artifex_devices-1", "artifex_devices-1/flight"):
        assert os.stat(tmp_path / path).st_mode & 0o777 == 0o700


def test_a_relative_folder_is_named_by_its_full_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert os.path.dirname(make_job_folder("flight")) == f"{tmp_path}/flight"
