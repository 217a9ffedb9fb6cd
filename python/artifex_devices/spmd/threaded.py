# SPDX-License-Identifier: Apache-2.0
"""A thread a participant: NumPy drops the GIL in its loops, so big blocks compute in parallel.

Threads are kept for the next program until `shutdown()`; after a fork the child starts with none. Idle ones hold
nothing.
"""

from __future__ import annotations

import atexit
import contextvars
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from artifex_devices.blas_threads import shared_cores
from artifex_devices.spmd.participant import Participant, Stopped, _current
from artifex_devices.spmd.program import Program

__all__ = ["run", "shutdown"]

_GRACE_S = 2.0  # how long a cancelled program waits for its bodies before it lets go of them
Job = tuple[contextvars.Context, Participant, Callable[..., Any], Callable[[], None]]


def _serve(jobs: queue.SimpleQueue[Job | None]) -> None:
    while True:
        job = jobs.get()
        if job is None:
            return
        context, participant, function, done = job
        context.run(_enter, participant, function)
        del job, context, participant, function
        done()
        del done


def _enter(me: Participant, function: Callable[..., Any]) -> None:
    """Runs one body to its end on the calling thread, in a context where `me` is the current participant."""
    program = me.program
    position = me.position
    me.thread = threading.get_ident()
    _current.set(me)
    try:
        args = me.args
        program.outcomes[position] = function(*args) if type(args) is tuple else function(args)
    except BaseException as error:
        program.errors[position] = error
        if isinstance(error, Stopped):
            program.rendezvous.finished(position)
        else:
            program.rendezvous.raised(position)
    else:
        program.rendezvous.finished(position)


class _Worker:
    """A thread that runs one participant after the other; it ends when nobody has its worker any more."""

    __slots__ = ("_jobs", "thread")

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self.thread = threading.Thread(target=_serve, args=(self._jobs,), name="artifex-participant", daemon=True)
        self.thread.start()

    def give(self, job: Job | None) -> None:
        """Runs a participant; None ends the thread."""
        self._jobs.put(job)

    def __del__(self) -> None:
        self._jobs.put(None)


class _Pool:
    """The idle workers of the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []

    def take(self, count: int) -> list[_Worker]:
        """Workers for `count` participants; new ones where there are too few."""
        with self._lock:
            taken = self._idle[-count:]
            del self._idle[-count:]
        try:
            while len(taken) < count:
                taken.append(_Worker())
        except RuntimeError:  # can't start new thread
            self.put(taken)
            raise
        return taken

    def put(self, workers: Sequence[_Worker]) -> None:
        """Keeps workers that are free again."""
        with self._lock:
            self._idle.extend(workers)

    def shutdown(self) -> None:
        """Ends the idle workers."""
        with self._lock:
            ended, self._idle = self._idle, []
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
    """Waits until all participants have ended. A bare lock: Ctrl-C inside of an Event's wait can spoil the Event."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._lock = threading.Lock()
        self._open = threading.Lock()
        self._open.acquire()

    def count_down(self) -> None:
        """One has ended."""
        with self._lock:
            self._left -= 1
            if self._left == 0:
                self._open.release()

    def wait(self, seconds: float | None) -> bool:
        """Whether all have ended in time."""
        if not self._open.acquire(timeout=-1 if seconds is None else min(seconds, threading.TIMEOUT_MAX)):
            return False
        self._open.release()
        return True


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
                worker.give((context, participant, function, latch.count_down))
            has_failed = False
            while not latch.wait(timeout_s):
                if has_failed:  # a body that blocks elsewhere: the program goes on without it
                    break
                has_failed = bool(rendezvous.failure)
    except BaseException:  # Ctrl-C: waits end at once, bodies at their next collective or their end, threads with them
        rendezvous.cancel()
        _retire(workers)
        over_s = time.monotonic() + _GRACE_S
        for worker in workers:
            worker.thread.join(max(0.0, over_s - time.monotonic()))
        raise
    if latch.wait(0):
        pool.put(workers)
    else:
        _retire(workers)


def _retire(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        worker.give(None)
