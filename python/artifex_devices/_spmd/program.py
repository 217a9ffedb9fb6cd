# SPDX-License-Identifier: Apache-2.0
"""A program: participants, their rendezvous, and the error that their failures raise."""

from __future__ import annotations

import functools
import importlib
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from artifex_devices import _core
from artifex_devices._base.raised_exceptions import add_note
from artifex_devices._spmd.participant import PENDING, Meeting, Participant, Raised, Stopped, signature_text
from artifex_devices._spmd.process_groups import ProcessMap
from artifex_devices._spmd.watchdog import unwatch, watch
from artifex_devices.errors import CollectiveError

if TYPE_CHECKING:
    from artifex_devices._spmd.axes import Groups
    from artifex_devices._spmd.cross_process import CrossProcessOp


# Mistakes in bodies by the class and a part of the text of NumPy's error, and what to write.
_MISTAKES = (
    (
        ValueError,
        "read-only",
        "blocks of arguments and results of collectives are read-only ndarrays; expected a new array, as x = x + 1 "
        "makes, got a write to a block; copy it first: x = x.copy()",
    ),
    (
        AttributeError,
        "'numpy.ndarray' object has no attribute 'at'",
        "blocks are ndarrays, which have no x.at; expected a write to a copy; write x = x.copy(); x[i] = v",
    ),
)
_MAX_CACHED_MEETINGS = 64  # kinds of collectives of a program that is used again


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
        process_map: ProcessMap | None = None,
    ) -> None:
        self.axis_names = axis_names  # those that the bodies bind
        self.axis_sizes = axis_sizes
        self.process_map = process_map  # None where all participants run here
        self.device_names = device_names  # of the participants of this process
        self.operation = operation
        self.any_name = any_name  # whether every name means the only axis
        self.timeout_s = timeout_s
        self.rendezvous = _core.Rendezvous(len(device_names))
        self.arrive = self.rendezvous.arrive
        self.payloads: list[Any] = [None] * len(device_names)
        self.results: list[Any] = [PENDING] * len(device_names)
        self.stage = _core._new_stage(self.rendezvous, Participant, self.payloads, self.results, PENDING)
        self.groups: dict[Any, Groups] = {}  # cache of axes.py, by axis names
        self.meetings: dict[Hashable, Meeting] = {}
        self._signatures: dict[Hashable, int] = {}
        self._signature_lock = threading.RLock()  # hashing names of axes may call the user's code
        self._common: dict[int, tuple[Any, tuple[int, ...]]] = {}
        self.unmet: tuple[int, ...] | None = None  # processes that this one failed to meet
        self.traced_meeting = 0  # number in open traces of the meeting with other processes
        self._begin()

    def _begin(self) -> None:
        self.outcomes: list[Any] = [PENDING] * len(self.device_names)  # what bodies returned
        self.has_ended = False
        self.is_reported = False  # by the watchdog, as taking too long
        self.refused: CollectiveError | None = None  # why an executor cancelled the program
        self.wait: Callable[[Participant, FrameType], None] = _no_executor
        # What bodies raised, by position; made before, so that an error is kept also where memory is short.
        self.errors: list[BaseException | None] = [None] * len(self.device_names)
        self.started_s = time.monotonic()

    def open(self, rows: list[Any]) -> None:
        """Begins a call with new participants, the first one or one after a call without a failure.

        `rows` has the arguments of each body: a tuple of them, or the only one, if that is not a tuple.
        """
        self._begin()
        self.stage.open(self, self.outcomes, rows)

    @property
    def participants(self) -> list[Participant]:
        """The participants during a call; none before and after it."""
        participants: list[Participant] = self.stage.participants()
        return participants

    @property
    def is_reusable(self) -> bool:
        """Whether another call may use it after one without a failure: its caches are not too big."""
        return len(self.meetings) <= _MAX_CACHED_MEETINGS

    def meeting(
        self,
        signature: Hashable,
        groups: Groups,
        complete: Callable[[list[Any]], Sequence[Any]],
        op: CrossProcessOp | None = None,
    ) -> Meeting:
        """A kind of collective, cached; equal signatures give the same number.

        Args:
            signature: What all participants must agree on: a str, or a tuple that `signature_text` formats.
            groups: The groups that meet.
            complete: Computes one result for each member from their payloads; the last member to arrive calls it. All
                members raise its exception.
            op: What members need of those in other processes; None for their payloads unchanged.
        """
        known = self.meetings.get(signature)
        if known is not None and known.groups is groups:
            return known
        with self._signature_lock:
            number = self._signatures.setdefault(signature, len(self._signatures))
        numbers = [self.rendezvous.group(part) for part in groups.parts]
        made = self.meetings[signature] = Meeting(signature, number, groups, numbers, complete, op)
        return made

    def know(self, operation: str, axis_name: Any, x: Any, meeting: Meeting) -> None:
        """Registers this meeting for arrays like x, so that `_core._arrive` finds it."""
        groups, numbers = meeting.groups, meeting.numbers
        numbers = numbers if groups.is_whole else [numbers[group.part] for group in groups.of]
        self.stage.know(operation, axis_name, x, meeting, numbers, meeting.number)

    def text_of(self, meeting: Meeting) -> str:
        """The text of a collective in errors."""
        return next(signature_text(text) for text, number in self._known_signatures() if number == meeting.number)

    def _known_signatures(self) -> list[tuple[Hashable, int]]:
        with self._signature_lock:
            return list(self._signatures.items())  # formatted without the lock: that may call the user's code

    def keep_common(self, arrays: Sequence[Any], members: tuple[int, ...]) -> None:
        """Records that these participants, of several processes, got the same bits from a collective."""
        for array in arrays:
            self._common[id(array)] = (array, members)

    def forget_common(self) -> None:
        """Drops the records of `keep_common`, which hold arrays."""
        self._common.clear()

    def is_common(self, array: Any, members: tuple[int, ...]) -> bool:
        """Whether these participants got the bits of an array from one collective."""
        return self._common.get(id(array), (None, ()))[1] == members

    def complete(self, position: int, meeting: Meeting) -> None:
        """Computes the results of all members; the last one to arrive calls it."""
        payloads = self.payloads
        groups = meeting.groups
        group = groups.of[position]
        members = group.members
        made: list[Any]
        try:
            if not groups.is_whole:
                payloads = [payloads[member] for member in members]
            if group.part == groups.cross_part:
                made = list(_complete_across()(self, meeting, position, payloads))
            else:
                made = list(meeting.complete(payloads))
            if len(made) != len(members):
                raise ValueError(f"{self.text_of(meeting)}: {len(made)} results for {len(members)} participants")
            if _core._is_tracing():
                self._trace(position, meeting)
        except BaseException as error:
            made = [Raised(error)] * len(members)
        self.rendezvous.deliver(position, self.results, members, made)

    def _trace(self, position: int, meeting: Meeting) -> None:
        """Adds a collective that was completed to open traces."""
        members = [
            (name, participant.site) for name, participant in zip(self.device_names, self.participants, strict=True)
        ]
        process = -1 if self.process_map is None else self.process_map.me
        name = self.text_of(meeting)
        _core._trace_collective(self.rendezvous, position, name, self.operation, members, process, self.traced_meeting)
        self.traced_meeting = 0

    def outcome(self) -> list[Any]:
        """The results of the bodies.

        Raises:
            BaseException: The first exception of a body, with the table of all participants as a note.
            CollectiveError: Participants did not meet; its text has the table.
        """
        failure = self.rendezvous.failure
        if not failure:
            return self.outcomes
        if self.refused is not None:
            raise self.refused
        first = self._first_error()
        if first is not None and failure in ("body", "cancelled"):
            add_note(first, self._explain(failure))
            for kind, part, text in _MISTAKES:
                if isinstance(first, kind) and part in str(first):
                    add_note(first, f"{self.operation}: {text}")
            raise first
        raise CollectiveError(self._explain(failure))

    def close(self) -> None:
        """Releases the payloads and results of bodies; the participants cannot meet any more."""
        self.has_ended = True
        self.stage.close()
        self.outcomes = []
        self.errors = []
        self.wait = _no_executor

    def _first_error(self) -> BaseException | None:
        own = [error for error in self.errors if error is not None and not isinstance(error, Stopped)]
        interrupts = [error for error in own if isinstance(error, KeyboardInterrupt)]
        return next(iter(interrupts + own), None)  # Ctrl-C may be what the other bodies' errors come from

    def _explain(self, failure: str) -> str:
        reason = {
            "mismatch": "participants called different collectives; expected the same operation, shape, dtype and axes "
            "from each member of a group; make all of them take the same branch",
            "early exit": "a participant returned while others wait for it in a collective; expected each member to "
            "call it; make all of them call the same number of collectives",
            "deadlock": "participants wait for each other and none can go on; expected collectives in the same order "
            "everywhere; call them in one order",
            "deadline": f"a collective waited longer than collective_timeout_s = {self.timeout_s}; expected all "
            "members to arrive in time; raise config.collective_timeout_s, or see below which ones are running",
            "body": "a participant raised",
            "cancelled": "the call was interrupted",
        }[failure]
        return f"{self.operation}: {reason}\n{self.table()}"

    def table(self) -> str:
        """One line for each participant: device, state, collective, source line; none after the end."""
        standings = self.rendezvous.standings()
        signatures = {number: signature_text(signature) for signature, number in self._known_signatures()}
        rows = []
        for participant, (state, _, signature, count) in zip(self.participants, standings, strict=False):
            doing = "" if signature < 0 else f" {'in' if state == 'waiting' else 'after'} {signatures[signature]}"
            site = f" at {participant.site}" if doing and participant.site else ""
            rows.append(f"  {self.device_names[participant.position]}: {state}{doing}{site} (collective {count})")
        listed = rows if len(rows) <= 16 else [*rows[:15], f"  and {len(rows) - 15} more"]
        return "\n".join(["where each device stands:", *listed])


def _no_executor(me: Participant, frame: FrameType) -> None:
    raise AssertionError("a participant waits without an executor")


def run(program: Program, function: Callable[..., Any], rows: list[Any], executor: str) -> list[Any]:
    """Runs the function for each participant, in a copy of the caller's context, and returns the results in order.

    `rows` are those of Program.open; `executor` is "cooperative" or "threads". Raises what Program.outcome raises.
    """
    run_bodies = _executor(executor)
    try:
        program.open(rows)
        watch(program)
        run_bodies(program, function)
        return program.outcome()
    finally:
        unwatch(program)
        program.close()


@functools.cache
def _complete_across() -> Callable[..., Sequence[Any]]:
    from artifex_devices._spmd import cross_process  # late: programs of one process do not need it

    return cross_process.complete


@functools.cache
def _executor(name: str) -> Callable[[Program, Callable[..., Any]], None]:
    """The function of an executor that runs all bodies; its module is imported at the first use."""
    module = {"cooperative": "cooperative", "threads": "threaded"}[name]
    run_bodies: Callable[..., None] = importlib.import_module(f"artifex_devices._spmd.{module}").run
    return run_bodies
