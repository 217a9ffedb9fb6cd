# SPDX-License-Identifier: Apache-2.0
"""Reports a program that takes too long: a blocked body cannot be ended, but its stack can be shown.

One thread watches all programs; it runs from the first program with a deadline until shutdown().
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING

from artifex_devices._base.daemon_thread import DaemonThread

if TYPE_CHECKING:
    from artifex_devices._spmd.program import Program

_programs: set[Program] = set()
# The thread and its stop event, if any. No lock: a finalizer that runs a program may interrupt any line.
_running: dict[str, tuple[DaemonThread, threading.Event]] = {}


def _forget() -> None:
    _programs.clear()
    _running.clear()


os.register_at_fork(after_in_child=_forget)


def watch(program: Program) -> None:
    """Begins to watch a program, if it has a deadline."""
    if program.timeout_s is not None:
        start()
        _programs.add(program)


def unwatch(program: Program) -> None:
    """Stops watching a program."""
    _programs.discard(program)


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
            if thread.is_gone():
                _running.clear()
            raise


def shutdown() -> None:
    """Ends the thread; the next program starts it again."""
    running = _running.pop("thread", None)
    if running is not None:
        thread, end = running
        end.set()
        thread.join()


def _watch(thread: DaemonThread, end: threading.Event) -> None:
    thread.began()
    while not end.is_set():
        try:
            end.wait(0.5)
            _poll()  # in a separate frame, so that a sleeping thread has no reference to a program
        except MemoryError:  # the thread goes on for later programs
            continue


def _poll() -> None:
    for program in list(_programs):
        if program.has_ended:  # Ctrl-C can interrupt its removal
            _programs.discard(program)
            continue
        late_s = time.monotonic() - program.started_s - (program.timeout_s or float("inf"))
        if late_s > 1.0 and not program.is_reported:
            program.is_reported = True
            table = program.table()
            if not program.has_ended:
                _report(program, table)


def _report(program: Program, table: str) -> None:
    stacks = [
        f"thread {identity}:\n{''.join(traceback.format_stack(frame))}"
        for identity, frame in sys._current_frames().items()
        if identity != threading.get_ident()
    ]
    sys.stderr.write(
        f"artifex_devices: {program.operation} runs longer than collective_timeout_s = {program.timeout_s}; a body "
        "that blocks on a lock, queue or sleep needs executor='threads'\n"
        f"{table}\n{''.join(stacks)}"
    )
