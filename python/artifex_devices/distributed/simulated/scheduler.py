# SPDX-License-Identifier: Apache-2.0
"""Chooses by one seed which simulated process runs, which message arrives and which fault occurs.

Each process is a thread, and one process runs at a time. It runs until it waits in the transport; then the scheduler
chooses among the processes that can continue and the messages that can arrive. Other threads of a process run
concurrently, as in any program; when one of them waits in the transport, its process waits.
"""

from __future__ import annotations

import math
import random
import threading
from bisect import bisect
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from artifex_devices._base.daemon_thread import DaemonThread
from artifex_devices._base.public_path import public
from artifex_devices.distributed.simulated.faults import Fault, FaultPlan
from artifex_devices.distributed.simulated.network import Network, SimulatedMessage

_STEP_S = 1e-6  # virtual time of a choice
_WEIGHTS = (1, 4, 16)  # of processes: some run much more often than others
_END_S = 10.0  # seconds that a thread has to end
_READY, _RUNNING, _WAITING, _PARKED, _ENDED = range(5)


class Unwound(BaseException):
    """Ends a simulated process whose run is over; not an Exception, because programs must not catch it."""


@public("artifex_devices.testing")
class Event(NamedTuple):
    """Something that happened in a run of simulated processes.

    Attributes:
        time_s: Virtual time in seconds since the start.
        process: Number of the process.
        kind: "begin" (of an operation), "send", "arrive", "fault", "deadlock", "return" or "raise".
        text: Description.
    """

    time_s: float
    process: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.time_s:.6f} process {self.process} {self.kind}: {self.text}"


class _ScheduledProcess:
    """The state of one process."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.state = _READY
        self.may_run = threading.Lock()  # released to let the waiting thread of the process run
        self.may_run.acquire()
        self.is_done: Callable[[], bool] = bool
        self.has_news = False  # whether a message has arrived since `is_done` was called
        self.can_continue = False  # what `is_done` returned
        self.until = math.inf  # virtual time at which a wait ends
        self.deadline = math.inf  # as `until`, while a process is stopped by a fault; other waits would be a deadlock
        self.was_notified = False  # of a change of another process
        self.stalled_until = 0.0


class Scheduler:
    """Runs the processes of one job."""

    def __init__(self, count: int, seed: int, faults: Sequence[Fault] = ()) -> None:
        self.now = 0.0  # virtual seconds
        self.events: list[Event] = []
        self.lost: list[int] = []  # processes that a fault has ended
        self.on_lost: Callable[[int], None] = lambda process: None  # sends the reports of the end of a process
        self.on_deadlock: Callable[[], None] = lambda: None  # called once when no process can go on
        self.on_yield: Callable[[int], None] = lambda process: None  # called after a process has run
        self._generator = random.Random(seed)
        self._network = Network(self._generator)
        self._faults = FaultPlan(faults, count, self._generator)
        self._scheduled = [_ScheduledProcess(index) for index in range(count)]
        self._alive = list(self._scheduled)  # processes that have not ended
        self._weights = [self._generator.choice(_WEIGHTS) for _ in range(count)]
        self._arrival_weight = self._generator.choice(_WEIGHTS)
        self._mutex = threading.RLock()  # guards everything here
        self._running: int | None = None
        self._is_stopping = False
        self._has_deadlock = False
        self._is_over = threading.Lock()  # released once; a Semaphore may be left locked where Ctrl-C ends its wait
        self._is_over.acquire()
        self._error: BaseException | None = None  # why the scheduler itself has failed

    # --- called by the thread that starts the processes

    def run(self, body: Callable[[int], None]) -> None:
        """Runs `body(process)` in a thread for each process; returns when all have ended."""
        threads = []
        try:
            for scheduled in self._scheduled:
                threads.append(DaemonThread(f"simulated process {scheduled.index}", self._play, scheduled, body))
                threads[-1].start()
            with self._mutex:
                self._choose()
            self._is_over.acquire()
        finally:
            self.stop()
            for scheduled, thread in zip(self._scheduled, threads, strict=False):
                self._resume(scheduled)  # unwinds the thread, where it waits
                thread.join(_END_S)
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Ends the run: no process continues after its next wait."""
        with self._mutex:
            self._is_stopping = True
            self._end_run()

    def _end_run(self) -> None:
        """Lets `run` end. The mutex is held."""
        if self._is_over.locked():
            self._is_over.release()

    def _play(self, scheduled: _ScheduledProcess, body: Callable[[int], None]) -> None:
        try:
            self._pause(scheduled)
            body(scheduled.index)
        except Unwound:
            pass
        finally:
            with self._mutex:
                scheduled.state = _ENDED
                self._alive.remove(scheduled)
                self._resume(scheduled)  # unwinds another thread of the process, where it waits
                self._yield(scheduled)

    # --- called by the processes

    def wait(
        self, process: int, is_done: Callable[[], bool], until: float = math.inf, deadline: float = math.inf
    ) -> None:
        """Lets others run until `is_done()` or the virtual time `until`, or until a report arrives.

        A wait ends at `deadline` only while a fault has stopped a process: a wait that nothing can end is
        reported as a deadlock at once.
        """
        scheduled = self._scheduled[process]
        with self._mutex:
            self._check_runs(scheduled)
            scheduled.is_done, scheduled.until, scheduled.deadline, scheduled.state = is_done, until, deadline, _WAITING
            scheduled.has_news = True
            self._yield(scheduled)
        self._pause(scheduled)

    def begin(self, process: int, text: str) -> None:
        """Notes the beginning of an operation, at which a fault may occur."""
        with self._mutex:
            self._check_runs(self._scheduled[process])
            self._log(process, "begin", text)
            fault = self._faults.operation(process, text)
        if fault is not None:
            self.strike(process, fault)

    def send(self, buffer: memoryview, sender: int, receiver: int, tag: int) -> SimulatedMessage:
        """Sends bytes; a planned fault may strike here."""
        with self._mutex:
            self._check_runs(self._scheduled[sender])
            fault = self._faults.message(sender) if tag >= 0 else None
        if fault is not None:
            self.strike(sender, fault)
        with self._mutex:
            if tag >= 0:
                self._log(sender, "send", f"{len(buffer)} bytes to process {receiver} with tag {tag}")
            return self._network.send(buffer, sender, receiver, tag)

    def receive(self, buffer: memoryview, sender: int, receiver: int, tag: int) -> SimulatedMessage:
        """Adds memory for the next message of a sender."""
        message = SimulatedMessage(buffer)
        with self._mutex:
            self._check_runs(self._scheduled[receiver])
            self._network.channel(sender, receiver, tag).await_data(message)
            self._scheduled[sender].has_news = True
        return message

    def report(self, sender: int, receiver: int, call: Callable[[], None]) -> None:
        """Calls `call` when a report of one process reaches another process, which then ends its wait."""

        def arrive() -> None:
            call()
            self._scheduled[receiver].was_notified = True

        with self._mutex:
            self._network.report(sender, receiver, arrive)

    def notify(self, process: int) -> None:
        """Ends a wait of a process; another thread of it may call this."""
        with self._mutex:
            self._scheduled[process].was_notified = True

    def strike(self, process: int, fault: Fault) -> None:
        """Lets a fault occur in the calling process."""
        scheduled = self._scheduled[process]
        with self._mutex:
            self._log(process, "fault", fault.text)
            if fault.seconds is not None:
                scheduled.stalled_until = self.now + fault.seconds
        if fault.seconds is not None:
            self.wait(process, lambda: True)
            return
        with self._mutex:
            self.lost.append(process)
            self._network.lose(process)
            self.on_lost(process)
            scheduled.state = _PARKED  # until the end of the run: its `finally` blocks must not act before that
            self._yield(scheduled)
        self._pause(scheduled)

    def check_runs(self, process: int) -> None:
        """Raises Unwound in a process that has been ended, also where its program has caught that before."""
        with self._mutex:
            self._check_runs(self._scheduled[process])

    def log(self, process: int, kind: str, text: str) -> None:
        """Adds an event."""
        with self._mutex:
            if not self._is_stopping:
                self._log(process, kind, text)

    # --- with the mutex

    def _log(self, process: int, kind: str, text: str) -> None:
        self.events.append(Event(self.now, process, kind, text))

    def _check_runs(self, scheduled: _ScheduledProcess) -> None:
        if self._is_stopping or scheduled.state in (_PARKED, _ENDED):
            raise Unwound

    def _resume(self, scheduled: _ScheduledProcess) -> None:
        with self._mutex:
            if scheduled.may_run.locked():
                scheduled.may_run.release()

    def _pause(self, scheduled: _ScheduledProcess) -> None:
        """Waits, without the mutex, until the scheduler chooses the process."""
        scheduled.may_run.acquire()
        with self._mutex:
            self._check_runs(scheduled)

    def _yield(self, scheduled: _ScheduledProcess) -> None:
        if self._running == scheduled.index:
            try:
                self.on_yield(scheduled.index)
                self._choose()
            except BaseException as error:  # not of this process: `run` raises it
                self._error = error
                self.stop()

    def _choose(self) -> None:
        """Lets messages arrive until it chooses a process that can continue, or no process is left."""
        self._running = None
        while not self._is_stopping:
            arriving = self._network.deliverable()
            runnable = [scheduled for scheduled in self._alive if self._can_run(scheduled)]
            if not arriving and not runnable:
                if not self._advance_clock() and not self._report_deadlock():
                    self._end_run()
                    return
                continue
            self.now += _STEP_S
            arrivals = self._arrival_weight * arriving
            sums = list(accumulate((self._weights[scheduled.index] for scheduled in runnable), initial=arrivals))
            drawn = self._generator.random() * sums[-1]
            if drawn < arrivals:
                channel, text = self._network.deliver(int(drawn / self._arrival_weight))
                self._scheduled[channel.sender].has_news = self._scheduled[channel.receiver].has_news = True
                self._log(channel.receiver, "arrive", text)
                continue
            chosen = runnable[bisect(sums, drawn, 0, len(sums) - 1) - 1]
            self._running = chosen.index
            chosen.state = _RUNNING
            chosen.was_notified = False
            self._resume(chosen)
            return

    def _can_run(self, scheduled: _ScheduledProcess) -> bool:
        if scheduled.state != _WAITING:
            return scheduled.state == _READY
        if scheduled.stalled_until > self.now:
            return False
        if scheduled.has_news:
            scheduled.has_news = False
            scheduled.can_continue = scheduled.is_done()
        return (
            scheduled.can_continue
            or scheduled.was_notified
            or self.now >= scheduled.until
            or self.now >= scheduled.deadline
        )

    def _deadline_of(self, scheduled: _ScheduledProcess) -> float:
        is_stalled = any(each.stalled_until > self.now for each in self._scheduled if each.state == _WAITING)
        return scheduled.deadline if is_stalled else math.inf

    def _advance_clock(self) -> bool:
        """Moves the virtual time to the next end of a wait; returns False if no wait has an end."""
        waiting = [scheduled for scheduled in self._scheduled if scheduled.state == _WAITING]
        times = [scheduled.stalled_until for scheduled in waiting if scheduled.stalled_until > self.now]
        times += [
            min(scheduled.until, self._deadline_of(scheduled))
            for scheduled in waiting
            if scheduled.stalled_until <= self.now
        ]
        earliest = min(times, default=math.inf)
        if math.isinf(earliest):
            return False
        self.now = earliest
        return True

    def _report_deadlock(self) -> bool:
        """Ends the waits of all processes that wait for each other; returns whether there are any."""
        waiting = [
            scheduled
            for scheduled in self._scheduled
            if scheduled.state == _WAITING and scheduled.stalled_until <= self.now
        ]
        if not waiting or self._has_deadlock:
            return False
        self._has_deadlock = True
        for scheduled in waiting:
            self._log(scheduled.index, "deadlock", "waits, and no process can go on")
            scheduled.was_notified = True
        self.on_deadlock()
        return True
