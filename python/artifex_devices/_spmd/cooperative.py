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

from artifex_devices import _core
from artifex_devices._spmd.participant import PENDING, Participant, Stopped
from artifex_devices._spmd.program import Program
from artifex_devices.errors import CollectiveError

# Packages known to call back into Python from pybind11 frames.
_FOREIGN = frozenset({"optree", "tensorstore", "torch", "jaxlib"})
_MAX_IDLE = 256  # idle greenlets of a thread


# A greenlet that waits for participants: the switch to it, and a list of one element, its _Turns.
_Seat = tuple[Callable[[], Any], list[Any]]


_seats = threading.local()  # the idle greenlets of this thread


def _new_seat() -> _Seat:
    made = greenlet.greenlet(_core._call_sleeping_at_exit)  # unwinding greenlet's frames at exit would abort
    box: list[Any] = [None]
    made.switch(_serve, box)  # returns when it waits for a participant
    return made.switch, box


def _serve(box: list[Any]) -> None:
    """Runs participants while the greenlet lives. A greenlet holds its arguments until it ends, hence the list."""
    rest: Callable[[], Any] = greenlet.getcurrent().parent.switch
    try:
        while True:
            rest()
            turns: _Turns = box[0]
            assert turns.hub is not None
            rest = turns.hub  # another seat would be faster, but idle seats would refer to each other
            try:
                _work(turns)
            except BaseException as error:  # Ctrl-C between two participants goes to the hub
                turns.interruption = error
                greenlet.getcurrent().gr_context = None
            del turns
    finally:
        del rest  # tracebacks of bodies refer to this frame; see _Turns.hub


def _work(turns: _Turns) -> None:
    """Runs one participant after the other in the calling greenlet, until all have begun."""
    stage = turns.stage
    function = turns.function
    me = stage.enter()
    while me is not None:
        try:
            args = me.args
            outcome = function(*args) if type(args) is tuple else function(args)
        except BaseException as error:
            turns.raised(me, error)
            break  # no other participant begins
        else:
            me = stage.ended(me, outcome)


_WORK = _work.__code__
_is_foreign: dict[CodeType, bool] = {}


def _foreign_frame(frame: FrameType | None) -> FrameType | None:
    """The outermost frame of a body in a package whose C++ frames must end in order."""
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


class _Turns:
    """The order in which participants run: those that have not begun, then those that may go on.

    A participant that must wait switches to the next one, which the stage knows. The caller of `run`, the hub, runs
    when one has ended, when the next one is not known, or when foreign frames must end in order.
    """

    def __init__(self, program: Program, function: Callable[..., Any]) -> None:
        self.program = program
        self.stage = program.stage
        self.function = function
        # None after the run: tracebacks must not refer to the greenlet of a thread. Where such garbage is the last
        # reference and the thread ends while another one collects it, greenlet 3.5 frees it twice.
        self.hub: Callable[[], Any] | None = greenlet.getcurrent().switch
        self.interruption: BaseException | None = None
        self.plain: CodeType | None = None  # a body whose waits, when `_work` called it, are in no foreign frame
        self.foreign: dict[int, FrameType] = {}  # by position: the foreign frame in which it is suspended
        self.orders: dict[int, int] = {}  # and its number in the order in which foreign frames began
        self.foreign_frames = 0
        self.batch: list[int] = []  # positions that may go on while foreign frames are in order, last one first

    def raised(self, me: Participant, error: BaseException) -> None:
        """Records an error of a body; no other participant begins."""
        if not self.program.has_ended:
            self.program.errors[me.position] = error
        self.stage.raised(me, not isinstance(error, Stopped))

    def wait(self, me: Participant, frame: FrameType) -> None:
        """Lets the others run until this participant, which calls it from `frame`, may go on."""
        back = frame.f_back
        is_plain = frame.f_code is self.plain and back is not None and back.f_code is _WORK
        # Asked at each wait: a body, or what it calls, may import a foreign package.
        if self.foreign_frames or not (is_plain or sys.modules.keys().isdisjoint(_FOREIGN)):
            self._watch(me, frame)
        del back, frame
        self.stage.suspend(me)()
        self.stage.resumed(me)

    def _watch(self, me: Participant, frame: FrameType) -> None:
        position = me.position
        foreign = _foreign_frame(frame)
        before = self.foreign.get(position)
        if foreign is None and before is None:
            self.plain = frame.f_code
            self.stage.plain(self.plain)
        if foreign is before:
            return
        if not self.foreign_frames:
            self.batch = self.stage.keep_order()
        if foreign is None:
            del self.foreign[position], self.orders[position]
        else:
            self.foreign[position] = foreign
            self.orders[position] = self.foreign_frames
        self.foreign_frames += 1

    def run(self) -> None:
        """Runs participants until all have ended; the hub calls it."""
        stage = self.stage
        while self.interruption is None:
            turn = stage.next()
            if turn is self.hub:
                break
            turn()
        while True:
            error, self.interruption = self.interruption, None
            if error is not None:
                raise error
            waiting = stage.suspended()
            if not waiting:
                return
            turn = stage.turn_of(self._chosen(waiting)) if self.foreign_frames else stage.next()
            assert turn is not self.hub, "no participant can go on, and the rendezvous has not noticed"
            turn()

    def _chosen(self, waiting: list[int]) -> int:
        """The next participant, where foreign frames must end in the reverse order of their beginning."""
        while True:
            if self.program.rendezvous.failure:
                return max(reversed(waiting), key=self._order)
            batch = self.batch = [position for position in self.batch if position in waiting]
            if not batch:
                results = self.program.results
                batch += [position for position in waiting if results[position] is not PENDING]
                assert batch, "no participant can go on, and the rendezvous has not noticed"
            if self._keeps_order(batch[-1], waiting):
                return batch.pop()

    def _order(self, position: int) -> int:
        return self.orders.get(position, -1)

    def _keeps_order(self, position: int, waiting: Sequence[int]) -> bool:
        """Fails the program where a foreign frame could end before one that began later."""
        order = self._order(position)
        if order < 0 or not any(self._order(other) > order for other in waiting):
            return True
        program = self.program
        program.refused = CollectiveError(
            f"{program.operation}: {program.device_names[position]} waits at {program.participants[position].site} "
            "inside a function of a pybind11 extension (such as optree.tree_map) that others entered later and have "
            "not left; expected at most one collective in each such call, as participants share one thread; use "
            'executor="threads", or artifex_devices.tree.map, which has no such frame'
        )
        program.rendezvous.cancel()
        return False


def _end(turns: _Turns) -> None:
    """Ends all waiting participants, which would stay suspended forever; repeats that until there is memory."""
    while True:
        try:
            turns.program.rendezvous.cancel()
            turns.run()
            return
        except MemoryError:
            continue


def run(program: Program, function: Callable[..., Any]) -> None:
    """Runs all bodies; records failures in the program."""
    count = len(program.device_names)
    idle: list[_Seat] = _seats.__dict__.setdefault("idle", [])
    while len(idle) < count:
        idle.append(_new_seat())
    seats = idle[-count:]
    del idle[-count:]
    turns = _Turns(program, function)
    stage = program.stage
    stage.begin_turns(turns, turns.hub, contextvars.copy_context(), seats)
    program.wait = turns.wait
    stage.wait_by(turns.wait, _WORK, tuple(_FOREIGN))
    try:
        turns.run()
    except BaseException:  # Ctrl-C between two participants, or out of memory
        _end(turns)
        raise
    finally:
        turns.hub = None
    stage.end_turns()
    idle.extend(seats)
    del idle[max(_MAX_IDLE, count) :]
