# SPDX-License-Identifier: Apache-2.0
"""Locks on folders. They end with the process that took them: its forked children do not hold them."""

from __future__ import annotations

import fcntl
import os
import threading
import weakref

# A forked child has copies of all descriptors, and a lock ends when the last copy is closed. So a fork waits while a
# descriptor is opened and noted, and the child closes its copies.
_forking = threading.RLock()
_held: weakref.WeakSet[FolderLock] = weakref.WeakSet()


class FolderLock:
    """The lock of one save on a folder, which keeps other saves out of it, in this process and in others."""

    def __init__(self) -> None:
        self._descriptor: int | None = None
        self._thread = 0  # that took it

    @property
    def is_held(self) -> bool:
        """Whether a folder is locked."""
        return self._descriptor is not None

    def take(self, folder: str) -> bool:
        """Locks a folder; returns False if it does not exist. Raises BlockingIOError if another save has locked it."""
        try:
            with _forking:
                self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                self._thread = threading.get_ident()
                _held.add(self)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self.is_at(folder):
                return True
        except FileNotFoundError:
            pass
        except BaseException:
            self.release()
            raise
        self.release()  # another save has just renamed it
        return False

    def is_at(self, path: str) -> bool:
        """Returns whether the locked folder is still at a path; False without a lock."""
        try:
            return self._descriptor is not None and os.path.samestat(os.fstat(self._descriptor), os.lstat(path))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Unlocks the folder, if it is locked."""
        with _forking:
            descriptor, self._descriptor = self._descriptor, None
            _held.discard(self)
            if descriptor is not None:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_UN)  # also for copies that a fork outside of Python made
                finally:
                    os.close(descriptor)


def is_locked_by_this_thread(folder: str) -> bool:
    """Returns whether this thread has locked a folder: then a signal handler interrupted it, and runs this."""
    return any(lock._thread == threading.get_ident() and lock.is_at(folder) for lock in list(_held))


def _close_in_child() -> None:
    for lock in list(_held):
        descriptor, lock._descriptor = lock._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
    _held.clear()
    _forking.release()


os.register_at_fork(before=_forking.acquire, after_in_parent=_forking.release, after_in_child=_close_in_child)
