# SPDX-License-Identifier: Apache-2.0
"""Threads of the library: when a start returns, and what becomes of a thread that had no memory for its first steps."""

import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from types import SimpleNamespace

import pytest
from artifex_devices._base import daemon_thread
from artifex_devices._base.daemon_thread import DaemonThread, _BeginEvent
from artifex_devices._spmd import session, watchdog

TIMEOUT_S = 30.0  # only ever waited out by a test that fails


class Life:
    """Stands for what CPython holds as long as the thread runs."""


def test_the_wait_for_a_beginning_ends_when_the_function_has_begun():
    beginning, life = _BeginEvent(), Life()
    beginning.life = weakref.ref(life)
    assert not beginning.has_begun()
    waited = []
    waiting = threading.Thread(target=lambda: waited.append(beginning.wait()))
    waiting.start()
    beginning.release()
    waiting.join(TIMEOUT_S)
    assert waited == [True]
    assert beginning.has_begun()
    assert beginning.is_over
    assert not beginning.is_gone()


def test_a_beginning_that_nobody_awaits_is_not_waited_for():
    beginning = _BeginEvent()
    beginning.is_awaited = False
    assert beginning.wait() is False
    assert not beginning.has_begun()


@pytest.mark.parametrize("has_begun", [False, True])
def test_the_wait_for_a_beginning_ends_when_the_thread_is_gone(has_begun):
    beginning, life = _BeginEvent(), Life()
    beginning.life = weakref.ref(life)
    del life
    gc.collect()
    if has_begun:
        beginning.release()
    assert beginning.is_gone()
    assert beginning.has_begun() == has_begun
    assert beginning.wait() == has_begun


def test_a_start_returns_when_the_function_has_begun_and_the_thread_lets_go_of_its_arguments():
    class Argument:
        """Can be referred to weakly."""

    end, seen = threading.Event(), []

    def run(thread, argument):
        thread.began()
        seen.append((thread is threading.current_thread(), type(argument)))
        end.wait(TIMEOUT_S)

    argument = Argument()
    gone = weakref.ref(argument)
    thread = DaemonThread("artifex-test", run, argument)
    del argument
    assert thread.is_gone()  # before its start there is none
    thread.start()
    assert thread.daemon
    assert not thread.is_gone()
    assert thread in threading.enumerate()
    end.set()
    thread.join(TIMEOUT_S)
    assert not thread.is_alive()
    assert seen == [(True, Argument)]
    assert gone() is None


def test_a_thread_that_was_never_started_has_ended():
    thread = DaemonThread("artifex-test", lambda thread: thread.began())
    thread.join()
    assert thread.is_gone()


@pytest.mark.parametrize("comes_late", [False, True])
def test_a_thread_whose_start_was_interrupted_can_be_joined(monkeypatch, comes_late):
    ended = []
    thread = DaemonThread("artifex-test", lambda thread: ended.append(True))
    begin_of_thread = thread._bootstrap_inner

    def begin():
        if comes_late:
            time.sleep(0.2)
        begin_of_thread()

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(thread, "_bootstrap_inner", begin)
    monkeypatch.setattr(_BeginEvent, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
    if comes_late:
        thread.join(0.01)
        assert not ended
    thread.join()
    assert ended == [True]
    assert not thread.is_alive()


def test_a_thread_that_has_no_memory_to_start_is_an_error_of_its_start():
    def run(thread):
        raise MemoryError

    thread = DaemonThread("artifex-test", run)
    with pytest.raises(MemoryError, match=r"^the new thread artifex-test had no memory for its first steps$"):
        thread.start()
    assert thread.is_gone()
    assert thread not in threading.enumerate()


def test_a_thread_that_is_not_awaited_and_has_no_memory_to_start_is_found_to_be_gone():
    def run(thread):
        raise MemoryError

    thread = DaemonThread("artifex-test", run)
    thread.start(wait=False)
    until = time.monotonic() + TIMEOUT_S
    while not thread.is_gone():
        assert time.monotonic() < until
    thread.forget()
    assert thread not in threading.enumerate()


def test_no_thread_is_started_at_the_end_of_the_interpreter(monkeypatch):
    monkeypatch.setattr(sys, "is_finalizing", lambda: True)
    thread = DaemonThread("artifex-test", lambda thread: thread.began())
    with pytest.raises(RuntimeError, match=r"^can't start new thread at interpreter shutdown$"):
        thread.start()
    assert thread.is_gone()


def test_the_watchdog_reports_a_program_a_second_after_its_deadline(monkeypatch, capsys):
    late = session.Session(("i",), (1,), ["cpu:0"], operation="late")
    monkeypatch.setattr(session, "time", SimpleNamespace(monotonic=lambda: 0.0))
    late.open([0], 5.0)
    monkeypatch.setattr(watchdog, "_sessions", {late})
    for now_s in (5.9, 6.1, 7.0):
        assert not capsys.readouterr().err
        monkeypatch.setattr(session, "time", SimpleNamespace(monotonic=lambda now_s=now_s: now_s))
        watchdog._poll()
        if now_s == 6.1:
            text = capsys.readouterr().err
    late.close()
    assert text.startswith("artifex_devices: late runs longer than collective_timeout_s = 5.0; a body")


def test_a_shutdown_of_the_watchdog_returns_when_its_thread_has_ended(monkeypatch):
    go_on, asked = threading.Event(), threading.Event()

    def watch(thread, end):
        thread.began()
        end.wait(TIMEOUT_S)
        asked.set()
        go_on.wait(TIMEOUT_S)

    watchdog.shutdown()
    monkeypatch.setattr(watchdog, "_watch", watch)
    watchdog.start()
    watchdog.start()  # there is one already
    threads = [thread for thread in threading.enumerate() if thread.name == "artifex-watchdog"]
    (thread,) = [each for each, _ in watchdog._running.values()]
    assert thread in threads
    ended = []
    closer = threading.Thread(target=lambda: ended.append(watchdog.shutdown() or thread.is_alive()))
    closer.start()
    assert asked.wait(TIMEOUT_S)
    assert ended == []
    go_on.set()
    closer.join(TIMEOUT_S)
    assert ended == [False]
    watchdog.shutdown()  # nothing is left to end


AT_EXIT = """
    import atexit, threading, time

    @atexit.register  # before the library's own, so that it runs after it
    def last():
        starting = len(daemon_thread._starting)
        DaemonThread("main", begin).start()
        exiting.set()
        while len(begun) < 3:
            time.sleep(0.01)
        print(*begun, starting)

    from artifex_devices._base import daemon_thread
    from artifex_devices._base.daemon_thread import DaemonThread

    exiting, is_slow, begun = threading.Event(), threading.Event(), []

    def begin(thread):
        begun.append(thread.name)
        thread.began()

    def start_slowly(*arguments, **others):
        if is_slow.is_set():
            is_slow.clear()
            slow.set()
            time.sleep(0.5)
        return start_thread(*arguments, **others)

    def start_two():
        is_slow.set()
        DaemonThread("before the exit", begin).start(wait=False)
        exiting.wait()
        DaemonThread("after the exit", begin).start()

    slow = threading.Event()
    name = "_start_new_thread" if hasattr(threading, "_start_new_thread") else "_start_joinable_thread"
    start_thread = getattr(threading, name)
    setattr(threading, name, start_slowly)
    threading.Thread(target=start_two, daemon=True).start()
    slow.wait()
"""


def test_at_exit_a_thread_that_is_starting_is_waited_for_and_all_threads_start_others():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(AT_EXIT)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "before the exit main after the exit 0\n"


def test_just_after_exit_has_begun_other_threads_wait_before_they_start_one(monkeypatch):
    slept = []
    monkeypatch.setattr(daemon_thread, "_exit_began_s", 100.0)
    monkeypatch.setattr(daemon_thread, "time", SimpleNamespace(monotonic=lambda: 100.25, sleep=slept.append))

    def start():
        DaemonThread("artifex-test", lambda thread: thread.began()).start()

    start()
    assert slept == []
    starter = threading.Thread(target=start)
    starter.start()
    starter.join(TIMEOUT_S)
    assert slept == [0.75]
