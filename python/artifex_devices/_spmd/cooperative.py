# SPDX-License-Identifier: Apache-2.0
"""All participants in one thread: each runs until it must wait, then the next one does. For small blocks.

Switches happen in Python code only, with no frame of our extension on the stack. Other extensions made with pybind11
keep a list of their frames a thread, last in, first out: participants that wait inside such a frame (say in a function
that optree.tree_map calls) are resumed in the reverse order of their suspension, which keeps that list in order. Where
that cannot be done, an error says so.
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

__all__ = ["run"]

# Packages known to call back into Python from pybind11 frames.
_FOREIGN = frozenset({"optree", "tensorstore", "torch", "jaxlib"})
_KEPT = 256  # idle greenlets kept by a thread


# A greenlet that waits for participants: the switch to it, and a list of one place for the turns that it takes part in.
_Seat = tuple[Callable[[], Any], list[Any]]


class _Seats(threading.local):
    """Greenlets of this thread that wait for their next participant."""

    def __init__(self) -> None:
        self.idle: list[_Seat] = []


_seats = _Seats()


def _new_seat() -> _Seat:
    made = greenlet.greenlet(_core._under_our_frame)  # greenlet's frames end the process when they are unwound at exit
    box: list[Any] = [None]
    made.switch(_serve, box)  # until it waits for a participant
    return made.switch, box


def _serve(box: list[Any]) -> None:
    """Runs participants for as long as the greenlet lives.

    Its only parameter is a box, as a greenlet keeps what it was begun with until it ends.
    """
    rest: Callable[[], Any] = greenlet.getcurrent().parent.switch
    try:
        while True:
            rest()
            turns: _Turns = box[0]
            assert turns.hub is not None
            rest = turns.hub  # to another seat would be quicker, but then idle seats would keep each other
            try:
                _work(turns)
            except BaseException as error:  # Ctrl-C between two participants is the hub's
                turns.interruption = error
                greenlet.getcurrent().gr_context = None
            del turns
    finally:
        del rest  # tracebacks of bodies keep this frame; see _Turns.hub


def _work(turns: _Turns) -> None:
    """Runs one participant after the other in the seat of the calling greenlet, until none is left to begin."""
    stage = turns.stage
    function = turns.function
    me = stage.enter()
    while me is not None:
        try:
            args = me.args
            outcome = function(*args) if type(args) is tuple else function(args)
        except BaseException as error:
            turns.raised(me, error)
            break  # nobody begins any more
        else:
            me = stage.ended(me, outcome)


_WORK = _work.__code__
_is_foreign: dict[CodeType, bool] = {}


def _foreign_frame(frame: FrameType | None) -> FrameType | None:
    """The outermost frame of a body that belongs to a package whose C++ frames must be left in order."""
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
    """Whose turn it is: participants that have not begun, then those that may go on.

    Whoever must wait gives the thread to the next one itself, whom the stage knows; the caller of `run`, the hub, has
    it when one has ended, when the next one is not known, or when foreign frames must be left in order.
    """

    __slots__ = (
        "batch",
        "foreign",
        "foreign_frames",
        "function",
        "hub",
        "interruption",
        "orders",
        "plain",
        "program",
        "stage",
    )

    def __init__(self, program: Program, function: Callable[..., Any]) -> None:
        """Of one call; made by its hub."""
        self.program = program
        self.stage = program.stage
        self.function = function
        # None after the run. What a traceback keeps must not name a thread's own greenlet: where such garbage is the
        # last to name it, and the thread ends while another one collects, greenlet 3.5 lets go of it once too often.
        self.hub: Callable[[], Any] | None = greenlet.getcurrent().switch
        self.interruption: BaseException | None = None
        self.plain: CodeType | None = None  # waits in such a function, when `_work` called it, are in no foreign frame
        self.foreign: dict[int, FrameType] = {}  # by position: the foreign frame in which it is suspended
        self.orders: dict[int, int] = {}  # and its number, of all foreign frames in the order in which they began
        self.foreign_frames = 0
        self.batch: list[int] = []  # of those who may go on while the order of foreign frames is kept; the last first

    def raised(self, me: Participant, error: BaseException) -> None:
        """Its body raised: nobody begins any more."""
        if not self.program.has_ended:
            self.program.errors[me.position] = error
        self.stage.raised(me, not isinstance(error, Stopped))

    def wait(self, me: Participant, frame: FrameType) -> None:
        """Called by a participant whose line is in `frame`: the others run until it may go on."""
        del frame
        self.stage.suspend(me)()
        self.stage.resumed(me)

    def wait_watching(self, me: Participant, frame: FrameType) -> None:
        """The same where there may be foreign frames."""
        back = frame.f_back
        is_plain = frame.f_code is self.plain and back is not None and back.f_code is _WORK
        if not is_plain or self.foreign_frames:
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
        """Runs participants until all have ended; called by the hub."""
        stage = self.stage
        while self.interruption is None:
            turn = stage.next()
            if turn is self.hub:
                break
            turn()
        while True:
            self._end_if_interrupted()
            waiting = stage.suspended()
            if not waiting:
                return
            turn = stage.turn_of(self._chosen(waiting)) if self.foreign_frames else stage.next()
            assert turn is not self.hub, "nobody can go on and the rendezvous does not know"
            turn()

    def _chosen(self, waiting: list[int]) -> int:
        """Who goes on, where foreign frames must be left in the reverse order of their beginning."""
        while True:
            if self.program.rendezvous.failure:
                return max(reversed(waiting), key=self._order)
            batch = self.batch = [position for position in self.batch if position in waiting]
            if not batch:
                results = self.program.results
                batch += [position for position in waiting if results[position] is not PENDING]
                assert batch, "nobody can go on and the rendezvous does not know"
            if self._keeps_order(batch[-1], waiting):
                return batch.pop()

    def _end_if_interrupted(self) -> None:
        error, self.interruption = self.interruption, None
        if error is not None:
            raise error

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
    """Runs all who wait to their ends, be memory as short as it may: else they would be suspended for good."""
    while True:
        try:
            turns.program.rendezvous.cancel()
            turns.run()
            return
        except MemoryError:
            continue


def run(program: Program, function: Callable[..., Any]) -> None:
    """Runs all bodies to their ends; failures are in the program."""
    count = len(program.device_names)
    idle = _seats.idle
    while len(idle) < count:
        idle.append(_new_seat())
    seats = idle[-count:]
    del idle[-count:]
    turns = _Turns(program, function)
    stage = program.stage
    stage.begin_turns(turns, turns.hub, contextvars.copy_context(), seats)
    if sys.modules.keys().isdisjoint(_FOREIGN):
        program.wait = turns.wait
    else:
        program.wait = turns.wait_watching
        stage.wait_by(turns.wait_watching, _WORK)
    try:
        turns.run()
    except BaseException:  # Ctrl-C between two participants, or memory was short
        _end(turns)
        raise
    finally:
        turns.hub = None
    stage.end_turns()
    idle.extend(seats)
    del idle[max(_KEPT, count) :]
