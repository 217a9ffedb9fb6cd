# SPDX-License-Identifier: Apache-2.0
"""SaveFuture: a save that a thread writes."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import warnings
import weakref
from typing import NamedTuple, Protocol

from artifex_devices._base.caller import user_frame
from artifex_devices._base.checks import check_number, failure
from artifex_devices._base.daemon_thread import DaemonThread
from artifex_devices._base.public_path import public
from artifex_devices._base.raised_exceptions import copy_of

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


class _Report(NamedTuple):
    """A failure that no wait() has raised, and the user's line that began the save."""

    future: weakref.ref[SaveFuture]
    text: str
    file: str
    line: int


@public("artifex_devices.checkpoint")
class SaveFuture:
    """A running save, returned by `save_async`.

    `wait()` returns when the checkpoint exists. In one process the checkpoint appears also without `wait()`. With
    several processes `wait()` commits the checkpoint, and every process calls it. The saves of a Manager are committed
    in the order of the calls.

    An error that no `wait()` raised is reported as a RuntimeWarning: by a later `save_async` if the future was deleted,
    else at exit. So is a save of several processes that no `wait()` committed. The exit status does not change.
    """

    def __init__(self, save: _Save, previous: SaveFuture | None = None) -> None:
        _report_failures(of_dropped=True)
        self._save = save
        self._report: _Report | None = None
        caller = user_frame(sys._getframe(1))
        self._caller = (caller.f_code.co_filename, caller.f_lineno)
        self._operation = save.operation
        self._commits_in_wait = save.has_several_processes
        self._error: BaseException | None = None
        self._finished = threading.Event()
        self._lock = threading.RLock()  # a signal handler may interrupt a wait() and call it
        self._is_committed = False
        self._process = os.getpid()
        self._previous = previous  # is committed before this save
        if previous is not None and not previous._is_of_this_process():
            self._previous = None
        self._thread = DaemonThread("artifex_devices-checkpoint", self._run)
        try:
            save.start()
        except BaseException as error:
            save.give_up(error)
            raise
        try:
            _running.add(self)  # before the thread, which removes it
            self._thread.start()
        except BaseException as error:
            if self._thread.cancel():
                _running.discard(self)
                self._error = error
                self._finished.set()
                save.commit(error)
            raise
        if self._commits_in_wait:
            self._note("the save is not committed, as no wait() was called")
        main_thread = threading.main_thread()
        if threading.current_thread() is main_thread and not main_thread.is_alive():
            self._wait_for_thread()  # in a callback at exit, after which none may come that waits for it

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
        return self._finished.is_set()

    def wait(self, timeout_s: float | None = None) -> None:
        """Waits for the save; may be called again.

        Args:
            timeout_s: Seconds to wait for the files, or None for no limit.

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
        self._finish(timeout_s, None if timeout_s is None else time.monotonic() + timeout_s)
        if self._error is not None:
            self._forget()
            raise copy_of(self._error)

    def _finish(self, timeout_s: float | None = None, end: float | None = None) -> None:
        """Waits for the files, and commits the save after the previous one, or ends it; does not raise its error."""
        self._finish_previous(timeout_s, end)
        while not self.done():
            left = _POLL_S if end is None else min(_POLL_S, end - time.monotonic())
            if left <= 0.0:
                raise failure(
                    TimeoutError,
                    self._operation,
                    f"{self.bytes_written} of {self.nbytes} bytes are written after {timeout_s} s",
                    expected="all",
                    fix="call wait() again",
                )
            self._finished.wait(left)
        with self._lock:
            if self._commits_in_wait and not self._is_committed:
                self._is_committed = True
                self._forget()
                try:
                    self._save.commit(self._error)
                except Exception as error:
                    self._fail(error)
                except BaseException as error:  # such as Ctrl-C, which is for the caller
                    self._error = error
                    raise

    def _finish_previous(self, timeout_s: float | None = None, end: float | None = None) -> None:
        previous = self._previous
        if previous is not None:
            previous._finish(timeout_s, end)
            self._previous = None

    def _run(self) -> None:
        try:
            try:
                self._save.write()
                if not self._commits_in_wait:
                    self._finish_previous()
            except BaseException as error:
                self._fail(error)
            self._commit_alone()
        finally:
            self._finished.set()
            _running.discard(self)

    def _wait_for_thread(self) -> None:
        while not self.done():
            self._finished.wait(_POLL_S)

    def _commit_alone(self) -> None:
        if self._commits_in_wait:
            return
        try:
            self._save.commit(self._error)
        except BaseException as error:
            self._fail(error)

    def _note(self, problem: str) -> None:
        """Records an error that is reported unless a wait() ends or raises it."""
        self._forget()
        text = f"{self._operation}: {problem}; expected wait() on each SaveFuture; call it"
        self._report = _Report(weakref.ref(self), text, *self._caller)
        _reports[self._report] = None

    def _forget(self) -> None:
        if self._report is not None:
            _reports.pop(self._report, None)

    def _fail(self, error: BaseException) -> None:
        self._error = error
        self._note(f"the save failed, and no wait() raised its error: {type(error).__name__}: {error}")

    def _is_of_this_process(self) -> bool:
        """Returns whether the save began in this process, rather than in the parent before a fork."""
        return self._process == os.getpid()

    def _check_process(self) -> None:
        if not self._is_of_this_process():
            raise failure(
                RuntimeError,
                self._operation,
                f"the save began in process {self._process}, and this is process {os.getpid()}, forked from it",
                expected="the process that began it",
                fix="wait() there",
            )

    def __repr__(self) -> str:
        state = "running"
        if self._is_of_this_process() and self.done():
            state = "finished" if self._error is None else f"failed: {type(self._error).__name__}"
        return f"<SaveFuture {state}, {self.bytes_written} of {self.nbytes} bytes>"


def finish(future: SaveFuture, *, raises: bool = False) -> None:
    """Waits until a save of this process is committed or has failed; raises its error only with `raises`."""
    if future._is_of_this_process():
        future.wait() if raises else future._finish()


# Futures whose threads are running. The thread refers to its future, and so also finishes a save whose future is
# dropped.
_running: weakref.WeakSet[SaveFuture] = weakref.WeakSet()
_reports: dict[_Report, None] = {}  # of failures that no wait() has raised, in order


def _report_failures(*, of_dropped: bool) -> None:
    """Warns of failures that no wait() has raised; with `of_dropped`, of failures that no wait() can raise any more."""
    for report in list(_reports):
        if of_dropped and report.future() is not None:
            continue
        _reports.pop(report, None)
        try:
            warnings.warn_explicit(report.text, RuntimeWarning, report.file, report.line)
        except RuntimeWarning as error:  # warnings are errors
            if of_dropped:
                raise
            warnings.showwarning(error, RuntimeWarning, report.file, report.line)


def _wait_at_exit() -> None:
    for future in list(_running):
        future._wait_for_thread()
    _report_failures(of_dropped=False)


def _forget_in_child() -> None:
    _running.clear()
    _reports.clear()


atexit.register(_wait_at_exit)
os.register_at_fork(after_in_child=_forget_in_child)
