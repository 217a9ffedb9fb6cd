# SPDX-License-Identifier: Apache-2.0
"""Daemon threads of the library, which know the user's line that started them."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from artifex_devices._base.caller import user_frame
from artifex_devices._core import _set_thread_caller

_EXIT_S = 3.0  # longest wait at interpreter exit for threads that are starting
_LATE_START_S = 1.0  # time from the beginning of interpreter exit in which only the main thread starts threads
_POLL_S = 0.001

# Threads that are being started and may not have had the GIL. If the interpreter is finalized meanwhile, such a thread
# can use memory that is released: decision 0005.
_starting: set[DaemonThread] = set()
_exit_began_s: float | None = None


def _wait_at_exit() -> None:
    """Delays later starts of other threads; waits for threads that are being started."""
    global _exit_began_s
    _exit_began_s = time.monotonic()
    end_s = time.monotonic() + _EXIT_S
    while _starting and time.monotonic() < end_s:
        time.sleep(_POLL_S)


atexit.register(_wait_at_exit)
os.register_at_fork(after_in_child=_starting.clear)


class DaemonThread(threading.Thread):
    """A daemon thread that runs `function(*args)`."""

    def __init__(self, name: str, function: Callable[..., object], *args: Any) -> None:
        super().__init__(name=name, daemon=True)
        self._function: Callable[..., object] | None = function
        self._arguments = args
        self._is_cancelled = False
        caller = user_frame(sys._getframe(1))
        self._caller = (caller.f_code.co_filename, caller.f_lineno)

    def start(self) -> None:
        """Starts the thread. If Ctrl-C interrupts this, a thread that has not begun ends without calling the function.

        Raises:
            RuntimeError: The system cannot start a thread, or the interpreter is shutting down.
        """
        if sys.is_finalizing():  # other threads do not run
            raise RuntimeError("can't start new thread at interpreter shutdown")
        if _exit_began_s is not None and threading.current_thread() is not threading.main_thread():
            # Usually the interpreter is finalized meanwhile. A callback that takes longer may wait for the thread.
            time.sleep(max(0.0, _exit_began_s + _LATE_START_S - time.monotonic()))
        try:
            _starting.add(self)
            super().start()
        except BaseException:
            self._is_cancelled = True
            raise
        finally:
            _starting.discard(self)

    def run(self) -> None:
        """Runs the function."""
        function, self._function = self._function, None  # as `Thread.run`: an ended thread keeps no references
        args, self._arguments = self._arguments, ()
        if function is not None and not self._is_cancelled:
            _set_thread_caller(*self._caller)
            function(*args)

    def join(self, timeout: float | None = None) -> None:
        """Waits for the end of the thread; returns at once if it was never started."""
        if self.is_alive():
            super().join(timeout)
