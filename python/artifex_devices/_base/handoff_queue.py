# SPDX-License-Identifier: Apache-2.0
"""Things handed from thread to thread, none of which is lost where memory is short."""

from __future__ import annotations

import collections
import threading
from typing import Final, Generic, TypeVar

from artifex_devices._base.pickled_enum import PickledEnum

__all__ = ["NOTHING", "HandOver", "Nothing"]

T = TypeVar("T")


class Nothing(PickledEnum):
    """The class of NOTHING."""

    NOTHING = "nothing"


NOTHING: Final = Nothing.NOTHING  # nothing came in time


class HandOver(Generic[T]):
    """First in, first out, for any number of threads.

    Not a `queue.SimpleQueue`: where its `get` is refused memory, the item stays in it, but nobody is woken for it any
    more (CPython 3.11), so that who waits next waits for good. Here `take` asks for no memory once it runs. As with
    it, `put` may be called from a finalizer whatever locks are held.
    """

    def __init__(self) -> None:
        self._items: collections.deque[T] = collections.deque()
        self._news = threading.Lock()  # held while there is nothing that who waits has not been told of
        self._news.acquire()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> None:
        """Adds an item and wakes one who waits; MemoryError is raised before it is there."""
        self._items.append(item)
        try:
            self._news.release()
        except (RuntimeError, MemoryError):  # it was free: someone is being woken already
            return

    def take(self, seconds: float = -1) -> T | Nothing:
        """The first item, waited for as long as that (-1: for ever), or NOTHING."""
        items = self._items
        while True:
            if items:
                try:
                    item = items.popleft()
                except IndexError:  # another thread was quicker
                    continue
                if items:  # two that were put at once have woken one
                    try:
                        self._news.release()
                    except (RuntimeError, MemoryError):
                        return item
                return item
            if not self._news.acquire(timeout=seconds) and not items:
                return NOTHING
