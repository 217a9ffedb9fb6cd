# SPDX-License-Identifier: Apache-2.0
"""Threads of the library: their start, their end and the exit of the interpreter."""

import os
import subprocess
import sys
import textwrap
import threading
import weakref
from types import SimpleNamespace

import pytest
from artifex_devices._base import daemon_thread
from artifex_devices._base.daemon_thread import DaemonThread
from artifex_devices._spmd import session, watchdog

TIMEOUT_S = 30.0  # only ever waited out by a test that fails


def test_a_thread_lets_go_of_its_arguments():
    class Argument:
        """Can be referred to weakly."""

    end, seen = threading.Event(), []

    def run(argument):
        seen.append(type(argument))
        end.wait(TIMEOUT_S)

    argument = Argument()
    gone = weakref.ref(argument)
    thread = DaemonThread("artifex-test", run, argument)
    del argument
    thread.start()
    assert thread.daemon
    assert thread in threading.enumerate()
    end.set()
    thread.join(TIMEOUT_S)
    assert not thread.is_alive()
    assert seen == [Argument]
    assert gone() is None


@pytest.mark.skipif(sys.version_info < (3, 14), reason="new threads do not inherit contexts before Python 3.14")
def test_a_thread_does_not_keep_the_context_of_its_starter():
    program = """
        import contextvars
        from artifex_devices._base.daemon_thread import DaemonThread

        variable = contextvars.ContextVar("variable", default="the default")
        variable.set("of the starter")
        thread = DaemonThread("artifex-test", lambda: print(variable.get()))
        thread.start()
        thread.join()
    """
    command = [sys.executable, "-X", "thread_inherit_context=1", "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "the default\n"


def test_a_thread_that_was_never_started_can_be_joined():
    thread = DaemonThread("artifex-test", lambda: None)
    thread.join()
    assert not thread.is_alive()


def test_a_thread_whose_start_was_interrupted_does_not_call_its_function(monkeypatch):
    started, called = [], []

    def interrupted(thread):
        started.append(thread)
        raise KeyboardInterrupt

    thread = DaemonThread("artifex-test", called.append, 1)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            thread.start()
    thread.run()  # the thread comes late
    assert (started, called) == ([thread], [])
    thread.join()


def test_ctrl_c_that_the_standard_library_hides_reaches_the_caller(monkeypatch):
    def interrupted(thread):
        lock = threading.Lock()
        with lock:  # as Condition.wait, interrupted while it takes its lock again
            lock.release()
            raise KeyboardInterrupt

    thread = DaemonThread("artifex-test", print)
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        thread.start()


def test_a_function_is_either_called_or_cancelled():
    called = []
    cancelled = DaemonThread("artifex-test", called.append, "cancelled")
    assert cancelled.cancel()
    assert cancelled.cancel()
    cancelled.start()
    cancelled.join(TIMEOUT_S)
    begun = DaemonThread("artifex-test", called.append, "begun")
    begun.start()
    begun.join(TIMEOUT_S)
    assert not begun.cancel()
    assert called == ["begun"]


def test_a_thread_that_the_system_refuses_raises_the_error_of_cpython(monkeypatch):
    def refused(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    with pytest.raises(RuntimeError, match=r"^can't start new thread$"):
        DaemonThread("artifex-test", lambda: None).start()


def test_no_thread_is_started_at_the_end_of_the_interpreter(monkeypatch):
    monkeypatch.setattr(sys, "is_finalizing", lambda: True)
    thread = DaemonThread("artifex-test", lambda: None)
    with pytest.raises(RuntimeError, match=r"^can't start new thread at interpreter shutdown$"):
        thread.start()
    assert not thread.is_alive()


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

    def watch(end):
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
        DaemonThread("main", begin).start()
        exiting.set()
        wait_until(lambda: len(begun) == 3)
        print(*begun)

    from artifex_devices._base.daemon_thread import DaemonThread
    from polling import wait_until

    exiting, is_slow, begun = threading.Event(), threading.Event(), []

    def begin():
        begun.append(threading.current_thread().name)

    def start_slowly(*arguments, **others):
        if is_slow.is_set():
            is_slow.clear()
            slow.set()
            time.sleep(0.5)  # a slow start
        return start_thread(*arguments, **others)

    def start_two():
        is_slow.set()
        DaemonThread("before the exit", begin).start()
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
    assert done.stdout == "before the exit main after the exit\n"


def test_a_thread_waits_with_its_start_for_the_starts_of_others_but_not_forever(monkeypatch):
    waits = []

    class Held:
        """A lock that another thread holds."""

        def acquire(self, timeout):
            waits.append(timeout)
            return False

        def release(self):
            raise RuntimeError("cannot release un-acquired lock")

    monkeypatch.setattr(daemon_thread, "_starts", Held())
    thread = DaemonThread("artifex-test", lambda: None)
    thread.start()
    thread.join(TIMEOUT_S)
    assert (waits, thread.is_alive()) == ([1.0], False)
