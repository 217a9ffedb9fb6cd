# SPDX-License-Identifier: Apache-2.0
"""Daemon threads of the library; they record the user's line that started them."""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import functools
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from artifex_devices._base.caller import user_frame
from artifex_devices._core.internal import set_thread_caller

_EXIT_S = 3.0  # longest wait at interpreter exit for threads that are starting
_LATE_START_S = 1.0  # longest wait of a thread that starts another thread, for other starts and at interpreter exit

# Held while a thread starts, and by the main thread from interpreter exit on. If the interpreter is finalized before a
# new thread has had the GIL, that thread can use memory that is released: decision 0005.
_starts = threading.RLock()


def _hold_starts() -> None:
    _starts.acquire(timeout=_EXIT_S)


def _renew_starts() -> None:
    global _starts
    _starts = threading.RLock()


atexit.register(_hold_starts)
os.register_at_fork(after_in_child=_renew_starts)


class DaemonThread(threading.Thread):
    """A daemon thread that runs `function(*args)`, in an empty context."""

    def __init__(self, name: str, function: Callable[..., object], *args: Any) -> None:
        if sys.version_info >= (3, 14):  # otherwise free-threaded builds copy the context, which keeps worlds alive
            super().__init__(name=name, daemon=True, context=contextvars.Context())
        else:
            super().__init__(name=name, daemon=True)
        self._work = [functools.partial(function, *args)]  # taken by the thread or by cancel()
        self._is_cancelled = False
        caller = user_frame(sys._getframe(1))
        self._caller = (caller.f_code.co_filename, caller.f_lineno)

    def start(self) -> None:
        """Starts the thread. If Ctrl-C interrupts this, a thread that has not begun is cancelled.

        Raises:
            RuntimeError: The system cannot start a thread, or the interpreter is shutting down.
        """
        starts = _starts
        try:
            if sys.is_finalizing():  # other threads do not run
                raise RuntimeError("can't start new thread at interpreter shutdown")
            # At exit the interpreter is usually finalized meanwhile; a callback may wait longer for the thread.
            starts.acquire(timeout=_LATE_START_S)
            super().start()
        except BaseException as error:
            self.cancel()
            if str(error) == "release unlocked lock" and error.__context__ is not None:
                raise error.__context__ from None  # of a signal handler, in Condition.wait of the standard library
            raise
        finally:
            with contextlib.suppress(RuntimeError):  # not acquired
                starts.release()

    def cancel(self) -> bool:
        """Returns whether the function will never be called: not if the thread has begun to."""
        if self._take() is not None:
            self._is_cancelled = True
        return self._is_cancelled

    def run(self) -> None:
        """Runs the function."""
        function = self._take()  # as `Thread.run`: an ended thread keeps no references
        if function is not None:
            set_thread_caller(*self._caller)
            function()

    def _take(self) -> Callable[[], object] | None:
        try:
            return self._work.pop()
        except IndexError:
            return None

    def join(self, timeout: float | None = None) -> None:
        """Waits for the end of the thread; returns at once if it was never started."""
        if self.is_alive():
            super().join(timeout)
