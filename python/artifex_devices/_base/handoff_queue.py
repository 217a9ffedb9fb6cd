# SPDX-License-Identifier: Apache-2.0
"""A queue between threads that does not lose items or wake-ups when memory is short."""

from __future__ import annotations

import collections
import threading
from typing import Final, Generic, TypeVar

from artifex_devices._base.pickled_enum import PickledEnum

T = TypeVar("T")


class Nothing(PickledEnum):
    """The class of NOTHING."""

    NOTHING = "nothing"


NOTHING: Final = Nothing.NOTHING  # the result of a timeout


class HandoffQueue(Generic[T]):
    """A first-in, first-out queue for any number of threads.

    If `get` of `queue.SimpleQueue` fails for lack of memory, the item stays in the queue without a wake-up (CPython
    3.11), so that the next waiting thread hangs. `take` allocates no memory once it runs. As with SimpleQueue, `put`
    may be called from a finalizer while locks are held.
    """

    def __init__(self) -> None:
        self._items: collections.deque[T] = collections.deque()
        self._wake_up = threading.Lock()  # held while the queue is empty, or all its items have been signalled
        self._wake_up.acquire()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> None:
        """Adds an item and wakes a waiting thread; a MemoryError is raised before the item is added."""
        self._items.append(item)
        try:
            self._wake_up.release()
        except (RuntimeError, MemoryError):  # the lock was free: a thread is being woken already
            return

    def take(self, seconds: float = -1) -> T | Nothing:
        """Removes and returns the first item, or NOTHING after a timeout; -1 waits without a limit."""
        items = self._items
        while True:
            if items:
                try:
                    item = items.popleft()
                except IndexError:  # another thread took it
                    continue
                if items:  # two items that were put at once have woken one thread
                    try:
                        self._wake_up.release()
                    except (RuntimeError, MemoryError):
                        return item
                return item
            if not self._wake_up.acquire(timeout=seconds) and not items:
                return NOTHING
