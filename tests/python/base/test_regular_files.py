# SPDX-License-Identifier: Apache-2.0
"""Files of others are read only if they are regular files, and not further than a limit."""

import gzip
import json
import os
import signal
import sys
import tracemalloc

import pytest
from artifex_devices import cluster, models
from artifex_devices._base.regular_file import decompressed, read_regular_file
from artifex_devices.command_line import main
from artifex_devices.planner import read_profile
from artifex_devices.planner.profile import trace_file

READERS = {
    "bytes": (lambda path: read_regular_file(path, 100), ""),
    "config of a model": (models.from_hf_config, "models.from_hf_config: "),
    "profile": (read_profile, "read_profile: "),
    "cluster": (cluster.from_toml, "from_toml: "),
}


@pytest.fixture(params=["pipe", "/dev/zero", "link to a pipe"])
def endless(request, tmp_path):
    """A path whose read never ends."""
    path = tmp_path / "file.json"
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "/dev/zero":
        os.symlink("/dev/zero", path)
    else:
        os.mkfifo(tmp_path / "pipe")
        os.symlink("pipe", path)
    return path


@pytest.mark.parametrize("reader", READERS)
def test_pipes_and_devices_are_refused(reader, endless):
    read, operation = READERS[reader]
    with pytest.raises(ValueError, match=f"{operation}.*is not a regular file"):
        read(endless)


@pytest.mark.parametrize("words", [("plan", "mesh", "--mesh", "x=2", "--cluster"), ("topology", "--machine")])
def test_commands_refuse_them(words, endless, capsys):
    path = endless.with_suffix(".xml" if words[0] == "topology" else ".toml")
    endless.rename(path)
    assert main([*words, str(path)]) == 2
    assert "is not a regular file" in capsys.readouterr().err


def test_a_file_of_the_greatest_size_is_read(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    assert read_regular_file(path, 3) == b"abc"
    with pytest.raises(ValueError, match="has more than 2 bytes"):
        read_regular_file(path, 2)
    os.truncate(path, (3 << 20) + 1)
    with pytest.raises(ValueError, match=f"has more than {3 << 20} bytes"):
        read_regular_file(path, 3 << 20)


def test_what_is_compressed_by_gzip_is_decompressed_up_to_a_limit():
    content = b"ab" * 1000
    assert decompressed(content, 1) == content
    assert decompressed(gzip.compress(content), 2000) == content
    assert decompressed(gzip.compress(content) + gzip.compress(b"c") + bytes(3), 2001) == content + b"c"
    with pytest.raises(ValueError, match="has more than 1999 bytes when it is decompressed"):
        decompressed(gzip.compress(content), 1999)
    for cut in (gzip.compress(content)[:-1], gzip.compress(content)[:20], b"\x1f\x8b"):
        with pytest.raises(EOFError):
            decompressed(cut, 2000)
    with pytest.raises(gzip.BadGzipFile):
        decompressed(b"\x1f\x8b\x00" + bytes(20), 2000)


def test_a_small_file_that_becomes_large_is_refused_before_it_does(tmp_path):
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(bytes(200 << 20)))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=f"has more than {64 << 20} bytes when it is decompressed"):
            read_profile(path)
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


def test_events_that_a_profile_does_not_need_are_not_kept(tmp_path):
    path = tmp_path / "trace.json"
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 0, "dur": 4e6, "args": {"device": 0, "x": "y" * 1000}}
    others = [[], {}, {"ph": "B", "name": "x" * 100}] * 30_000
    path.write_text(json.dumps({"other": [others[:5]], "traceEvents": [*others, kernel, *others]}))
    tracemalloc.start()
    try:
        assert read_profile(path, steps=1).busy["products"] == 4.0
        assert tracemalloc.get_traced_memory()[1] < 3 * path.stat().st_size
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("", "is not JSON"),
        ("[", "is not JSON"),
        ("[1,]", "is not JSON"),
        ("[1 2]", "is not JSON"),
        ("[1] 2", "is not JSON"),
        ('{"a" 1}', "is not JSON"),
        ("{1: 2}", "is not JSON"),
        ('{"traceEvents": [}', "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("\ufeff3", "has no list of traceEvents"),
        ('{"traceEvents": {}}', "has no list of traceEvents"),
        ('{"traceEvents": [], "traceEvents": 1}', "has no list of traceEvents"),
        ("{}", "has no list of traceEvents"),
        (' {"traceEvents" : [ ] , "b":1 } ', "has no operations of a device"),
        ("[]", "has no operations of a device"),
    ],
)
def test_traces_are_json_with_events(tmp_path, text, refusal):
    path = tmp_path / "trace.json"
    path.write_text(text)
    if "not JSON" in refusal:
        with pytest.raises((ValueError, RecursionError)):
            json.loads(text)
    with pytest.raises(ValueError, match=refusal):
        read_profile(path)


def test_standard_input_is_not_a_file(monkeypatch):
    assert sys.platform == "linux"
    read, write = os.pipe()
    try:
        with pytest.raises(ValueError, match="is not a regular file"):
            models.from_hf_config(f"/dev/fd/{read}")
    finally:
        os.close(read)
        os.close(write)


def test_ctrl_c_ends_the_read_of_a_large_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(bytes(10 << 20))
    pieces = []

    def read(number, size):
        pieces.append(size)
        signal.raise_signal(signal.SIGINT)
        return b"x" * size

    with monkeypatch.context() as patch:
        patch.setattr(os, "read", read)
        with pytest.raises(KeyboardInterrupt):
            read_regular_file(path, 10 << 20)
    assert len(pieces) == 1


def test_ctrl_c_ends_the_read_of_a_trace_between_two_events(tmp_path, monkeypatch):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([{"ph": "X", "name": "a"}] * 1000))
    events = []

    def reduced(event):
        events.append(event)
        signal.raise_signal(signal.SIGINT)
        return event

    monkeypatch.setattr(trace_file, "_reduced", reduced)
    with pytest.raises(KeyboardInterrupt):
        read_profile(path)
    assert len(events) == 1
