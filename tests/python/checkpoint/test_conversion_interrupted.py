# SPDX-License-Identifier: Apache-2.0
"""Conversions that are killed, interrupted or fail: the same call continues, and the target is never half."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices.checkpoint import executing, pieces, rules
from artifex_devices.checkpoint.writers import writer

PROGRAM = """
import os
import signal
import sys
import time
from artifex_devices import checkpoint
from artifex_devices.checkpoint import pieces, planned_reader, rules

pieces.PIECE_BYTES = 1 << 14


def tile(reader, name, box, slab):  # through a scratch file: slabs of small arrays would be as good
    return None if slab == box else tuple(-(-size // 3) for size in box[1])


planned_reader.PlannedReader.tile = tile
source, format = sys.argv[1:]
files = {"num_files": 5} if format == "artifex" else {"max_shard_size": "400 kB"}
for line in sys.stdin:
    target, kill_after_s = line.split()
    child = os.fork()  # a new process for each conversion, without the time of the imports
    if not child:
        begin_s = time.monotonic()
        checkpoint.convert(source, target, rules=rules.transpose("w*", (1, 0)), format=format, **files)
        os.write(1, f"done {time.monotonic() - begin_s}\\n".encode())  # one write, which no kill divides
        os._exit(0)
    if float(kill_after_s):
        time.sleep(float(kill_after_s))  # a random moment
        os.kill(child, signal.SIGKILL)
    print("ended", os.waitpid(child, 0)[1], flush=True)
"""
KILLS = int(os.environ.get("ARTIFEX_KILLS", "8"))  # of each format


@pytest.fixture
def source(tmp_path):
    random = np.random.default_rng(0)
    checkpoint.save(tmp_path / "a", {f"w{number}": random.random((150, 100 + number)) for number in range(8)})
    return tmp_path / "a"


def bytes_of(folder):
    return {name: (folder / name).read_bytes() for name in sorted(os.listdir(folder))}


@pytest.mark.parametrize("format", ["artifex", "safetensors"])
def test_a_killed_conversion_continues_to_the_same_bytes(source, format, tmp_path):
    server = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, source, format],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )

    def convert(target, kill_after_s=0.0):
        """Returns whether the conversion ended by itself, and its seconds."""
        server.stdin.write(f"{target} {kill_after_s}\n")
        server.stdin.flush()
        lines = [server.stdout.readline()]
        while not lines[-1].startswith("ended"):
            lines.append(server.stdout.readline())
            assert lines[-1], lines
        status = int(lines[-1].split()[1])
        assert status in (0, signal.SIGKILL), lines
        return status == 0, float(lines[0].split()[1]) if status == 0 else 0.0

    with server:
        convert(tmp_path / "first")
        _, duration_s = convert(tmp_path / "whole")
        expected = bytes_of(tmp_path / "whole")
        drawn = random.Random(7)
        kills = rounds = 0
        while kills < KILLS:
            target = tmp_path / f"b{rounds}"
            rounds += 1
            latest_s = duration_s
            while not target.exists():
                is_done, _ = convert(target, drawn.random() * latest_s)
                kills += not is_done
                latest_s *= 1.1  # the machine may be slower than before
            assert bytes_of(target) == expected
        server.stdin.close()


def interrupted(source, target, error, *, after=3, **arguments):
    """Converts until `error` is raised at the beginning of a file."""
    count = 0

    class Failing(writer.Stream):
        def __init__(self, path, **more):
            nonlocal count
            count += 1
            if count > after:
                raise error
            super().__init__(path, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("artifex_devices.checkpoint.writers.artifex_writer.Stream", Failing)
        with pytest.raises(type(error)) as raised:
            checkpoint.convert(source, target, **arguments)
    return str(raised.value)


def test_finished_files_stay_and_others_are_written(source, tmp_path):
    text = interrupted(source, tmp_path / "b", OSError(errno.EIO, "Input/output error"), num_files=5)
    assert text == (
        f"[Errno 5] Input/output error; {str(tmp_path / 'b.partial')!r} has 3 finished files; the "
        "same call continues, or remove it to start again"
    )
    assert sorted(os.listdir(tmp_path)) == ["a", "b.partial"]
    files = tmp_path / "b.partial" / "files"
    times = {name: os.stat(files / name).st_mtime_ns for name in os.listdir(files)}
    assert len(times) == 3
    damaged = min(times)
    with open(files / damaged, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))
    done = []
    found = checkpoint.convert(source, tmp_path / "b", num_files=5, progress=done.append)
    assert done[-1] == found.nbytes == 8 * 150 * 8 * 100 + 28 * 150 * 8  # each file once
    kept = {name for name, time_ns in times.items() if os.stat(tmp_path / "b" / name).st_mtime_ns == time_ns}
    assert kept == set(times) - {damaged}
    checkpoint.convert(source, tmp_path / "whole", num_files=5)
    assert bytes_of(tmp_path / "b") == bytes_of(tmp_path / "whole")
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "whole"]


def test_finished_files_are_verified_on_several_threads_with_progress(source, tmp_path, monkeypatch):
    interrupted(source, tmp_path / "b", OSError(errno.EIO, "Input/output error"), after=2, num_files=5)
    both, seen = threading.Barrier(2, timeout=60), threading.Event()
    sizes = []

    compare = writer.is_stream

    def is_stream(path, record, count):
        both.wait()
        found = compare(path, record, count)
        sizes.append(record["bytes"] - record["head"])
        assert seen.wait(60)  # for a report about both files, before another file is written
        return found

    def progress(nbytes):
        if len(sizes) == 2 and nbytes == sum(sizes):
            seen.set()

    monkeypatch.setattr(writer, "is_stream", is_stream)
    monkeypatch.setattr(executing, "worker_count", lambda: 2)
    checkpoint.convert(source, tmp_path / "b", num_files=5, progress=progress)
    assert seen.is_set()
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_an_error_ends_the_verification_of_other_files(source, tmp_path, monkeypatch):
    """As Ctrl-C does, which need not wait until large files are read to their end."""
    interrupted(source, tmp_path / "b", OSError(errno.EIO, "Input/output error"), after=2, num_files=5)
    both = threading.Barrier(2, timeout=60)
    ended = []

    def is_stream(path, record, count):
        both.wait()
        if "shard-00001" in path:
            raise OSError(errno.EIO, "Input/output error")
        begin_s = time.monotonic()
        try:
            while time.monotonic() < begin_s + 60:
                count(0)
        finally:
            ended.append(time.monotonic() < begin_s + 60)

    monkeypatch.setattr(writer, "is_stream", is_stream)
    monkeypatch.setattr(executing, "worker_count", lambda: 2)
    with pytest.raises(OSError, match=r"b\.partial' has 2 finished files; the same call continues"):
        checkpoint.convert(source, tmp_path / "b", num_files=5)
    assert ended == [True]


@pytest.mark.parametrize(
    "change", [{"num_files": 4}, {"rules": rules.transpose("w0", (1, 0))}, {"dtype": "float32"}, {"overwrite": True}]
)
def test_another_call_is_refused(source, change, tmp_path):
    interrupted(source, tmp_path / "b", OSError(errno.EIO, "Input/output error"), num_files=5)
    arguments = {"num_files": 5, **change}
    if "overwrite" in change:  # says nothing about the files
        checkpoint.convert(source, tmp_path / "b", **arguments)
        return
    partial = tmp_path / "b.partial"
    text = rf"{partial}' is of another call; expected the rest of the same conversion; remove it .*: rm -r {partial}"
    with pytest.raises(ValueError, match=text):
        checkpoint.convert(source, tmp_path / "b", **arguments)
    assert len(os.listdir(partial / "files")) == 3


def test_a_source_that_changed_between_the_calls_is_refused(source, tmp_path):
    interrupted(source, tmp_path / "b", OSError(errno.EIO, "Input/output error"), num_files=5)
    (name,) = (each for each in os.listdir(source) if each.startswith("shard"))
    os.utime(source / name)
    with pytest.raises(ValueError, match=r"b.partial' is of a source that has changed; .*; remove it to start again"):
        checkpoint.convert(source, tmp_path / "b", num_files=5)
    assert not (tmp_path / "b").exists()


def test_a_source_that_changes_while_it_is_read_is_refused(source, tmp_path, monkeypatch):
    (name,) = (each for each in os.listdir(source) if each.startswith("shard"))
    monkeypatch.setattr(writer.Writer, "finish", lambda *_: os.utime(source / name))
    monkeypatch.setattr(checkpoint.converting.ArtifexWriter, "finish", writer.Writer.finish)
    with pytest.raises(ValueError, match=r"files of .* have changed while they were read; expected a checkpoint that"):
        checkpoint.convert(source, tmp_path / "b")
    assert os.listdir(tmp_path) == ["a"]


def test_ctrl_c_reaches_the_caller_and_finished_files_stay(source, tmp_path):
    threads = threading.active_count()
    text = interrupted(source, tmp_path / "b", KeyboardInterrupt(), num_files=5)
    assert text.startswith("checkpoint.convert: interrupted; ")
    assert "has 3 finished files; the same call continues" in text
    assert threading.active_count() == threads
    checkpoint.convert(source, tmp_path / "b", num_files=5)
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_other_errors_leave_no_file_and_no_thread(source, tmp_path):
    threads = threading.active_count()
    interrupted(source, tmp_path / "b", RuntimeError("no"), num_files=5)
    assert os.listdir(tmp_path) == ["a"]
    assert threading.active_count() == threads


LIMITED = """
import resource
import sys
from artifex_devices import checkpoint

resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, 1 << 18))  # files cannot grow further, as on a full disk
try:
    checkpoint.convert(sys.argv[1], sys.argv[2])
except OSError as error:
    print(error.errno, error)
"""


def test_a_full_disk_leaves_no_target(source, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, source, tmp_path / "b"],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    path = f"{tmp_path}/b.partial/files/shard-00001-model-00001-of-00001.safetensors"
    assert done.stdout == (
        f"27 [Errno 27] checkpoint.convert: {path}: cannot write 105552 bytes at 262144: File too large; there is "
        f"nothing at {str(tmp_path / 'b')!r}\n"
    )
    assert os.listdir(tmp_path) == ["a"]


def test_two_conversions_to_one_target_do_not_run_at_once(source, tmp_path):
    seen = []

    def convert_again(_):
        if not seen:
            with pytest.raises(BlockingIOError, match=r"another save to .*b' is running; expected one at a time"):
                checkpoint.convert(source, tmp_path / "b", num_files=5)
            seen.append(sorted(os.listdir(tmp_path)))

    checkpoint.convert(source, tmp_path / "b", num_files=5, progress=convert_again)
    assert seen in ([["a", "b.partial"]], [["a", "b"]], [["a", "b", "b.partial"]])


@pytest.mark.parametrize("name", ["note.txt", "files/mine"])
def test_a_folder_that_no_conversion_wrote_stays(source, name, tmp_path):
    (tmp_path / "b.partial" / "files").mkdir(parents=True)
    (tmp_path / "b.partial" / name).write_text("mine")
    with pytest.raises(OSError, match=r"b.partial' contains .*, which no conversion wrote; .*; move it away"):
        checkpoint.convert(source, tmp_path / "b")
    assert (tmp_path / "b.partial" / name).read_text() == "mine"


def test_a_torn_last_line_of_the_journal_is_ignored(source, tmp_path):
    interrupted(source, tmp_path / "b", OSError(errno.EIO, "Input/output error"), num_files=5)
    journal = tmp_path / "b.partial" / "journal.jsonl"
    lines = journal.read_text().splitlines()
    assert [sorted(json.loads(line)) for line in lines[1:]] == [["file", "record"]] * 3
    journal.write_text("\n".join(lines)[:-9])
    interrupted(source, tmp_path / "b", OSError(errno.EIO, "Input/output error"), num_files=5, after=1)
    checkpoint.convert(source, tmp_path / "b", num_files=5)
    checkpoint.convert(source, tmp_path / "whole", num_files=5)
    assert bytes_of(tmp_path / "b") == bytes_of(tmp_path / "whole")
    assert pieces.PIECE_BYTES == 64 << 20


def test_the_journal_of_a_complete_conversion_is_removed(source, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.converting.PartialFolder, "_remove_outer", lambda _: None)  # as if killed before it
        checkpoint.convert(source, tmp_path / "b")
    assert os.listdir(tmp_path / "b.partial") == ["journal.jsonl"]
    with pytest.raises(FileExistsError, match=r"b' exists; expected a new path"):
        checkpoint.convert(source, tmp_path / "b", num_files=2)
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]
