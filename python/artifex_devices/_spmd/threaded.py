# SPDX-License-Identifier: Apache-2.0
"""One thread for each participant: NumPy releases the GIL in its loops, so big blocks compute in parallel.

Idle threads wait for the next program until `shutdown()`, without references to the last one. A child made by fork
starts with none.
"""

from __future__ import annotations

import atexit
import contextvars
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from artifex_devices._base.blas_threads import shared_cores
from artifex_devices._base.daemon_thread import DaemonThread
from artifex_devices._base.handoff_queue import NOTHING, HandoffQueue
from artifex_devices._spmd.participant import Participant, Stopped, _current
from artifex_devices._spmd.program import Program

_GRACE_S = 2.0  # how long a failed program waits for its bodies before it goes on without them
_POLL_S = 0.5  # a Ctrl-C just before a wait for a lock begins does not end that wait


def _serve(thread: DaemonThread, jobs: HandoffQueue[Job | None]) -> None:
    thread.began()
    del thread
    while True:
        try:
            job = jobs.take()
        except MemoryError:
            continue
        if job is None or job is NOTHING:
            return
        context, participant, function, latch = job
        lost = None
        has_raised = True
        try:
            has_raised = context.run(_enter, participant, function)
        except BaseException as error:  # out of memory before or after the body
            error.__traceback__ = None  # the frame of this function outlives the program
            lost = error
        del job, context, function
        while True:  # the others wait for its report, which is repeated until there is memory for it
            try:
                has_failed = _report(participant, has_raised, lost)
                position = participant.position
                break
            except MemoryError:
                continue
        del participant, lost
        while True:
            try:
                latch.has_ended(position, has_failed)
                break
            except MemoryError:
                continue
        del latch


def _enter(me: Participant, function: Callable[..., Any]) -> bool:
    """Runs one body on the calling thread, in a context where `me` is the current participant.

    Returns whether it raised an error of its own.
    """
    program = me.program
    position = me.position
    me.thread = threading.get_ident()
    _current.set(me)
    try:
        args = me.args
        program.outcomes[position] = function(*args) if type(args) is tuple else function(args)
    except BaseException as error:
        if not program.has_ended:  # it may have gone on without this body
            program.errors[position] = error  # not kept here, as tracebacks refer to this frame
        return not isinstance(error, Stopped)
    return False


def _report(me: Participant, has_raised: bool, lost: BaseException | None) -> bool:
    """Reports to the program how a participant has ended; may be repeated. Returns whether the program has failed."""
    program = me.program
    position = me.position
    errors = program.errors
    if lost is not None and errors:  # none after the end of the program
        errors[position] = lost
    if has_raised:
        program.rendezvous.raised(position)
    else:
        program.rendezvous.finished(position)
    return program.rendezvous.failure != ""


class _Worker:
    """A thread that runs one participant after the other; it ends when nothing refers to its worker."""

    __slots__ = ("_jobs", "thread")

    def __init__(self) -> None:
        self._jobs: HandoffQueue[Job | None] = HandoffQueue()
        self.thread = DaemonThread("artifex-participant", _serve, self._jobs)
        self.thread.start()

    def run(self, job: Job | None) -> None:
        """Runs a participant; None ends the thread."""
        self._jobs.put(job)

    def __del__(self) -> None:
        jobs = getattr(self, "_jobs", None)  # Ctrl-C may have interrupted __init__
        if jobs is not None:
            jobs.put(None)


class _Pool:
    """The idle workers of the process."""

    def __init__(self) -> None:
        # No lock: a finalizer that runs a program may interrupt any line. append and pop are atomic.
        self._idle: list[_Worker] = []

    def take(self, count: int) -> list[_Worker]:
        """Workers for `count` participants; new ones where too few are idle."""
        taken: list[_Worker] = []
        try:
            while len(taken) < count:
                taken.append(self._pop() or _Worker())
        except (RuntimeError, MemoryError):  # can't start new thread
            self.put(taken)
            raise
        return taken

    def put(self, workers: Sequence[_Worker]) -> None:
        """Returns workers to the pool."""
        for worker in workers:
            self._idle.append(worker)

    def _pop(self) -> _Worker | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def shutdown(self) -> None:
        """Ends the idle workers."""
        ended = []
        while worker := self._pop():
            ended.append(worker)
        for worker in ended:
            worker.run(None)
        for worker in ended:
            worker.thread.join()


_pool = _Pool()


def _reset() -> None:
    global _pool
    _pool = _Pool()


os.register_at_fork(after_in_child=_reset)


def shutdown() -> None:
    """Ends the idle threads of participants."""
    _pool.shutdown()


atexit.register(shutdown)


class _Latch:
    """Waits until all participants have ended. Bare locks: Ctrl-C in the wait of an Event can break the Event.

    A thread acquires no lock to report its end, so that it leaves none held when it runs out of memory.
    """

    def __init__(self, count: int) -> None:
        self._running = set(range(count))
        self._open = threading.Lock()  # held until all have ended
        self._open.acquire()
        self._ended_or_failed = threading.Lock()  # held until then
        self._ended_or_failed.acquire()
        self._is_open = False  # once the caller holds that lock, permanently
        self._has_news = False

    def has_ended(self, position: int, has_failed: bool) -> None:
        """Reports the end of a participant, and whether the program has failed; may be repeated."""
        self._running.discard(position)
        if not self._running:
            _release(self._open)
        if not self._running or has_failed:
            _release(self._ended_or_failed)

    def wait(self, seconds: float | None) -> bool:
        """Waits until all have ended; returns whether they did in time."""
        self._is_open = self._is_open or _acquire(self._open, seconds)
        return self._is_open

    def wait_for_news(self, seconds: float | None) -> bool:
        """Waits until all have ended or one has failed; returns whether that happened in time."""
        self._has_news = self._has_news or _acquire(self._ended_or_failed, seconds)
        return self._has_news


def _release(lock: threading.Lock) -> None:
    try:
        lock.release()
    except RuntimeError:  # another thread released it
        return


def _acquire(lock: threading.Lock, seconds: float | None) -> bool:
    end_s = math.inf if seconds is None else time.monotonic() + seconds
    while not lock.acquire(timeout=max(0.0, min(_POLL_S, end_s - time.monotonic()))):
        if time.monotonic() >= end_s:
            return False
    return True


Job = tuple[contextvars.Context, Participant, Callable[..., Any], _Latch]


def run(program: Program, function: Callable[..., Any]) -> None:
    """Runs all bodies; records failures in the program."""
    rendezvous = program.rendezvous
    timeout_s = program.timeout_s

    def wait(me: Participant, frame: FrameType) -> None:
        rendezvous.wait(me.position, timeout_s)

    program.wait = wait
    program.stage.wait_by(wait, None)
    participants = program.participants
    pool = _pool
    workers = pool.take(len(participants))
    latch = _Latch(len(participants))
    try:
        with shared_cores(len(participants)):
            for worker, participant in zip(workers, participants, strict=True):
                context = contextvars.copy_context()
                worker.run((context, participant, function, latch))
            while not latch.wait_for_news(timeout_s) and not rendezvous.failure:
                pass
            latch.wait(_GRACE_S)  # a body that blocks elsewhere is abandoned
    except BaseException:  # Ctrl-C ends waits at once, and bodies at their next collective
        _cancel(program)
        _retire(workers)
        deadline_s = time.monotonic() + _GRACE_S
        for worker in workers:
            worker.thread.join(max(0.0, deadline_s - time.monotonic()))
        raise
    if latch.wait(0):
        pool.put(workers)
    else:
        _retire(workers)


def _cancel(program: Program) -> None:
    """Ends all waits; repeats that until there is memory for it."""
    while True:
        try:
            program.rendezvous.cancel()
            return
        except MemoryError:
            continue


def _retire(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        worker.run(None)
