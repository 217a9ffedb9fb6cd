# SPDX-License-Identifier: Apache-2.0
"""Reports a session that takes too long: a blocked body cannot be ended, but its stack can be shown.

One thread watches all sessions; it runs from the first call with a deadline until shutdown().
"""

from __future__ import annotations

import os
import sys
import threading

from artifex_devices._base.daemon_thread import DaemonThread
from artifex_devices._base.thread_stacks import thread_stacks
from artifex_devices._spmd.session import Session

_sessions: set[Session] = set()
# The thread and its stop event, if any. No lock: a finalizer that runs a session may interrupt any line.
_running: dict[str, tuple[DaemonThread, threading.Event]] = {}


def _forget() -> None:
    _sessions.clear()
    _running.clear()


os.register_at_fork(after_in_child=_forget)


def watch(session: Session) -> None:
    """Begins to watch a session, if it has a deadline."""
    if session.timeout_s is not None:
        start()
        _sessions.add(session)


def unwatch(session: Session) -> None:
    """Stops watching a session."""
    _sessions.discard(session)


def start() -> None:
    """Starts the thread, unless it runs."""
    if _running:
        return
    end = threading.Event()
    thread = DaemonThread("artifex-watchdog", _watch, end)
    if _running.setdefault("thread", (thread, end))[0] is thread:  # of several, the first one runs
        try:
            thread.start()
        except BaseException:
            if not thread.is_alive():
                _running.clear()
            raise


def shutdown() -> None:
    """Ends the thread; the next session starts it again."""
    running = _running.pop("thread", None)
    if running is not None:
        thread, end = running
        end.set()
        thread.join()


def _watch(end: threading.Event) -> None:
    while not end.wait(0.5):
        _poll()  # in a separate frame: a sleeping thread must not refer to a session


def _poll() -> None:
    for session in list(_sessions):
        if session.has_ended:  # Ctrl-C can interrupt its removal
            _sessions.discard(session)
            continue
        if session.becomes_late():
            table = session.table()
            if not session.has_ended:
                _report(session, table)


def _report(session: Session, table: str) -> None:
    stacks = [f"thread {identity}:\n{''.join(stack.format())}" for identity, stack in thread_stacks().items()]
    sys.stderr.write(
        f"artifex_devices: {session.operation} runs longer than collective_timeout_s = {session.timeout_s}; a body "
        "that blocks on a lock, queue or sleep needs executor='threads'\n"
        f"{table}\n{''.join(stacks)}"
    )
