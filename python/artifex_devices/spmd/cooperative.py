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

from artifex_devices.errors import CollectiveError
from artifex_devices.spmd.participant import PENDING, Participant
from artifex_devices.spmd.program import Program, enter

__all__ = ["run"]

# Packages known to call back into Python from pybind11 frames.
_FOREIGN = frozenset({"optree", "tensorstore", "torch", "jaxlib"})
_KEPT = 256  # idle greenlets kept by a thread


_Turn = tuple[Participant, Callable[[], Any]]


class _Seats(threading.local):
    """Greenlets of this thread that wait for their next participant."""

    def __init__(self) -> None:
        self.idle: list[_Seat] = []


_seats = _Seats()


def _serve() -> None:
    """Runs participants for as long as the greenlet lives.

    It has no parameters, as a greenlet keeps what it was begun with until it ends.
    """
    hub = greenlet.getcurrent().parent
    while True:
        turns: _Turns
        turn: _Turn | None
        turns, turn = hub.switch()
        hub = turns.hub
        try:
            while turn is not None:
                enter(*turn)
                turn = turns.follow(turn[0]) if turns.begins else None
        except BaseException as error:  # Ctrl-C between two participants is the hub's
            turns.interruption = error
        del turns, turn


_ENTER = enter.__code__
_is_foreign: dict[CodeType, bool] = {}


def _foreign_frame(frame: FrameType | None) -> FrameType | None:
    """The outermost frame of a body that belongs to a package whose C++ frames must be left in order."""
    found = None
    while frame is not None:
        code = frame.f_code
        if code is _ENTER:
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


class _Seat:
    """A greenlet, and the foreign frame in which its participant is suspended."""

    __slots__ = ("foreign", "greenlet", "order")

    def __init__(self) -> None:
        self.greenlet = greenlet.greenlet(_serve)
        self.greenlet.switch()  # until it waits for a participant
        self.foreign: FrameType | None = None
        self.order = -1  # of all foreign frames of the program, in the order in which they began; -1 without one


class _Turns:
    """Whose turn it is: participants that have not begun, then those that may go on.

    Whoever must wait gives the thread to the next one itself; the caller of `run`, the hub, has it when that one is not
    known.
    """

    __slots__ = (
        "batch",
        "begins",
        "context",
        "foreign_frames",
        "fresh",
        "hub",
        "idle",
        "interruption",
        "plain",
        "program",
        "seats",
        "suspended",
        "used",
        "watches_frames",
    )

    def __init__(self, program: Program, bodies: Sequence[Callable[[], Any]], idle: list[_Seat]) -> None:
        """`idle` has a seat for each of the program's participants at its end, and is taken from."""
        self.program = program
        self.hub = greenlet.getcurrent()
        self.context = contextvars.copy_context()
        self.fresh = zip(program.participants, bodies, strict=True)  # participants that have not begun
        self.begins = True  # whether there may be such
        self.idle = idle
        self.used: list[_Seat] = []
        self.seats: list[Any] = [None] * len(program.participants)  # by position
        self.suspended: dict[Participant, None] = {}  # in the order of their suspension
        self.batch: list[Participant] = []  # may go on, the last one first
        self.interruption: BaseException | None = None
        self.watches_frames = any(name in sys.modules for name in _FOREIGN)
        self.plain: CodeType | None = None  # waits in such a function, when `enter` called it, are in no foreign frame
        self.foreign_frames = 0

    def begin(self) -> bool:
        """Lets the next participant begin, in a seat of its own; False where there is none left."""
        if not self.program.failed:  # else the others need not begin
            for turn in self.fresh:
                seat = self.idle.pop()
                self.used.append(seat)
                self._seat(turn[0], seat)
                seat.greenlet.switch(self, turn)
                return True
        self.begins = False
        return False

    def follow(self, ended: Participant) -> _Turn | None:
        """Who begins in the seat of a participant that has ended; None where nobody is left."""
        if not self.program.failed:
            for turn in self.fresh:
                self._seat(turn[0], self.seats[ended.position])
                return turn
        self.begins = False
        return None

    def _seat(self, participant: Participant, seat: _Seat) -> None:
        self.seats[participant.position] = seat
        seat.foreign = None
        seat.order = -1
        seat.greenlet.gr_context = self.context.copy()

    def wait(self, me: Participant, frame: FrameType) -> None:
        """Called by a participant whose line is in `frame`: the others run until it may go on."""
        if self.watches_frames:
            back = frame.f_back
            is_plain = frame.f_code is self.plain and back is not None and back.f_code is _ENTER
            if not is_plain or self.foreign_frames:
                self._watch(me, frame)
            del back
        del frame
        self.suspended[me] = None
        try:
            if self.begins and self.begin():
                return
            if self.batch and not self.foreign_frames:
                self._resume(self.batch.pop())
            else:
                self.hub.switch()
        except BaseException:  # Ctrl-C before the switch
            self.suspended.pop(me, None)
            raise

    def _watch(self, me: Participant, frame: FrameType) -> None:
        seat: _Seat = self.seats[me.position]
        foreign = _foreign_frame(frame)
        if foreign is None and seat.foreign is None:
            self.plain = frame.f_code
        if foreign is not seat.foreign:
            seat.foreign = foreign
            seat.order = -1 if foreign is None else self.foreign_frames
            self.foreign_frames += 1

    def _resume(self, participant: Participant) -> None:
        switch = self.seats[participant.position].greenlet.switch
        del self.suspended[participant]  # no call between this and the switch: no Ctrl-C either
        switch()

    def run(self) -> None:
        """Runs participants until all have ended; called by the hub."""
        if not self.interruption:
            self.begin()
        results = self.program.results
        while self.suspended:
            self._end_if_interrupted()
            if self.program.rendezvous.failure:
                # Foreign frames end in the reverse order of their beginning, whatever else happens.
                batch = sorted(self.suspended, key=lambda p: self._order(p), reverse=True)
                batch.reverse()
            else:
                batch = [p for p in self.suspended if results[p.position] is not PENDING]
                assert batch, "nobody can go on and the rendezvous does not know"
            self.batch = batch
            while batch:
                if self.foreign_frames and not self._keeps_order(batch[-1]):
                    break
                self._resume(batch.pop())
        self._end_if_interrupted()

    def _end_if_interrupted(self) -> None:
        error, self.interruption = self.interruption, None
        if error is not None:
            raise error

    def _order(self, participant: Participant) -> int:
        order: int = self.seats[participant.position].order
        return order

    def _keeps_order(self, participant: Participant) -> bool:
        """Fails the program where a foreign frame could end before one that began later."""
        order = self._order(participant)
        if order < 0 or not any(self._order(other) > order for other in self.suspended):
            return True
        program = self.program
        program.refused = CollectiveError(
            f"{program.operation}: {program.device_names[participant.position]} waits at {participant.site} inside a "
            "function of a pybind11 extension (such as optree.tree_map) that others entered later and have not left; "
            "expected at most one collective in each such call, as participants share one thread; use "
            'executor="threads", or artifex_devices.tree.map, which has no such frame'
        )
        program.rendezvous.cancel()
        return False


def run(program: Program, bodies: Sequence[Callable[[], Any]]) -> None:
    """Runs all bodies to their ends; failures are in the program."""
    idle = _seats.idle
    while len(idle) < len(bodies):
        idle.append(_Seat())
    turns = _Turns(program, bodies, idle)
    program.wait = turns.wait
    try:
        turns.run()
    except BaseException:  # Ctrl-C between two participants
        program.rendezvous.cancel()
        program.failed = True
        turns.run()
        raise
    for seat in turns.used:
        seat.greenlet.gr_context = None  # it names the participant, and what the caller's variables hold
    idle.extend(turns.used)
    del idle[max(_KEPT, len(bodies)) :]
