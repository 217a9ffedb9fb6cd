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


class _Seats(threading.local):
    """Greenlets of this thread that wait for their next participant."""

    def __init__(self) -> None:
        self.idle: list[_Seat] = []


_seats = _Seats()


def _serve() -> None:
    """Runs one participant after the other for as long as the greenlet lives.

    It has no parameters, as a greenlet keeps what it was begun with until it ends.
    """
    hub = greenlet.getcurrent().parent
    while True:
        participant: Participant
        body: Callable[[], Any]
        hub, participant, body = hub.switch()
        enter(participant, body)
        participant.state = None
        del participant, body


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


class _Round:
    """The suspended participants of one program, in the order of their suspension."""

    def __init__(self, program: Program, hub: greenlet.greenlet) -> None:
        self.program = program
        self.hub = hub
        self.suspended: dict[Participant, None] = {}
        self.watches_frames = any(name in sys.modules for name in _FOREIGN)
        self.foreign_frames = 0

    def wait(self, me: Participant, frame: FrameType) -> None:
        """Called by a participant whose line is in `frame`: the others run until it may go on."""
        if self.watches_frames:
            seat: _Seat = me.state
            foreign = _foreign_frame(frame)
            if foreign is not seat.foreign:
                seat.foreign = foreign
                seat.order = -1 if foreign is None else self.foreign_frames
                self.foreign_frames += 1
        del frame
        self.suspended[me] = None
        self.hub.switch()

    def resume_all(self) -> None:
        """Resumes participants until all have ended."""
        results = self.program.results
        while self.suspended:
            if self.program.rendezvous.failure:
                # Foreign frames end in the reverse order of their beginning, whatever else happens.
                batch = sorted(self.suspended, key=lambda p: p.state.order, reverse=True)
            else:
                batch = [p for p in reversed(self.suspended) if results[p.position] is not PENDING]
                assert batch, "nobody can go on and the rendezvous does not know"
            for participant in batch:
                if self.foreign_frames and not self._keeps_order(participant):
                    break
                del self.suspended[participant]
                participant.state.greenlet.switch()

    def _keeps_order(self, participant: Participant) -> bool:
        """Fails the program where a foreign frame could end before one that began later."""
        order = participant.state.order
        if order < 0 or not any(other.state.order > order for other in self.suspended):
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
    hub = greenlet.getcurrent()
    idle = _seats.idle
    turns = _Round(program, hub)
    program.wait = turns.wait
    used: list[_Seat] = []
    context = contextvars.copy_context()
    try:
        for participant, body in zip(program.participants, bodies, strict=True):
            if program.failed:
                break  # the others need not begin
            seat = idle.pop() if idle else _Seat()
            used.append(seat)
            participant.state = seat
            seat.foreign = None
            seat.order = -1
            seat.greenlet.gr_context = context.copy()
            seat.greenlet.switch(hub, participant, body)
            if participant.error is not None:
                program.failed = True
        turns.resume_all()
    except BaseException:  # Ctrl-C between two participants
        program.rendezvous.cancel()
        turns.resume_all()
        raise
    for seat in used:
        seat.greenlet.gr_context = None  # it names the participant, and what the caller's variables hold
    if len(idle) < _KEPT:
        idle.extend(used)
