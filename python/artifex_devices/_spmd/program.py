# SPDX-License-Identifier: Apache-2.0
"""A program: participants, the place where they meet, and what becomes of their failures."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from artifex_devices import _core
from artifex_devices._base.clearable_cache import remembered
from artifex_devices._base.safe_repr import shown
from artifex_devices._spmd.participant import PENDING, Meeting, Participant, Raised, Stopped, signature_text
from artifex_devices._spmd.process_groups import Spread, coordinates_of
from artifex_devices._spmd.watchdog import unwatch, watch
from artifex_devices.errors import CollectiveError

if TYPE_CHECKING:
    from artifex_devices._spmd.axes import Groups
    from artifex_devices._spmd.cross_process import Crossing

__all__ = ["Program", "run"]


_KEPT_MEETINGS = 64  # kinds of collectives that a program is kept with
_coordinates = remembered(maxsize=256)(coordinates_of)


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
        spread: Spread | None = None,
    ) -> None:
        """Axes that are bound in the bodies, the name of each participant's device, and how long a wait may take.

        `spread` says who runs where, unless all participants run in this process.
        """
        self.axis_names = axis_names
        self.axis_sizes = axis_sizes
        self.spread = spread
        self.coordinates = _coordinates(axis_sizes) if spread is None else spread.coordinates
        self.device_names = device_names
        self.operation = operation
        self.any_name = any_name
        self.timeout_s = timeout_s
        self.rendezvous = _core.Rendezvous(len(device_names))
        self.arrive = self.rendezvous.arrive
        self.payloads: list[Any] = [None] * len(device_names)
        self.results: list[Any] = [PENDING] * len(device_names)
        self.stage = _core._new_stage(self.rendezvous, Participant, self.payloads, self.results, PENDING)
        self.groups: dict[Any, Groups] = {}  # of axis names, kept by axes.py
        self.meetings: dict[Hashable, Meeting] = {}
        self._signatures: dict[Hashable, int] = {}
        self._signature_lock = threading.RLock()  # names of axes may have methods of the user's
        self._common: dict[int, tuple[Any, tuple[int, ...]]] = {}
        self.lost: tuple[int, ...] | None = None  # processes that this one failed to meet
        self._begin()

    def _begin(self) -> None:
        self.outcomes: list[Any] = [PENDING] * len(self.device_names)  # what bodies returned
        self.has_ended = False
        self.is_told = False  # that it takes too long, by the watchdog
        self.refused: CollectiveError | None = None  # an executor's own reason to cancel
        self.wait: Callable[[Participant, FrameType], None] = _no_executor
        # What bodies raised, by position; made before, so that an error is kept also where memory is short.
        self.errors: list[BaseException | None] = [None] * len(self.device_names)
        self.started_s = time.monotonic()

    def open(self, rows: list[Any]) -> None:
        """Begins a call, the first or the next after one that met no failure: participants are made anew.

        Args:
            rows: The arguments of each body: a tuple of them, or the only one, if that is no tuple.
        """
        self._begin()
        self.stage.open(self, self.outcomes, rows)

    @property
    def participants(self) -> list[Participant]:
        """Who takes part in the call; none before its beginning and after its end."""
        participants: list[Participant] = self.stage.participants()
        return participants

    @property
    def is_reusable(self) -> bool:
        """Whether another call may use it, once one has ended well: what was met is kept, in bounds."""
        return self.spread is None and len(self.meetings) <= _KEPT_MEETINGS

    def meeting(
        self,
        signature: Hashable,
        groups: Groups,
        complete: Callable[[list[Any]], Sequence[Any]],
        crossing: Crossing | None = None,
    ) -> Meeting:
        """A kind of collective: the same number for all who bring an equal signature, kept for the next of its kind.

        Args:
            signature: What all must agree on: a text, or a tuple that `signature_text` writes out.
            groups: Who meets whom.
            complete: Makes one result a member from the payloads in the order of the members; called once, by whoever
                comes last. What it raises is raised in all members.
            crossing: What members need of those in other processes; None for their payloads as they are.
        """
        known = self.meetings.get(signature)
        if known is not None and known.groups is groups:
            return known
        with self._signature_lock:
            number = self._signatures.setdefault(signature, len(self._signatures))
        numbers = [self.rendezvous.group(part) for part in groups.parts]
        made = self.meetings[signature] = Meeting(signature, number, groups, numbers, complete, crossing)
        return made

    def know(self, operation: str, axis_name: Any, x: Any, meeting: Meeting) -> None:
        """From now on `_core._arrive` finds this meeting for arrays like x."""
        groups, numbers = meeting.groups, meeting.numbers
        numbers = numbers if groups.is_whole else [numbers[group.part] for group in groups.of]
        self.stage.know(operation, axis_name, x, meeting, numbers, meeting.number)

    def text_of(self, meeting: Meeting) -> str:
        """What errors call a collective."""
        return next(signature_text(text) for text, number in self._known_signatures() if number == meeting.number)

    def _known_signatures(self) -> list[tuple[Hashable, int]]:
        with self._signature_lock:
            return list(self._signatures.items())  # put into words elsewhere: that may run the user's code

    def keep_common(self, arrays: Sequence[Any], members: tuple[int, ...]) -> None:
        """Notes that these participants, of several processes, got these very bits from a collective."""
        for array in arrays:
            self._common[id(array)] = (array, members)

    def is_common(self, array: Any, members: tuple[int, ...]) -> bool:
        """Whether these participants have the bits of an array from one collective."""
        return self._common.get(id(array), (None, ()))[1] == members

    def complete(self, position: int, meeting: Meeting) -> None:
        """Called by the last member to arrive: makes everybody's results."""
        results = self.results
        group = meeting.groups.of[position]
        members = group.members
        try:
            if group.part == meeting.groups.crossing:
                from artifex_devices._spmd import cross_process as across

                results_here = across.complete(self, meeting, position, [self.payloads[member] for member in members])
                for member, result in zip(members, results_here, strict=True):
                    results[member] = result
            elif meeting.groups.is_whole:
                made = meeting.complete(self.payloads)
                if len(made) != len(members):
                    raise ValueError(f"{self.text_of(meeting)}: {len(made)} results for {len(members)} participants")
                results[:] = made
            else:
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
        self.stage.close()
        self.outcomes = []
        self.errors = []
        self.wait = _no_executor

    def _first_error(self) -> BaseException | None:
        own = [error for error in self.errors if error is not None and not isinstance(error, Stopped)]
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
        signatures = {number: signature_text(signature) for signature, number in self._known_signatures()}
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


def run(program: Program, function: Callable[..., Any], rows: list[Any], executor: str) -> list[Any]:
    """Runs the function once a participant.

    Args:
        program: Not in use, with as many participants as there are rows.
        function: Called in a copy of the caller's context each time.
        rows: As Program.open.
        executor: "cooperative" or "threads".

    Returns:
        What the function returned, in order.

    Raises:
        ValueError: There is no such executor.
        BaseException: As Program.outcome.
    """
    engine = _engines.get(executor)
    if engine is None:
        engine = _engines[executor] = _engine(program, executor)
    try:
        program.open(rows)
        watch(program)
        engine(program, function)
        return program.outcome()
    finally:
        unwatch(program)
        program.close()


_Engine = Callable[[Program, Callable[..., Any]], None]
_engines: dict[str, _Engine] = {}


def _engine(program: Program, executor: str) -> _Engine:
    if executor == "cooperative":
        from artifex_devices._spmd import cooperative

        return cooperative.run
    if executor == "threads":
        from artifex_devices._spmd import threaded

        return threaded.run
    raise ValueError(
        f"{program.operation}: there is no executor {shown(executor)}; expected 'auto', 'cooperative' or 'threads'; "
        "choose one of them"
    )
