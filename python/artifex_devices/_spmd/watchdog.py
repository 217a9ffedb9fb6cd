# SPDX-License-Identifier: Apache-2.0
"""Reports a program that takes too long: a blocked body cannot be ended, but its stack can be shown."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING

from artifex_devices._base.daemon_thread import DaemonThread

if TYPE_CHECKING:
    from artifex_devices._spmd.program import Program


class _Watchdog:
    """One thread for all programs; it runs from the first program with a deadline until shutdown()."""

    def __init__(self) -> None:
        self.programs: set[Program] = set()
        # The thread and its stop event, if any. No lock: a finalizer that runs a program may interrupt any line.
        self._running: dict[str, tuple[DaemonThread, threading.Event]] = {}

    def start(self) -> None:
        """Starts the thread at the first call."""
        if self._running:
            return
        end = threading.Event()
        thread = DaemonThread("artifex-watchdog", self._watch, end)
        if self._running.setdefault("thread", (thread, end))[0] is thread:  # of several, the first one runs
            try:
                thread.start()
            except BaseException:
                if thread.is_gone():
                    self._running.clear()
                raise

    def _watch(self, thread: DaemonThread, end: threading.Event) -> None:
        thread.began()
        while not end.is_set():
            try:
                end.wait(0.5)
                self._poll()  # in a separate frame, so that a sleeping thread has no reference to a program
            except MemoryError:  # the thread goes on for later programs
                continue

    def _poll(self) -> None:
        for program in list(self.programs):
            if program.has_ended:  # Ctrl-C can interrupt its removal
                self.programs.discard(program)
                continue
            late_s = time.monotonic() - program.started_s - (program.timeout_s or float("inf"))
            if late_s > 1.0 and not program.is_reported:
                program.is_reported = True
                table = program.table()
                if not program.has_ended:
                    self._report(program, table)

    @staticmethod
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

    def shutdown(self) -> None:
        """Ends the thread."""
        running = self._running.pop("thread", None)
        if running is not None:
            thread, end = running
            end.set()
            with contextlib.suppress(RuntimeError):  # not started yet; it will end at once
                thread.join()


_watchdog = _Watchdog()


def _reset() -> None:
    global _watchdog
    _watchdog = _Watchdog()


os.register_at_fork(after_in_child=_reset)


def shutdown() -> None:
    """Ends the watchdog's thread; the next program starts it again."""
    _watchdog.shutdown()


def watch(program: Program) -> None:
    """Begins to watch a program, if it has a deadline."""
    if program.timeout_s is not None:
        _watchdog.start()
        _watchdog.programs.add(program)


def unwatch(program: Program) -> None:
    """Stops watching a program."""
    _watchdog.programs.discard(program)
