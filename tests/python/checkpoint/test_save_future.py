# SPDX-License-Identifier: Apache-2.0
"""A SaveFuture in each state that its thread and the commit can be in, without files."""

import gc
import os
import subprocess
import sys
import threading
import time

import pytest
from artifex_devices.checkpoint import future as futures
from artifex_devices.checkpoint.future import SaveFuture


class Save:
    """A save of 8 bytes that waits for `go_on`, then raises `error`; `commits` and `given_up` have errors of calls."""

    operation = "save"
    nbytes = 8
    bytes_written = 0

    def __init__(self, *, has_several_processes=False, start_error=None, error=None, commit_error=None):
        self.has_several_processes = has_several_processes
        self.start_error, self.error, self.commit_error = start_error, error, commit_error
        self.go_on = threading.Event()
        self.commits, self.given_up = [], []

    def start(self):
        if self.start_error is not None:
            raise self.start_error

    def give_up(self, error):
        self.given_up.append(error)

    def write(self):
        assert self.go_on.wait(20)
        if self.error is not None:
            raise self.error
        self.bytes_written = 8

    def commit(self, error):
        self.commits.append(error)
        if self.commit_error is not None:
            raise self.commit_error
        if error is not None:
            raise error


def ended(future):
    until = time.monotonic() + 20
    while not future.done():
        assert time.monotonic() < until
    return future


def test_a_future_is_running_until_its_files_are_written():
    save = Save()
    future = SaveFuture(save)
    assert (future.nbytes, future.bytes_written, future.done()) == (8, 0, False)
    assert repr(future) == "<SaveFuture running, 0 of 8 bytes>"
    assert future in futures._running
    with pytest.raises(TimeoutError, match=r"^save: 0 of 8 bytes are written after 0 s; expected all; call "):
        future.wait(0)
    save.go_on.set()
    future.wait()
    future.wait(0.0)
    assert (future.bytes_written, future.done(), save.commits) == (8, True, [None])
    assert repr(future) == "<SaveFuture finished, 8 of 8 bytes>"
    future._thread.join()
    assert future not in futures._running


def test_one_process_commits_without_a_wait_and_several_in_the_first_wait():
    alone, shared = Save(), Save(has_several_processes=True)
    for save in (alone, shared):
        save.go_on.set()
    ended(SaveFuture(alone))
    future = ended(SaveFuture(shared))
    assert (alone.commits, shared.commits) == ([None], [])
    future.wait()
    future.wait()
    assert shared.commits == [None]


@pytest.mark.parametrize("has_several_processes", [False, True])
def test_an_error_of_the_thread_is_raised_by_each_wait(has_several_processes):
    save = Save(has_several_processes=has_several_processes, error=OSError("no space"))
    save.go_on.set()
    future = ended(SaveFuture(save))
    for _ in range(2):
        with pytest.raises(OSError, match=r"^no space$"):
            future.wait()
    assert save.commits == [save.error]
    assert repr(future) == "<SaveFuture failed: OSError, 0 of 8 bytes>"


@pytest.mark.parametrize("has_several_processes", [False, True])
def test_an_error_of_the_commit_is_raised_by_each_wait(has_several_processes):
    save = Save(has_several_processes=has_several_processes, commit_error=ValueError("not complete"))
    save.go_on.set()
    future = ended(SaveFuture(save))
    for _ in range(2):
        with pytest.raises(ValueError, match=r"^not complete$"):
            future.wait()
    assert save.commits == [None]


def test_a_save_that_cannot_start_is_given_up_and_starts_no_thread(monkeypatch):
    monkeypatch.setattr(futures.DaemonThread, "start", None)
    save = Save(start_error=OSError("no folder"))
    with pytest.raises(OSError, match=r"^no folder$"):
        SaveFuture(save)
    assert (save.given_up, save.commits) == ([save.start_error], [])
    assert not any(future._save is save for future in futures._running)


def test_a_thread_that_cannot_be_started_is_an_error_of_the_call(monkeypatch):
    started = []

    def start(self):
        started.append(self)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(futures.DaemonThread, "start", start)
    save = Save(commit_error=None)
    save.commit = save.commits.append
    with pytest.raises(RuntimeError, match=r"^can't start new thread$"):
        SaveFuture(save)
    assert [type(error) for error in save.commits] == [RuntimeError]
    assert not any(future._save is save for future in futures._running)


FAILING = """
import sys
from artifex_devices import checkpoint


def fail(self):
    raise OSError(28, "No space left on device")


checkpoint.saving.Save.write = fail
manager = checkpoint.Manager(sys.argv[1])
futures = [manager.save_async(step, {"w": 1}) for step in (1, 2)]
try:
    futures[0].wait()
except OSError:
    print("raised")
"""


@pytest.mark.parametrize("flags", [[], ["-W", "error"]])
def test_a_failure_that_no_wait_has_raised_is_reported_at_exit(flags, tmp_path):
    command = [sys.executable, *flags, "-c", FAILING, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert (done.returncode, done.stdout) == (0, "raised\n")
    assert done.stderr == (
        "<string>:12: RuntimeWarning: Manager.save_async: the save failed, and no wait() raised its error: OSError: "
        f"[Errno 28] No space left on device; there is nothing at '{tmp_path}/2'; the files of this save are removed; "
        "expected wait() on each SaveFuture; call it\n"
    )


def test_a_failure_of_a_deleted_future_is_reported_by_the_next_save():
    save = Save(error=OSError("no space"))
    future = SaveFuture(save)
    save.go_on.set()
    ended(future)._thread.join()
    kept = SaveFuture(Save(error=OSError("kept")))
    kept._save.go_on.set()
    del future, save
    gc.collect()  # the traceback of its error refers to it
    text = r"^save: the save failed, and no wait\(\) raised its error: OSError: no space; expected wait\(\) on each"
    with pytest.warns(RuntimeWarning, match=text) as caught:
        following = SaveFuture(Save())
    following._save.go_on.set()
    assert (len(caught), caught[0].filename) == (1, __file__)
    following.wait()
    with pytest.raises(OSError, match="kept"):
        kept.wait()
    assert not futures._reports


def test_a_save_of_several_processes_that_is_not_committed_is_reported():
    save = Save(has_several_processes=True)
    save.go_on.set()
    ended(SaveFuture(save))._thread.join()
    text = (
        r"^save: the save is not committed, as no wait\(\) was called; expected wait\(\) on each SaveFuture; call it$"
    )
    with pytest.warns(RuntimeWarning, match=text):
        futures._report_failures(of_dropped=False)
    assert not futures._reports


@pytest.mark.parametrize("has_several_processes", [False, True])
def test_a_save_is_committed_after_the_previous_one(has_several_processes):
    commits = []
    saves = [Save(has_several_processes=has_several_processes) for _ in range(3)]
    previous = None
    for number, save in enumerate(saves):
        save.commit = lambda error, number=number: commits.append(number)
        previous = SaveFuture(save, previous)
    saves[2].go_on.set()
    with pytest.raises(TimeoutError, match="0 of 8 bytes are written after 0 s"):
        previous.wait(0)
    saves[1].go_on.set()
    assert commits == []
    saves[0].go_on.set()
    previous.wait()
    assert commits == [0, 1, 2]


def test_the_error_of_the_previous_save_is_its_own():
    first = SaveFuture(Save(has_several_processes=True, commit_error=ValueError("not complete")))
    second = SaveFuture(Save(has_several_processes=True), first)
    for future in (first, second):
        future._save.go_on.set()
    second.wait()
    with pytest.raises(ValueError, match="not complete"):
        first.wait()
    assert not futures._reports


def test_ctrl_c_in_the_commit_of_a_previous_save_reaches_the_caller():
    first = SaveFuture(Save(has_several_processes=True, commit_error=KeyboardInterrupt()))
    second = SaveFuture(Save(has_several_processes=True), first)
    for future in (first, second):
        future._save.go_on.set()
    with pytest.raises(KeyboardInterrupt):
        second.wait()
    second.wait()
    assert second._save.commits == [None]


def test_a_forked_process_cannot_wait_for_it(monkeypatch):
    save = Save()
    future = SaveFuture(save)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: future._process + 1)
        for call in (future.wait, future.done):
            with pytest.raises(
                RuntimeError, match=rf"^save: the save began in process {future._process}, and this is process "
            ):
                call()
        assert repr(future) == "<SaveFuture running, 0 of 8 bytes>"
    save.go_on.set()
    future.wait()
