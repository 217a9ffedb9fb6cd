# SPDX-License-Identifier: Apache-2.0
"""One thread for each participant: NumPy releases the GIL in its loops, so big blocks compute in parallel.

Idle threads wait for the next call until `shutdown()`, without references to the last one. A child made by fork
starts with none.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import os
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any

from artifex_devices._base.blas_threads import shared_cores
from artifex_devices._base.daemon_thread import DaemonThread
from artifex_devices._spmd.outcomes import Stopped
from artifex_devices._spmd.session import Participant, Session, _current

_GRACE_S = 2.0  # how long a failed session waits for its bodies before it continues without them
_POLL_S = 0.5  # a Ctrl-C just before a wait for a lock begins does not end that wait


def _serve(jobs: SimpleQueue[Job | None]) -> None:
    while (job := jobs.get()) is not None:
        context, participant, function, running, news = job
        position = participant.position
        rendezvous = participant.session.rendezvous
        has_raised = context.run(_enter, participant, function)
        del job, context, participant, function  # the caller continues when this end is reported
        if has_raised:
            rendezvous.raised(position)
        else:
            rendezvous.finished(position)
        running.discard(position)
        if rendezvous.failure or not running:
            news.put(None)
        del rendezvous, running, news


def _enter(me: Participant, function: Callable[..., Any]) -> bool:
    """Runs one body on the calling thread, in a context where `me` is the current participant.

    Returns whether it raised an error itself.
    """
    outcomes = me.session.outcomes
    position = me.position
    try:
        me.thread = threading.get_ident()
        _current.set(me)
        args = me.args
        outcomes.record_return(position, function(*args) if type(args) is tuple else function(args))
    except BaseException as error:
        outcomes.record_error(position, error)  # not kept here, as tracebacks refer to this frame
        return not isinstance(error, Stopped)
    return False


class _Worker:
    """A thread that runs one participant after the other; it ends when nothing refers to its worker."""

    __slots__ = ("_jobs", "thread")

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self.thread = DaemonThread("artifex-participant", _serve, self._jobs)
        self.thread.start()

    def run(self, job: Job | None) -> None:
        """Runs a participant; ends the thread if it is None."""
        self._jobs.put(job)

    def __del__(self) -> None:
        jobs = getattr(self, "_jobs", None)  # Ctrl-C may have interrupted __init__
        if jobs is not None:
            jobs.put(None)


# The idle workers. No lock: a finalizer that runs a program may interrupt any line. append and pop are atomic.
_idle: list[_Worker] = []
os.register_at_fork(after_in_child=_idle.clear)


def _take(count: int) -> list[_Worker]:
    """Returns workers for `count` participants; starts new ones where too few are idle."""
    taken: list[_Worker] = []
    try:
        while len(taken) < count:
            taken.append(_pop() or _Worker())
    except RuntimeError:  # can't start new thread
        _idle.extend(taken)
        raise
    return taken


def _pop() -> _Worker | None:
    try:
        return _idle.pop()
    except IndexError:
        return None


def shutdown() -> None:
    """Ends the idle threads of participants; waits a moment for them."""
    ended = []
    while worker := _pop():
        ended.append(worker)
    _retire(ended)
    deadline_s = time.monotonic() + _GRACE_S
    for worker in ended:
        worker.thread.join(max(0.0, deadline_s - time.monotonic()))


atexit.register(shutdown)

# The last two are of the session: positions of participants that have not ended, and a queue that wakes the caller.
Job = tuple[contextvars.Context, Participant, Callable[..., Any], set[int], SimpleQueue[None]]


class ThreadedExecutor:
    """Runs each participant in its own thread."""

    def __init__(self, session: Session, function: Callable[..., Any]) -> None:
        self._session = session
        self._function = function

    def wait(self, me: Participant, frame: FrameType) -> None:
        """Waits until this participant may go on, at most as long as the session allows."""
        self._session.rendezvous.wait(me.position, self._session.timeout_s)

    def run(self) -> None:
        """Runs all bodies; records failures in the session."""
        session = self._session
        session.use(self)
        participants = session.participants
        workers = _take(len(participants))
        running = set(range(len(participants)))
        news: SimpleQueue[None] = SimpleQueue()
        try:
            with shared_cores(len(participants)):
                for worker, participant in zip(workers, participants, strict=True):
                    context = contextvars.copy_context()
                    worker.run((context, participant, self._function, running, news))
                _wait(session.rendezvous, running, news)
        except BaseException:  # Ctrl-C ends waits at once, and bodies at their next collective
            session.rendezvous.cancel()
            _retire(workers)
            deadline_s = time.monotonic() + _GRACE_S
            for worker in workers:
                worker.thread.join(max(0.0, deadline_s - time.monotonic()))
            raise
        if running:
            _retire(workers)
        else:
            _idle.extend(workers)


def _wait(rendezvous: Any, running: set[int], news: SimpleQueue[None]) -> None:
    """Waits until all bodies have ended, or until the session has failed and bodies that block elsewhere are abandoned.

    A function, as CPython 3.13 lets Ctrl-C at the end of a `while` loop escape a `try` or `with` around the loop.
    """
    while running and not rendezvous.failure:
        _sleep(news, _POLL_S)
    end_s = time.monotonic() + _GRACE_S
    while running and (left_s := end_s - time.monotonic()) > 0:
        _sleep(news, min(left_s, _POLL_S))


def _sleep(news: SimpleQueue[None], seconds: float) -> None:
    with contextlib.suppress(Empty):
        news.get(timeout=seconds)


def _retire(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        worker.run(None)
