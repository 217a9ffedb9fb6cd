# SPDX-License-Identifier: Apache-2.0
"""A thread a participant: NumPy drops the GIL in its loops, so big blocks compute in parallel.

Threads are kept for the next program until `shutdown()`; after a fork the child starts with none. Idle ones hold
nothing.
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
from artifex_devices._base.handoff_queue import NOTHING, HandOver
from artifex_devices._spmd.participant import Participant, Stopped, _current
from artifex_devices._spmd.program import Program

__all__ = ["run", "shutdown"]

_GRACE_S = 2.0  # how long a program that has failed waits for its bodies before it lets go of them
_LOOK_S = 0.5  # a Ctrl-C that comes just before a wait for a lock begins does not end that wait


def _serve(thread: DaemonThread, jobs: HandOver[Job | None]) -> None:
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
        except BaseException as error:  # memory was short on the way to the body or back
            error.__traceback__ = None  # the frame of this function outlives the program
            lost = error
        del job, context, function
        while True:  # the others wait for it: they must be told, be memory as short as it may
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
    """Runs one body to its end on the calling thread, in a context where `me` is the current participant.

    Returns whether it raised what is not the failure of another one.
    """
    program = me.program
    position = me.position
    me.thread = threading.get_ident()
    _current.set(me)
    try:
        args = me.args
        program.outcomes[position] = function(*args) if type(args) is tuple else function(args)
    except BaseException as error:
        if not program.has_ended:  # or gone on without this body
            program.errors[position] = error  # through the program, which forgets it: tracebacks keep this frame
        return not isinstance(error, Stopped)
    return False


def _report(me: Participant, has_raised: bool, lost: BaseException | None) -> bool:
    """Tells the program how a participant has ended; can be done again where it was not done to its end.

    Returns whether the program has failed.
    """
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
    """A thread that runs one participant after the other; it ends when nobody has its worker any more."""

    __slots__ = ("_jobs", "thread")

    def __init__(self) -> None:
        self._jobs: HandOver[Job | None] = HandOver()
        self.thread = DaemonThread("artifex-participant", _serve, self._jobs)
        self.thread.start()

    def give(self, job: Job | None) -> None:
        """Runs a participant; None ends the thread."""
        self._jobs.put(job)

    def __del__(self) -> None:
        jobs = getattr(self, "_jobs", None)  # Ctrl-C may have come before there was one
        if jobs is not None:
            jobs.put(None)


class _Pool:
    """The idle workers of the process."""

    def __init__(self) -> None:
        # No lock: a finalizer that runs a program may come in anywhere. append and pop are whole for other threads.
        self._idle: list[_Worker] = []

    def take(self, count: int) -> list[_Worker]:
        """Workers for `count` participants; new ones where there are too few."""
        taken: list[_Worker] = []
        try:
            while len(taken) < count:
                taken.append(self._pop() or _Worker())
        except (RuntimeError, MemoryError):  # can't start new thread
            self.put(taken)
            raise
        return taken

    def put(self, workers: Sequence[_Worker]) -> None:
        """Keeps workers that are free again."""
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
            worker.give(None)
        for worker in ended:
            worker.thread.join()


_pool = _Pool()


def _start_anew() -> None:
    global _pool
    _pool = _Pool()


os.register_at_fork(after_in_child=_start_anew)


def shutdown() -> None:
    """Ends the idle threads of participants."""
    _pool.shutdown()


atexit.register(shutdown)


class _Latch:
    """Waits until all participants have ended. Bare locks: Ctrl-C inside of an Event's wait can spoil the Event.

    Threads take no lock to tell that they have ended, so that one that is refused memory amid that leaves none held.
    """

    def __init__(self, count: int) -> None:
        self._running = set(range(count))
        self._open = threading.Lock()  # held until all have ended
        self._open.acquire()
        self._news = threading.Lock()  # held until all have ended or one has failed
        self._news.acquire()
        self._is_open = False  # the caller has seen that, and has the lock for good
        self._is_told = False

    def has_ended(self, position: int, has_failed: bool) -> None:
        """One has ended, and whether the program has failed; the same when told again."""
        self._running.discard(position)
        if not self._running:
            _release(self._open)
        if not self._running or has_failed:
            _release(self._news)

    def wait(self, seconds: float | None) -> bool:
        """Whether all have ended in time."""
        self._is_open = self._is_open or _acquire(self._open, seconds)
        return self._is_open

    def wait_for_news(self, seconds: float | None) -> bool:
        """Whether all have ended, or one has failed, in time."""
        self._is_told = self._is_told or _acquire(self._news, seconds)
        return self._is_told


def _release(lock: threading.Lock) -> None:
    try:
        lock.release()
    except RuntimeError:  # another thread did
        return


def _acquire(lock: threading.Lock, seconds: float | None) -> bool:
    end_s = math.inf if seconds is None else time.monotonic() + seconds
    while not lock.acquire(timeout=max(0.0, min(_LOOK_S, end_s - time.monotonic()))):
        if time.monotonic() >= end_s:
            return False
    return True


Job = tuple[contextvars.Context, Participant, Callable[..., Any], _Latch]


def run(program: Program, function: Callable[..., Any]) -> None:
    """Runs all bodies to their ends; failures are in the program."""
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
                worker.give((context, participant, function, latch))
            while not latch.wait_for_news(timeout_s) and not rendezvous.failure:
                pass
            latch.wait(_GRACE_S)  # a body that blocks elsewhere: the program goes on without it
    except BaseException:  # Ctrl-C: waits end at once, bodies at their next collective or their end, threads with them
        _cancel(program)
        _retire(workers)
        over_s = time.monotonic() + _GRACE_S
        for worker in workers:
            worker.thread.join(max(0.0, over_s - time.monotonic()))
        raise
    if latch.wait(0):
        pool.put(workers)
    else:
        _retire(workers)


def _cancel(program: Program) -> None:
    """Ends all waits, be memory as short as it may: participants wait for no one else."""
    while True:
        try:
            program.rendezvous.cancel()
            return
        except MemoryError:
            continue


def _retire(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        worker.give(None)
