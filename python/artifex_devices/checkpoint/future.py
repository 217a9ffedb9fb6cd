# SPDX-License-Identifier: Apache-2.0
"""SaveFuture: a save that a thread writes."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from typing import Protocol

from artifex_devices._base.checks import check_number
from artifex_devices._base.daemon_thread import DaemonThread
from artifex_devices._base.public_path import public

_POLL_S = 0.05  # interval at which a waiting thread checks that the writing thread is alive


class _Save(Protocol):
    """A save that can be written on one thread and committed on another."""

    operation: str
    has_several_processes: bool

    @property
    def nbytes(self) -> int:
        """Bytes to write."""

    @property
    def bytes_written(self) -> int:
        """Bytes written so far."""

    def start(self) -> None:
        """Creates the folder."""

    def give_up(self, error: BaseException) -> None:
        """Removes the folder, after an error of `start`."""

    def write(self) -> None:
        """Writes the files."""

    def commit(self, error: BaseException | None = None) -> None:
        """Makes the checkpoint appear."""


@public("artifex_devices.checkpoint")
class SaveFuture:
    """A running save, returned by `save_async`.

    `wait()` returns when the checkpoint exists. In one process the checkpoint appears also without `wait()`. With
    several processes `wait()` commits the checkpoint, and every process calls it.
    """

    def __init__(self, save: _Save) -> None:
        self._save = save
        self._operation = save.operation
        self._commits_in_wait = save.has_several_processes
        self._error: BaseException | None = None
        self._finished = threading.Event()
        self._lock = threading.Lock()
        self._is_committed = False
        self._process = os.getpid()
        self._thread = DaemonThread("artifex_devices-checkpoint", self._run)
        try:
            save.start()
        except BaseException as error:
            save.give_up(error)
            raise
        try:
            _running.add(self)
            self._thread.start(wait=False)  # the caller waits neither for it nor, meanwhile, for the GIL
        except BaseException as error:
            if self._thread.is_gone():
                self._error = error
                self._finished.set()
                _running.discard(self)
                save.commit(error)
            raise

    @property
    def nbytes(self) -> int:
        """Bytes that this process writes."""
        return self._save.nbytes

    @property
    def bytes_written(self) -> int:
        """Bytes that this process has written so far."""
        return self._save.bytes_written

    def done(self) -> bool:
        """Returns whether the thread has finished: the files are written, or the save failed."""
        self._check_process()
        return self._finished.is_set() or self._thread.is_gone()

    def wait(self, timeout_s: float | None = None) -> None:
        """Waits for the save; may be called again.

        Args:
            timeout_s: Seconds to wait for the files; None for no limit.

        Raises:
            TimeoutError: The files are not written yet.
            RuntimeError: The process was forked after the save began.
            OSError: The save failed; also its other errors.

        Example:
            >>> import tempfile
            >>> from artifex_devices import checkpoint
            >>> folder = tempfile.TemporaryDirectory()
            >>> future = checkpoint.save_async(f"{folder.name}/1", {"step": 1})
            >>> future.wait()
            >>> future.done()
            True
        """
        if timeout_s is not None:
            check_number("SaveFuture.wait", "timeout_s", timeout_s, "write wait(60.0)", minimum=0.0)
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while not self.done():
            left = _POLL_S if end is None else min(_POLL_S, end - time.monotonic())
            if left <= 0.0:
                raise TimeoutError(
                    f"{self._operation}: {self.bytes_written} of {self.nbytes} bytes are written after {timeout_s} s; "
                    "expected all; call wait() again"
                )
            self._finished.wait(left)
        with self._lock:
            if not self._finished.is_set():
                self._end_without_thread()
            if self._commits_in_wait and not self._is_committed:
                self._is_committed = True
                try:
                    self._save.commit(self._error)
                except BaseException as error:
                    self._error = error
        if self._error is not None:
            raise self._error

    def _run(self, thread: DaemonThread) -> None:
        thread.began()
        try:
            try:
                self._save.write()
            except BaseException as error:
                self._error = error
            self._commit_alone()
        finally:
            self._finished.set()
            _running.discard(self)

    def _commit_alone(self) -> None:
        if self._commits_in_wait:
            return
        try:
            self._save.commit(self._error)
        except BaseException as error:
            self._error = error

    def _end_without_thread(self) -> None:
        """Gives the save up whose thread ended early."""
        self._thread.forget()
        self._error = MemoryError(f"{self._operation}: the thread that writes ended without memory; save again")
        self._commit_alone()
        self._finished.set()
        _running.discard(self)

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise RuntimeError(
                f"{self._operation}: the save began in process {self._process}, and this is process {os.getpid()}, "
                "forked from it; expected the process that began it; wait() there"
            )

    def __repr__(self) -> str:
        state = "running"
        if self._process == os.getpid() and self.done():
            state = "finished" if self._error is None else f"failed: {type(self._error).__name__}"
        return f"<SaveFuture {state}, {self.bytes_written} of {self.nbytes} bytes>"


# Futures whose threads are running; the thread refers to its future, so that a dropped one is written too.
_running: weakref.WeakSet[SaveFuture] = weakref.WeakSet()


def _wait_at_exit() -> None:
    for future in list(_running):
        while not future.done():
            future._finished.wait(_POLL_S)


atexit.register(_wait_at_exit)
os.register_at_fork(after_in_child=_running.clear)
