# SPDX-License-Identifier: Apache-2.0
"""Participants: one for each device, which the collectives find through a context variable."""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from threading import get_ident
from types import CodeType
from typing import TYPE_CHECKING, Any

from artifex_devices import _core
from artifex_devices._base.safe_repr import safe_repr

if TYPE_CHECKING:
    from artifex_devices._spmd.axes import Groups
    from artifex_devices._spmd.cross_process import CrossProcessOp
    from artifex_devices._spmd.program import Program

_COLLECTIVE_MODULES = {"artifex_devices.lax", "artifex_devices._spmd.collectives"}  # frames above the user's call
_COMPLETE, _WAIT = 0, 1  # results of an arrival

_current: contextvars.ContextVar[Participant | None] = contextvars.ContextVar(
    "artifex_devices_participant", default=None
)
_core._use_participant_variable(_current)

# Stands for a result that does not exist yet.
PENDING: Any = object()


class Stopped(BaseException):
    """Raised in participants whose program failed elsewhere; not an Exception, so that bodies do not catch it."""


class Raised:
    """Stands for a result that is an exception."""

    __slots__ = ("error", "trace")

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.trace = error.__traceback__  # every member raises it, without the frames of others


@dataclass(frozen=True, slots=True, eq=False)
class Meeting:
    """One kind of collective in one program, cached for the next call of it."""

    signature: Hashable
    number: int
    groups: Groups
    numbers: list[int]  # of the parts of `groups` in the rendezvous
    complete: Callable[[list[Any]], Sequence[Any]]  # computes the results
    op: CrossProcessOp | None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else safe_repr(value)


def signature_text(signature: Hashable) -> str:
    """A str unchanged; "psum float32(8, 4) over x" for (operation, axes, options, dtype, shape, dtype, shape, ...)."""
    if not isinstance(signature, tuple):
        return _text(signature)
    operation, axes, options, *leaves = signature
    over = ", ".join(map(_text, axes)) if isinstance(axes, tuple) else _text(axes)
    pairs = list(zip(leaves[::2], leaves[1::2], strict=True))
    arrays = ", ".join(f"{dtype}{shape}" for dtype, shape in pairs[:3]) + (", ..." if len(pairs) > 3 else "")
    chosen = "".join(f" {name}={_text(value)}" for name, value in options)
    return f"{operation} {arrays} over {over}{chosen}"


class Participant(_core._Participant):
    """One run of the body, created by a stage for one call: its position in the mesh, and how it meets the others."""

    __slots__ = ()

    program: Program
    position: int  # of its device in the program's axes, row-major
    thread: int  # the only one that may call collectives, once it runs
    args: Any  # of its body: a tuple, or the only argument
    has_ended: bool  # the call
    _code: CodeType | None  # where the body called its last collective
    _instruction: int

    @property
    def axis_names(self) -> tuple[Hashable, ...]:
        """Names of the axes that are bound in the body, in mesh order."""
        return self.program.axis_names

    @property
    def site(self) -> str:
        """The line of the body that called its last collective: "file.py:12", or "" before the first."""
        if self._code is None:
            return ""
        lines = self._code.co_lines()
        line = next((line for start, end, line in lines if start <= self._instruction < end), None)
        return f"{self._code.co_filename}:{line or self._code.co_firstlineno}"

    def join(self, meeting: Meeting, payload: Any) -> Any:
        """Meets other participants: each leaves a payload, the last one computes the results of all.

        Returns this participant's result. RuntimeError on another thread than the body's; Stopped where the program
        failed elsewhere.
        """
        program = self.program
        if self.has_ended or get_ident() != self.thread or _current.get() is not self:
            raise RuntimeError(
                f"{program.text_of(meeting)}: a collective was called on a thread that a participant started, or "
                "after its body's end; expected the thread of the body while it runs, got "
                f"{threading.current_thread().name}; call it in the body and pass the result to the thread"
            )
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__") in _COLLECTIVE_MODULES:
            frame = frame.f_back
        self._code = frame.f_code
        self._instruction = frame.f_lasti
        position = self.position
        program.stage.resumed(self)  # the body may have caught a Ctrl-C that came before it took its last result
        program.results[position] = PENDING
        program.payloads[position] = payload
        arrival = program.arrive(position, meeting.numbers[meeting.groups.of[position].part], meeting.number)
        if arrival == _COMPLETE:
            program.complete(position, meeting)
        elif arrival == _WAIT:
            program.wait(self, frame)
        return self.result()

    def result(self) -> Any:
        """The result of the last collective, once; raises what the collective raised."""
        program = self.program
        position = self.position
        result = program.results[position]
        if result is PENDING:
            raise Stopped
        program.payloads[position] = None
        program.results[position] = PENDING
        if type(result) is Raised:
            raise BaseException.with_traceback(result.error, result.trace)
        return result
