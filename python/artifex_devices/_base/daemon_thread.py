# SPDX-License-Identifier: Apache-2.0
"""Daemon threads whose start raises MemoryError instead of hanging."""

from __future__ import annotations

import atexit
import math
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from artifex_devices._base.caller import user_frame
from artifex_devices._core import _set_thread_caller

_JOIN_POLL_S = 0.001  # interval at which join() checks that a thread whose start was interrupted has started
_EXIT_S = 3.0  # longest wait at interpreter exit for threads that are starting
_LATE_START_S = 1.0  # time from the beginning of interpreter exit in which only the main thread starts threads
_POLL_S = 0.05  # interval at which start() checks that the thread is alive; its begin wakes start() at once


class _BeginEvent:
    """Replaces the Event that `threading.Thread.start` waits for; the wait also ends when the thread has ended.

    It is one lock, so that a thread can set it without memory.
    """

    def __init__(self) -> None:
        self.life: weakref.ref[Any] | None = None  # to an object that CPython holds while the thread runs
        self.is_awaited = True  # by `Thread.start`
        self.is_over = False
        self._is_set = False
        self._lock = threading.Lock()  # held until the thread's function has begun
        self._lock.acquire()
        self.release = self._lock.release

    def has_begun(self) -> bool:
        """Returns whether the function has begun."""
        return self.is_over or not self._lock.locked()

    def is_gone(self) -> bool:
        """Returns whether the thread has not been started, or has ended."""
        return self.life is None or self.life() is None

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        _starting.discard(self)
        self._is_set = True  # the thread can be joined from here on, but its function has not begun

    def wait(self, timeout: float | None = None) -> bool:
        if not self.is_awaited:
            return False
        while not self._lock.acquire(timeout=_POLL_S):
            if self.is_gone():
                return self._lock.acquire(blocking=False)  # it may have begun, and ended, since
        self.is_over = True
        return True

    def _at_fork_reinit(self) -> None:
        """Called by `threading` in a forked child, which does not have the thread."""


# Threads that are being started and have not had the GIL. If the interpreter is finalized meanwhile, such a thread can
# use memory that is released: decision 0005.
_starting: set[_BeginEvent] = set()
_exit_began_s: float | None = None


def _wait_at_exit() -> None:
    """Delays later starts of other threads; waits for threads that are being started."""
    global _exit_began_s
    _exit_began_s = time.monotonic()
    end_s = time.monotonic() + _EXIT_S
    while any(begin.life is None or not begin.is_gone() for begin in tuple(_starting)) and time.monotonic() < end_s:
        time.sleep(_JOIN_POLL_S)


atexit.register(_wait_at_exit)
os.register_at_fork(after_in_child=_starting.clear)


class DaemonThread(threading.Thread):
    """A daemon thread that runs `function(thread, *args)`, which calls `thread.began()` once it can work.

    CPython's `Thread.start` waits without a limit for the new thread: after a MemoryError in the first steps of the
    thread it hangs, and after one in later steps it returns although the function will not run. Here `start` waits
    until the function has begun, or CPython has released the thread: a weak reference to the method that the thread
    runs detects that without memory. It is a `threading.Thread`, so that dumps and tracers see it.
    """

    def __init__(self, name: str, function: Callable[..., None], *args: Any) -> None:
        super().__init__(name=name, daemon=True)
        self._function: Callable[..., None] | None = function
        self._arguments = args
        caller = user_frame(sys._getframe(1))
        self._caller = (caller.f_code.co_filename, caller.f_lineno)
        self._started = self._begin = _BeginEvent()
        self.began = self._begin.release

    @property
    def _bootstrap(self) -> Callable[[], None]:
        """The method that CPython runs in the thread; read once, by `Thread.start`."""
        method: Callable[[], None] = super()._bootstrap  # type: ignore[misc]
        self._begin.life = weakref.ref(method)
        return method

    def start(self, *, wait: bool = True) -> None:
        """Starts the thread; returns when its function has begun.

        After an interruption (Ctrl-C, or a MemoryError of the caller) the thread may run: see `is_gone`.

        Args:
            wait: False returns before the thread has begun. A thread without memory for its first steps is then gone,
                without an error here; the caller finds that by `is_gone`, and calls `forget`.

        Raises:
            RuntimeError: The system cannot start a thread, or the interpreter is shutting down.
            MemoryError: There is no memory for the thread, or for its first steps.
        """
        self._begin.is_awaited = wait
        if sys.is_finalizing():  # other threads do not run
            raise RuntimeError("can't start new thread at interpreter shutdown")
        try:
            if _exit_began_s is not None and threading.current_thread() is not threading.main_thread():
                # Usually the interpreter is finalized meanwhile. A callback that takes longer may wait for the thread.
                time.sleep(max(0.0, _exit_began_s + _LATE_START_S - time.monotonic()))
            _starting.add(self._begin)
            super().start()
        finally:
            if self.is_gone():
                self.forget()
        if wait and not self._begin.is_over:
            raise MemoryError(f"the new thread {self.name} had no memory for its first steps")

    def run(self) -> None:
        """Runs the function."""
        function, self._function = self._function, None  # as `Thread.run`: an ended thread keeps no references
        args, self._arguments = self._arguments, ()
        if function is None:
            return
        try:
            _set_thread_caller(*self._caller)
            function(self, *args)
        except MemoryError:
            if self._begin.has_begun():
                raise
            # otherwise `start` raises it, or the caller finds that the thread is gone

    def join(self, timeout: float | None = None) -> None:
        """Waits for the end of the thread, also of one whose start was interrupted; one that is gone has ended."""
        end_s = math.inf if timeout is None else time.monotonic() + timeout
        while not self._begin.is_set() and not self.is_gone() and time.monotonic() < end_s:
            time.sleep(_JOIN_POLL_S)
        if self._begin.is_set():
            super().join(None if timeout is None else max(0.0, end_s - time.monotonic()))

    def is_gone(self) -> bool:
        """Returns whether the thread has not been started, or has ended in any way; needs no memory."""
        return self._begin.is_gone()

    def forget(self) -> None:
        """Removes a thread that is gone from the lists of `threading`, in which one that never began stays."""
        _starting.discard(self._begin)
        with threading._active_limbo_lock:  # type: ignore[attr-defined]
            threading._limbo.pop(self, None)  # type: ignore[attr-defined]
            if threading._active.get(self.ident) is self:  # type: ignore[attr-defined]
                del threading._active[self.ident]  # type: ignore[attr-defined]
