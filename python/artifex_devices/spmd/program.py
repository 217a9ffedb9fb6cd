# SPDX-License-Identifier: Apache-2.0
"""A program: participants, the place where they meet, and what becomes of their failures."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from threading import get_ident
from types import FrameType
from typing import TYPE_CHECKING, Any

from artifex_devices import _core
from artifex_devices.errors import CollectiveError
from artifex_devices.remembering import remembered
from artifex_devices.spmd.participant import PENDING, Meeting, Participant, Raised, Stopped, _current, signature_text
from artifex_devices.spmd.watchdog import watched

if TYPE_CHECKING:
    from artifex_devices.spmd.axes import Groups

__all__ = ["Program", "run"]


@remembered(maxsize=256)
def _coordinates(sizes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(itertools.product(*(range(size) for size in sizes)))


class Program:
    """One call of a mapped function; its participants are numbered row-major over its axes."""

    def __init__(
        self,
        axis_names: tuple[Hashable, ...],
        axis_sizes: tuple[int, ...],
        device_names: Sequence[str],
        *,
        operation: str,
        any_name: bool = False,
        timeout_s: float | None = None,
    ) -> None:
        """Axes that are bound in the bodies, the name of each participant's device, and how long a wait may take."""
        self.axis_names = axis_names
        self.axis_sizes = axis_sizes
        self.coordinates = _coordinates(axis_sizes)
        self.device_names = device_names
        self.operation = operation
        self.any_name = any_name
        self.timeout_s = timeout_s
        self.rendezvous = _core.Rendezvous(len(device_names))
        self.participants = [Participant(self, i) for i in range(len(device_names))]
        self.payloads: list[Any] = [None] * len(device_names)
        self.results: list[Any] = [PENDING] * len(device_names)
        self.outcomes: list[Any] = [PENDING] * len(device_names)  # what bodies returned
        self.failed = False
        self.has_ended = False
        self.is_told = False  # that it takes too long, by the watchdog
        self.refused: CollectiveError | None = None  # an executor's own reason to cancel
        self.wait: Callable[[Participant, FrameType], None] = _no_executor
        self.started_s = time.monotonic()
        self.groups: dict[Any, Groups] = {}  # of axis names, kept by axes.py
        self.arrive = self.rendezvous.arrive
        self.meetings: dict[Hashable, Meeting] = {}
        self._signatures: dict[Hashable, int] = {}
        self._signature_lock = threading.Lock()

    def meeting(self, signature: Hashable, groups: Groups, complete: Callable[[list[Any]], Sequence[Any]]) -> Meeting:
        """A kind of collective: the same number for all who bring an equal signature, kept for the next of its kind.

        Args:
            signature: What all must agree on: a text, or a tuple that `signature_text` writes out.
            groups: Who meets whom.
            complete: Makes one result a member from the payloads in the order of the members; called once, by whoever
                comes last. What it raises is raised in all members.
        """
        known = self.meetings.get(signature)
        if known is not None and known.groups is groups:
            return known
        with self._signature_lock:
            number = self._signatures.setdefault(signature, len(self._signatures))
        numbers = [self.rendezvous.group(part) for part in groups.parts]
        made = self.meetings[signature] = Meeting(number, groups, numbers, complete)
        return made

    def text_of(self, meeting: Meeting) -> str:
        """What errors call a collective."""
        with self._signature_lock:
            return next(signature_text(text) for text, number in self._signatures.items() if number == meeting.number)

    def complete(self, position: int, meeting: Meeting) -> None:
        """Called by the last member to arrive: makes everybody's results."""
        results = self.results
        members = meeting.groups.of[position].members
        try:
            made = meeting.complete([self.payloads[member] for member in members])
            for member, result in zip(members, made, strict=True):
                results[member] = result
        except BaseException as error:
            raised = Raised(error)
            for member in members:
                results[member] = raised
        self.rendezvous.delivered(position)

    def outcome(self) -> list[Any]:
        """What the bodies returned.

        Raises:
            BaseException: The first exception of a body, the same object, with the table of all participants as a note.
            CollectiveError: Participants did not meet (a RuntimeError); its text has the table.
        """
        failure = self.rendezvous.failure
        if not failure:
            return self.outcomes
        if self.refused is not None:
            raise self.refused
        first = self._first_error()
        if first is not None and failure in ("body", "cancelled"):
            _add_note(first, self._explain(failure))
            raise first
        raise CollectiveError(self._explain(failure))

    def close(self) -> None:
        """Lets go of what bodies brought and returned; the participants cannot meet any more."""
        self.has_ended = True
        count = len(self.device_names)
        self.payloads, self.results, self.outcomes = [None] * count, [PENDING] * count, [PENDING] * count
        self.participants = []
        self.wait = _no_executor

    def _first_error(self) -> BaseException | None:
        own = [p.error for p in self.participants if p.error is not None and not isinstance(p.error, Stopped)]
        # What was raised while another error was on its way out is not the cause.
        return own[0] if own else None

    def _explain(self, failure: str) -> str:
        told = {
            "mismatch": "participants called different collectives; expected the same operation, shape, dtype and axes "
            "from each member of a group; make all of them take the same way",
            "early exit": "a participant returned while others wait for it in a collective; expected each member to "
            "call it; make all of them call as many",
            "deadlock": "participants wait for each other and nobody can go on; expected collectives in the same order "
            "everywhere; order them alike",
            "deadline": f"a collective waited longer than collective_timeout_s = {self.timeout_s}; expected all "
            "members to arrive in time; raise config.collective_timeout_s, or look at who is running below",
            "body": "a participant raised",
            "cancelled": "the call was interrupted",
        }[failure]
        return f"{self.operation}: {told}\n{self.table()}"

    def table(self) -> str:
        """Where each participant stood, a line each: device, state, collective, source line; none after the end."""
        standings = self.rendezvous.standings()
        with self._signature_lock:
            signatures = {number: signature_text(signature) for signature, number in self._signatures.items()}
        rows = []
        for participant, (state, _, signature, count) in zip(self.participants, standings, strict=False):
            doing = "" if signature < 0 else f" {'in' if state == 'waiting' else 'after'} {signatures[signature]}"
            site = f" at {participant.site}" if doing and participant.site else ""
            rows.append(f"  {self.device_names[participant.position]}: {state}{doing}{site} (collective {count})")
        shown = rows if len(rows) <= 16 else [*rows[:15], f"  and {len(rows) - 15} more"]
        return "\n".join(["where each device stands:", *shown])


def _no_executor(me: Participant, frame: FrameType) -> None:
    raise AssertionError("a participant waits without an executor")


def _add_note(error: BaseException, note: str) -> None:
    with contextlib.suppress(Exception):  # exceptions may refuse attributes: a frozen dataclass does
        if hasattr(error, "add_note"):
            error.add_note(note)
        else:  # Python 3.10
            error.__notes__ = [*getattr(error, "__notes__", []), note]


def run(program: Program, bodies: Sequence[Callable[[], Any]], executor: str) -> list[Any]:
    """Runs one body a participant.

    Args:
        program: Fresh, with as many participants as there are bodies.
        bodies: Called once each, in a copy of the caller's context.
        executor: "cooperative" or "threads".

    Returns:
        What the bodies returned, in order.

    Raises:
        ValueError: There is no such executor.
        BaseException: As Program.outcome.
    """
    engine = _engines.get(executor)
    if engine is None:
        engine = _engines[executor] = _engine(program, executor)
    try:
        with watched(program):
            engine(program, bodies)
        return program.outcome()
    finally:
        program.close()


_engines: dict[str, Callable[[Program, Sequence[Callable[[], Any]]], None]] = {}


def _engine(program: Program, executor: str) -> Callable[[Program, Sequence[Callable[[], Any]]], None]:
    if executor == "cooperative":
        from artifex_devices.spmd import cooperative

        return cooperative.run
    if executor == "threads":
        from artifex_devices.spmd import threaded

        return threaded.run
    raise ValueError(
        f"{program.operation}: there is no executor {executor!r}; expected 'auto', 'cooperative' or 'threads'; "
        "choose one of them"
    )


def enter(participant: Participant, body: Callable[[], Any]) -> None:
    """Runs one body to its end on the calling thread, in a context where `participant` is the current one."""
    participant.thread = get_ident()
    _current.set(participant)
    program = participant.program
    position = participant.position
    try:
        program.outcomes[position] = body()
    except BaseException as error:
        participant.error = error
        if isinstance(error, Stopped):
            program.rendezvous.finished(position)
        else:
            program.rendezvous.raised(position)
    else:
        program.rendezvous.finished(position)
