# SPDX-License-Identifier: Apache-2.0
"""All participants in one thread: each runs until it must wait, then the next one runs. For small blocks.

Switches happen in Python code only, with no frame of this package's extension on the stack. Other pybind11 extensions
have a list of their frames for each thread, last in, first out: participants that wait inside such a frame (for example
in a function that optree.tree_map calls) resume in the reverse order of their suspension, which preserves that list.
Where that is not possible, an error explains it.
"""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any

import greenlet
import numpy as np

from artifex_devices._base.checks import failure
from artifex_devices._core import internal
from artifex_devices._spmd.outcomes import Stopped
from artifex_devices._spmd.session import Participant, Session
from artifex_devices.errors import CollectiveError

# Packages known to call back into Python from pybind11 frames.
_FOREIGN = frozenset({"optree", "tensorstore", "torch", "jaxlib"})
_MAX_IDLE = 256  # idle greenlets of a thread
_STACK_BYTES = 4096  # of a suspended participant, and what Python allocates for it


# A greenlet that runs participants: the switch to it, and a list of one element, its executor.
_Fiber = tuple[Callable[[], Any], list[Any]]


_fibers = threading.local()  # the idle ones of this thread


def _new_fiber() -> _Fiber:
    made = greenlet.greenlet(internal.call_sleeping_at_exit)  # unwinding greenlet's frames at exit would abort
    box: list[Any] = [None]
    made.switch(_serve, box)  # returns when it waits for a participant
    return made.switch, box


def _serve(box: list[Any]) -> None:
    """Runs participants while the greenlet lives. A greenlet holds its arguments until it ends, hence the list."""
    rest: Callable[[], Any] = greenlet.getcurrent().parent.switch
    try:
        while True:
            rest()
            executor: CooperativeExecutor = box[0]
            assert executor.caller is not None
            rest = executor.caller
            try:
                _work(executor)
                rest = executor.scheduler.next()
            except BaseException as error:  # Ctrl-C between two participants goes to the caller
                executor.interruption = error
                greenlet.getcurrent().gr_context = None
            del executor
    finally:
        del rest  # tracebacks of bodies refer to this frame; see CooperativeExecutor.caller


def _work(executor: CooperativeExecutor) -> None:
    """Runs one participant after the other in the calling greenlet, until all have begun."""
    scheduler = executor.scheduler
    function = executor.function
    me = scheduler.enter()
    while me is not None:
        try:
            args = me.args
            outcome = function(*args) if type(args) is tuple else function(args)
        except BaseException as error:
            executor.raised(me, error)
            break  # no other participant begins
        else:
            me = scheduler.ended(me, outcome)


_WORK = _work.__code__
_is_foreign: dict[CodeType, bool] = {}


def _foreign_frame(frame: FrameType | None) -> FrameType | None:
    """Returns the outermost frame of a body in a package whose C++ frames must end in order."""
    found = None
    while frame is not None:
        code = frame.f_code
        if code is _WORK:
            break
        foreign = _is_foreign.get(code)
        if foreign is None:
            if len(_is_foreign) > 4096:
                _is_foreign.clear()
            foreign = _is_foreign[code] = frame.f_globals.get("__name__", "").partition(".")[0] in _FOREIGN
        if foreign:
            found = frame
        frame = frame.f_back
    return found


class CooperativeExecutor:
    """Runs participants in the scheduler's order: first new participants, then participants that may continue.

    A participant that must wait switches to the next participant. The greenlet of the caller of `run` runs when a
    participant has ended, when the next is not known, or when foreign frames must end in order.
    """

    def __init__(self, session: Session, function: Callable[..., Any]) -> None:
        self.scheduler = session.scheduler
        self.function = function
        # Switches to the caller. It is None after the run, because tracebacks must not refer to the greenlet of a
        # thread. If such garbage is the last reference and the thread ends while another thread collects it, greenlet
        # 3.5 frees it twice.
        self.caller: Callable[[], Any] | None = greenlet.getcurrent().switch
        self.interruption: BaseException | None = None
        self._session = session
        self._plain: CodeType | None = None  # a body whose waits, when `_work` called it, are in no foreign frame
        self._foreign: dict[int, FrameType] = {}  # by position: the foreign frame in which it is suspended
        self._orders: dict[int, int] = {}  # and its number in the order in which foreign frames began
        self._foreign_frames = 0
        self._batch: list[int] = []  # positions that may go on while foreign frames are in order, last one first

    def raised(self, me: Participant, error: BaseException) -> None:
        """Records an error of a body; no other participant begins."""
        self._session.outcomes.record_error(me.position, error)
        self.scheduler.raised(me, not isinstance(error, Stopped))

    def wait(self, me: Participant, frame: FrameType) -> None:
        """Lets other participants run until this participant, which calls it from `frame`, may continue."""
        back = frame.f_back
        is_plain = frame.f_code is self._plain and back is not None and back.f_code is _WORK
        # Checked at each wait: a body, or a function that it calls, may import a foreign package.
        if self._foreign_frames or not (is_plain or sys.modules.keys().isdisjoint(_FOREIGN)):
            self._watch(me, frame)
        del back, frame
        self.scheduler.suspend(me)()
        self.scheduler.resumed(me)

    def _watch(self, me: Participant, frame: FrameType) -> None:
        position = me.position
        foreign = _foreign_frame(frame)
        before = self._foreign.get(position)
        if foreign is None and before is None:
            self._plain = frame.f_code
            self.scheduler.plain(self._plain)
        if foreign is before:
            return
        if not self._foreign_frames:
            self._batch = self.scheduler.keep_order()
        if foreign is None:
            del self._foreign[position], self._orders[position]
        else:
            self._foreign[position] = foreign
            self._orders[position] = self._foreign_frames
        self._foreign_frames += 1

    def run(self) -> None:
        """Runs all bodies; records failures in the session."""
        session = self._session
        count = len(session.device_names)
        idle: list[_Fiber] = _fibers.__dict__.setdefault("idle", [])
        if len(idle) < count:
            # After a block of this size has been freed, glibc keeps as much free memory. It otherwise returns the
            # memory of suspended stacks to the system in each call.
            np.empty(count * _STACK_BYTES, np.uint8)
        while len(idle) < count:
            idle.append(_new_fiber())
        fibers = idle[-count:]
        del idle[-count:]
        self.scheduler.begin_turns(self, self.caller, contextvars.copy_context(), fibers)
        session.use(self, _WORK, tuple(_FOREIGN))
        try:
            self._run_all()
        except BaseException:  # Ctrl-C between two participants, or out of memory
            self._end()
            raise
        finally:
            self.caller = None
        self.scheduler.end_turns()
        idle.extend(fibers)
        del idle[max(_MAX_IDLE, count) :]

    def _end(self) -> None:
        """Ends all waiting participants; otherwise they would stay suspended forever."""
        self._session.rendezvous.cancel()
        self._run_all()

    def _run_all(self) -> None:
        """Runs participants until all have ended; the caller does it."""
        scheduler = self.scheduler
        while self.interruption is None:
            turn = scheduler.next()
            if turn is self.caller:
                break
            turn()
        while True:
            error, self.interruption = self.interruption, None
            if error is not None:
                raise error
            waiting = scheduler.suspended()
            if not waiting:
                return
            turn = scheduler.turn_of(self._chosen(waiting)) if self._foreign_frames else scheduler.next()
            assert turn is not self.caller, "no participant can go on, and the rendezvous has not noticed"
            turn()

    def _chosen(self, waiting: list[int]) -> int:
        """Returns the next participant, where foreign frames must end in the reverse order of their beginning."""
        while True:
            if self._session.rendezvous.failure:
                return max(reversed(waiting), key=self._order)
            batch = self._batch = [position for position in self._batch if position in waiting]
            if not batch:
                batch += filter(self._session.rendezvous.may_go, waiting)
                assert batch, "no participant can go on, and the rendezvous has not noticed"
            if self._keeps_order(batch[-1], waiting):
                return batch.pop()

    def _order(self, position: int) -> int:
        return self._orders.get(position, -1)

    def _keeps_order(self, position: int, waiting: Sequence[int]) -> bool:
        """Fails the session where a foreign frame could end before a frame that began later."""
        order = self._order(position)
        if order < 0 or not any(self._order(other) > order for other in waiting):
            return True
        session = self._session
        where = f"{session.device_names[position]} waits at {session.participants[position].site}"
        session.outcomes.record_refusal(
            failure(
                CollectiveError,
                session.operation,
                (
                    f"{where} inside a function of a pybind11 extension (such as optree.tree_map) that others entered "
                    "later and have not left"
                ),
                expected="at most one collective in each such call, as participants share one thread",
                fix='use executor="threads", or artifex_devices.tree.map, which has no such frame',
            )
        )
        session.rendezvous.cancel()
        return False
