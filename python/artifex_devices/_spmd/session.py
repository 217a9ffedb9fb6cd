# SPDX-License-Identifier: Apache-2.0
"""A session: the participants of a mapped function, their rendezvous, and their payloads and results.

Only its methods change a session.
"""

from __future__ import annotations

import contextvars
import sys
import threading
import time
from collections.abc import Hashable, Sequence
from threading import get_ident
from types import CodeType, FrameType
from typing import Any, Protocol

from artifex_devices import _core
from artifex_devices._base.raised_exceptions import copy_of
from artifex_devices._base.text import shortened
from artifex_devices._core import internal
from artifex_devices._spmd.axis_groups import AxisGroups
from artifex_devices._spmd.collective import Collective, CollectiveCache
from artifex_devices._spmd.outcomes import Outcomes, Stopped
from artifex_devices._spmd.process_groups import ProcessMap

_COLLECTIVE_MODULES = {"artifex_devices.lax", "artifex_devices._spmd.collectives"}  # frames above the user's call
_COMPLETE, _WAIT = 0, 1  # results of an arrival
_PENDING: Any = object()  # stands for a result that does not exist yet

_current: contextvars.ContextVar[Participant | None] = contextvars.ContextVar(
    "artifex_devices_participant", default=None
)
internal.use_participant_variable(_current)


class _Raised:
    """Stands for a result that is an exception."""

    __slots__ = ("error", "trace")

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.trace = error.__traceback__  # without frames of other members, where an error has no copies


class Executor(Protocol):
    """Runs the bodies of one call of a session."""

    def run(self) -> None:
        """Runs all bodies; records failures in the session."""

    def wait(self, me: Participant, frame: FrameType) -> None:
        """Waits until this participant, which calls a collective from `frame`, may go on."""


class OtherProcesses(Protocol):
    """The part of a session that spans processes."""

    process_map: ProcessMap

    def complete(self, me: Participant, collective: Collective, payloads: list[Any]) -> Sequence[Any]:
        """Computes the results of all participants of a cross-process collective in this process; `me` came last."""

    def take_traced_meeting(self) -> int:
        """Returns the number in open traces of the last meeting, once; 0 for none."""


class Participant(internal.Participant):
    """One run of the body, which a scheduler creates for one call: its position in the mesh, and its collectives.

    Attributes:
        session: Session of the call.
        position: Position of its device in the session's axes, row-major.
        thread: Identity of the only thread that may call collectives, once it runs.
        args: Arguments of its body: a tuple, or the only argument.
        has_ended: Whether the call has ended.
        code: Code in which the body called its last collective, or None.
        instruction: Instruction of that call in the code.
    """

    __slots__ = ()

    session: Session
    position: int
    thread: int
    args: Any
    has_ended: bool
    code: CodeType | None
    instruction: int

    @property
    def axis_names(self) -> tuple[Hashable, ...]:
        """Names of the axes that are bound in the body, in mesh order."""
        return self.session.axis_names

    @property
    def site(self) -> str:
        """The line of the body that called its last collective: "file.py:12", or "" before the first."""
        if self.code is None:
            return ""
        lines = self.code.co_lines()
        line = next((line for start, end, line in lines if start <= self.instruction < end), None)
        return f"{self.code.co_filename}:{line or self.code.co_firstlineno}"

    def join(self, collective: Collective, payload: Any) -> Any:
        """Meets other participants: each leaves a payload, the last one computes the results of all.

        Returns this participant's result. RuntimeError on another thread than the body's; Stopped where the session
        failed elsewhere.
        """
        if self.has_ended or get_ident() != self.thread or _current.get() is not self:
            raise RuntimeError(
                f"{collective.text}: a collective was called on a thread that a participant started, or "
                "after its body's end; expected the thread of the body while it runs, got "
                f"{threading.current_thread().name}; call it in the body and pass the result to the thread"
            )
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__") in _COLLECTIVE_MODULES:
            frame = frame.f_back
        self.code = frame.f_code
        self.instruction = frame.f_lasti
        self.session.meet(self, collective, payload, frame)
        return self.result()

    def result(self) -> Any:
        """Returns the result of the last collective, once; raises what the collective raised."""
        result = self.session.take_result(self.position)
        if result is _PENDING:
            raise Stopped
        if type(result) is _Raised:
            raise BaseException.with_traceback(result.error, result.trace)
        return result


class Session:
    """The calls of one mapped function, one at a time; its participants are numbered row-major over its axes."""

    def __init__(
        self,
        axis_names: tuple[Hashable, ...],
        axis_sizes: tuple[int, ...],
        device_names: Sequence[str],
        *,
        operation: str,
        any_name: bool = False,
        groups: dict[Any, AxisGroups] | None = None,
        others: OtherProcesses | None = None,
    ) -> None:
        self.axis_names = axis_names  # axes that the bodies bind
        self.axis_sizes = axis_sizes
        self.device_names = device_names  # of the participants of this process
        self.operation = operation
        self.any_name = any_name  # whether every name means the only axis
        self.groups = {} if groups is None else groups  # cache of axes.py, by axis names
        self.others = others  # None where all participants run here
        self.rendezvous = _core.Rendezvous(len(device_names))
        self.collectives = CollectiveCache(self.rendezvous)
        self._arrive = self.rendezvous.arrive
        self._payloads: list[Any] = [None] * len(device_names)
        self._results: list[Any] = [_PENDING] * len(device_names)
        self.scheduler = internal.new_scheduler(self.rendezvous, Participant, self._payloads, self._results, _PENDING)
        self._begin(None)

    def _begin(self, timeout_s: float | None) -> None:
        self.timeout_s = timeout_s
        self.has_ended = False
        self._executor: Executor | None = None
        self.outcomes = Outcomes(len(self.device_names))
        self._is_reported = False
        self._started_s = time.monotonic()

    def open(self, rows: list[Any], timeout_s: float | None) -> None:
        """Begins a call with new participants, the first one or one after a call without a failure.

        `rows` has the arguments of each body: a tuple, or the only argument if that is not a tuple.
        """
        self._begin(timeout_s)
        self.scheduler.open(self, self.outcomes.returned, rows)

    def use(self, executor: Executor, root: CodeType | None = None, foreign: tuple[str, ...] = ()) -> None:
        """Makes participants wait by an executor, unless the scheduler can suspend them itself.

        These are bodies that the code `root` calls while no package of `foreign` is imported.
        """
        self._executor = executor
        self.scheduler.wait_by(executor.wait, root, foreign)

    def close(self) -> None:
        """Releases the payloads and results of bodies; the participants can run no further collectives."""
        self.has_ended = True
        self.scheduler.close()
        self.outcomes.close()
        self._executor = None

    @property
    def participants(self) -> list[Participant]:
        """The participants during a call; none before and after it."""
        participants: list[Participant] = self.scheduler.participants()
        return participants

    @property
    def is_reusable(self) -> bool:
        """Whether another call may use it after one without a failure: its caches are not too big."""
        return self.collectives.is_small

    def add_groups(self, key: Any, groups: AxisGroups) -> AxisGroups:
        """Caches the groups over some axes, and returns them."""
        self.groups[key] = groups
        return groups

    def know(
        self, operation: str, axis_name: Any, x: Any, argument: object, options: tuple[Any, ...], collective: Collective
    ) -> None:
        """Registers a collective for arrays like x and these arguments, which `internal.arrive` looks up.

        `argument` is what scheduler.prepare returned, or None; `options` are the other arguments.
        """
        groups, numbers, op = collective.groups, collective.numbers, collective.op
        reduction = op.reduction if op is not None and op.is_total and groups.across is None else ""
        numbers = numbers if groups.is_whole else [numbers[each.part] for each in groups.of]
        self.scheduler.know(
            operation, axis_name, x, argument, options, collective, numbers, collective.number, reduction
        )

    def meet(self, me: Participant, collective: Collective, payload: Any, frame: FrameType) -> None:
        """Leaves a payload, and returns when there is a result or the session has failed."""
        position = me.position
        self.scheduler.resumed(me)  # the body may have caught a Ctrl-C that came before it took its last result
        self._results[position] = _PENDING
        self._payloads[position] = payload
        arrival = self._arrive(position, collective.numbers[collective.groups.of[position].part], collective.number)
        if arrival == _COMPLETE:
            self.complete(position, collective)
        elif arrival == _WAIT:
            assert self._executor is not None
            self._executor.wait(me, frame)

    def complete(self, position: int, collective: Collective) -> None:
        """Computes the results of all members; the last one to arrive calls it."""
        payloads = self._payloads
        groups = collective.groups
        group = groups.of[position]
        members = group.members
        made: list[Any]
        try:
            if not groups.is_whole:
                payloads = [payloads[member] for member in members]
            if group.part == groups.cross_part:
                assert self.others is not None
                made = list(self.others.complete(self.participants[position], collective, payloads))
            else:
                made = list(collective.complete(payloads))
            if len(made) != len(members):
                raise ValueError(f"{collective.text}: {len(made)} results for {len(members)} participants")
            if internal.is_tracing():
                self._trace(position, collective)
        except BaseException as error:
            made = [_Raised(copy_of(error) if number else error) for number in range(len(members))]
        self.rendezvous.deliver(position, self._results, members, made)

    def take_result(self, position: int) -> Any:
        """Returns the result of a participant's last collective, once."""
        result = self._results[position]
        if result is not _PENDING:
            self._payloads[position] = None
            self._results[position] = _PENDING
        return result

    def becomes_late(self) -> bool:
        """Returns whether the call is more than a second over its deadline; true once in a call."""
        late_s = time.monotonic() - self._started_s - (self.timeout_s or float("inf"))
        is_new = late_s > 1.0 and not self._is_reported
        self._is_reported |= is_new
        return is_new

    def outcome(self) -> list[Any]:
        """Returns the results of the bodies; raises as Outcomes.settle."""
        return self.outcomes.settle(self.operation, self.rendezvous.failure, self.timeout_s, self.table)

    def table(self) -> str:
        """Formats one line for each participant: device, state, collective, source line; none after the end."""
        standings = self.rendezvous.standings()
        signatures = self.collectives.texts()
        rows = []
        for participant, (state, _, signature, count) in zip(self.participants, standings, strict=False):
            doing = "" if signature < 0 else f" {'in' if state == 'waiting' else 'after'} {signatures[signature]}"
            site = f" at {participant.site}" if doing and participant.site else ""
            rows.append(f"  {self.device_names[participant.position]}: {state}{doing}{site} (collective {count})")
        return "\n".join(["where each device stands:", *shortened(rows, 16, "  and {} more")])

    def _trace(self, position: int, collective: Collective) -> None:
        """Adds a collective that was completed to open traces."""
        participants = self.participants
        members = [
            (self.device_names[member], participants[member].site) for member in collective.groups.of[position].members
        ]
        process, meeting = (
            (-1, 0) if self.others is None else (self.others.process_map.me, self.others.take_traced_meeting())
        )
        internal.trace_collective(self.rendezvous, position, collective.text, self.operation, members, process, meeting)
