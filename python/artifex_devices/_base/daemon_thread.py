# SPDX-License-Identifier: Apache-2.0
"""Threads of our own, started so that nobody waits for one that is no more."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

__all__ = ["DaemonThread"]

_LOOK_S = 0.05  # how often who starts a thread looks whether it is still there; its beginning wakes it at once


class _Beginning:
    """Stands in for the Event that `threading.Thread.start` waits for: ends also when the thread has ended.

    Made of one bare lock, so that a thread needs no memory to say that it has begun.
    """

    def __init__(self) -> None:
        self.life: weakref.ref[Any] | None = None  # of what CPython holds from the start of the thread to its end
        self.is_over = False
        self._is_set = False
        self._lock = threading.Lock()  # held until the thread's function says that it has begun
        self._lock.acquire()
        self.say = self._lock.release

    def has_come(self) -> bool:
        """Whether the function has begun."""
        return self.is_over or not self._lock.locked()

    def is_gone(self) -> bool:
        """Whether there is no thread, or none any more."""
        return self.life is None or self.life() is None

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True  # Thread may be joined from here on, but has still to come to its function

    def wait(self, timeout: float | None = None) -> bool:
        while not self._lock.acquire(timeout=_LOOK_S):
            if self.is_gone():
                return self._lock.acquire(blocking=False)  # it may have begun, and ended, since
        self.is_over = True
        return True

    def _at_fork_reinit(self) -> None:
        """Asked for by `threading` in a child made by fork; this thread is not there."""


class DaemonThread(threading.Thread):
    """A daemon thread that runs `function(thread, *args)`, which calls `thread.began()` as soon as it can do its work.

    CPython's `Thread.start` waits without an end for the new thread to say that it runs; one that gets MemoryError
    before that (there are some ten steps to fail at) leaves it waiting for good, and one that gets it after that, but
    before its function has begun, is taken for one that runs. Here `start` waits until the function itself has begun or
    CPython has let go of the thread, seen by a weak reference to the method that it runs, which takes no memory.
    It stays a `threading.Thread`: it is in `threading.enumerate()` and has its name in dumps; tracers see it.
    """

    def __init__(self, name: str, function: Callable[..., None], *args: Any) -> None:
        super().__init__(name=name, daemon=True)
        self._function: Callable[..., None] | None = function
        self._arguments = args
        self._started = self._beginning = _Beginning()
        self.began = self._beginning.say

    @property
    def _bootstrap(self) -> Callable[[], None]:
        """What CPython runs in the thread; asked for once, by `Thread.start`."""
        method: Callable[[], None] = super()._bootstrap  # type: ignore[misc]
        self._beginning.life = weakref.ref(method)
        return method

    def start(self) -> None:
        """Starts the thread; returns when its function has begun.

        Where it is interrupted (Ctrl-C, or MemoryError of the caller's own) the thread may run: see `is_gone`.

        Raises:
            RuntimeError: The system gives no thread, or the interpreter is going down.
            MemoryError: There is no memory for it, or the thread had none to begin with.
        """
        if sys.is_finalizing():  # no other thread runs any more
            raise RuntimeError("can't start new thread at interpreter shutdown")
        try:
            super().start()
        finally:
            if self.is_gone():
                self._forget()
        if not self._beginning.is_over:
            raise MemoryError(f"the new thread {self.name} had no memory to begin with")

    def run(self) -> None:
        """The thread's life."""
        function, self._function = self._function, None  # as `Thread.run`: nothing is kept by a thread that has ended
        args, self._arguments = self._arguments, ()
        if function is None:
            return
        try:
            function(self, *args)
        except MemoryError:
            if self._beginning.has_come():
                raise
            # else `start` raises it

    def is_gone(self) -> bool:
        """Whether there is no thread, or none any more; needs no memory, and no thread that ended in good order."""
        return self._beginning.is_gone()

    def _forget(self) -> None:
        """A thread that ended on its way to its function may still be listed by `threading`."""
        with threading._active_limbo_lock:  # type: ignore[attr-defined]
            threading._limbo.pop(self, None)  # type: ignore[attr-defined]
            if threading._active.get(self.ident) is self:  # type: ignore[attr-defined]
                del threading._active[self.ident]  # type: ignore[attr-defined]
