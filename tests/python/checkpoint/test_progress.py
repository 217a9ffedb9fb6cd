# SPDX-License-Identifier: Apache-2.0
"""Reports of progress by save, restore, convert and their command line."""

import io
import os
import sys
import threading

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices._base import progress
from artifex_devices.checkpoint import reporting
from artifex_devices.command_line import main

TREE = {"w": np.arange(1 << 18), "b": np.ones((3, 5)), "step": 3}
NBYTES = (1 << 21) + 120


def operations(folder):
    """The calls that report, by name; `folder/a` has the checkpoint TREE."""
    manager = checkpoint.Manager(folder)
    return {
        "save": lambda progress: checkpoint.save(folder / "b", TREE, progress=progress),
        "restore": lambda progress: checkpoint.restore(folder / "a", progress=progress),
        "restore like": lambda progress: checkpoint.restore(folder / "a", TREE, verify=True, progress=progress),
        "convert": lambda progress: checkpoint.convert(folder / "a", folder / "b", num_files=3, progress=progress),
        "Manager.save": lambda progress: manager.save(1, TREE, progress=progress),
        "Manager.restore": lambda progress: manager.restore(7, progress=progress),
    }


NAMES = ("save", "restore", "restore like", "convert", "Manager.save", "Manager.restore")


@pytest.fixture
def folder(tmp_path):
    for name in ("a", "7"):
        checkpoint.save(tmp_path / name, TREE)
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
def test_the_last_report_is_the_number_of_bytes(folder, name):
    reported = []
    operations(folder)[name](reported.append)
    assert reported == sorted(reported)
    assert reported[-1] == NBYTES


@pytest.mark.parametrize("name", NAMES)
def test_an_error_of_the_progress_function_is_raised_and_leaves_nothing(folder, name):
    def fail(_):
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        operations(folder)[name](fail)
    assert sorted(os.listdir(folder)) == ["7", "a"]


@pytest.mark.parametrize("name", NAMES)
def test_a_progress_that_is_not_a_function_is_refused(folder, name):
    with pytest.raises(TypeError, match=r"progress is 3 \(int\); expected a function"):
        operations(folder)[name](3)
    assert sorted(os.listdir(folder)) == ["7", "a"]


def test_each_process_reports_the_bytes_that_it_reads(folder):
    with ad.simulate(8):
        mesh = ad.make_mesh((8,), ("x",))
        like = {"w": ad.NamedSharding(mesh, ad.P("x")), "b": np.ones((3, 5)), "step": 0}
        reported = []
        checkpoint.restore(folder / "a", like, progress=reported.append)
    assert reported[-1] == NBYTES


def test_reports_come_while_the_work_runs(monkeypatch):
    monkeypatch.setattr(reporting, "_INTERVAL_S", 0.001)
    is_reported = threading.Event()
    threads, reported = set(), []

    def report(count):
        threads.add(threading.current_thread())
        reported.append(count)
        is_reported.set()

    counts = iter(range(10**9))
    reporting.run_reported(lambda: is_reported.wait(30), lambda: next(counts), report)
    assert len(reported) >= 2
    assert reported == list(range(len(reported)))
    assert len(threads) == 2
    assert threading.current_thread() in threads


def test_the_error_of_the_work_comes_first():
    def fail():
        raise OSError("no space")

    reported = []
    with pytest.raises(OSError, match="no space"):
        reporting.run_reported(fail, lambda: 1, reported.append)
    assert reported == []


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("delay_s", "terminal", "shown"), [(0.0, True, True), (2.0, True, False), (0.0, False, False)])
def test_the_command_shows_a_bar_on_a_terminal_after_two_seconds(folder, monkeypatch, delay_s, terminal, shown):
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "_DELAY_S", delay_s)
    assert main(["checkpoint", "convert", str(folder / "a"), str(folder / "c")]) == 0
    assert ("convert" in stream.getvalue() and "100%" in stream.getvalue()) == shown
    if not shown:
        assert stream.getvalue() == ""
