# SPDX-License-Identifier: Apache-2.0
"""Says what is going on when a program takes too long: a body that blocks cannot be ended, but it can be shown."""

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

__all__ = ["shutdown", "unwatch", "watch"]


class _Watchdog:
    """One thread for all programs; it exists from the first program with a deadline until shutdown()."""

    def __init__(self) -> None:
        self.programs: set[Program] = set()
        # The thread and its own end; empty without one. No lock: a finalizer that runs a program may come in anywhere.
        self._running: dict[str, tuple[DaemonThread, threading.Event]] = {}

    def start(self) -> None:
        """Makes the thread at the first call."""
        if self._running:
            return
        end = threading.Event()
        thread = DaemonThread("artifex-watchdog", self._watch, end)
        if self._running.setdefault("it", (thread, end))[0] is thread:  # of several, the first
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
                self._look()  # in a frame of its own: while the thread sleeps, it keeps no program
            except MemoryError:  # the thread stays for the programs to come
                continue

    def _look(self) -> None:
        for program in list(self.programs):
            if program.has_ended:  # Ctrl-C can come between its end and its removal
                self.programs.discard(program)
                continue
            late_s = time.monotonic() - program.started_s - (program.timeout_s or float("inf"))
            if late_s > 1.0 and not program.is_told:
                program.is_told = True
                table = program.table()
                if not program.has_ended:
                    self._tell(program, table)

    @staticmethod
    def _tell(program: Program, table: str) -> None:
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
        running = self._running.pop("it", None)
        if running is not None:
            thread, end = running
            end.set()
            with contextlib.suppress(RuntimeError):  # not started yet: it will end at once
                thread.join()


_watchdog = _Watchdog()


def _start_anew() -> None:
    global _watchdog
    _watchdog = _Watchdog()


os.register_at_fork(after_in_child=_start_anew)


def shutdown() -> None:
    """Ends the watchdog's thread; the next program starts it anew."""
    _watchdog.shutdown()


def watch(program: Program) -> None:
    """Watches a program from now on, if it has a deadline."""
    if program.timeout_s is not None:
        _watchdog.start()
        _watchdog.programs.add(program)


def unwatch(program: Program) -> None:
    """Ends it."""
    _watchdog.programs.discard(program)
