# SPDX-License-Identifier: Apache-2.0
"""Who runs: one participant a device, known to the collectives through a context variable."""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable, Hashable, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from artifex_devices.spmd.program import Program

__all__ = ["PENDING", "Participant", "Stopped", "current"]

_current: contextvars.ContextVar[Participant | None] = contextvars.ContextVar(
    "artifex_devices_participant", default=None
)

# What stands for a result that is not there yet.
PENDING: Any = object()


class Stopped(BaseException):
    """Thrown into participants whose program failed elsewhere; not an Exception, so that bodies let it pass."""


def current() -> Participant | None:
    """The participant of the calling context, or None outside shard_map and pmap."""
    return _current.get()


class Participant:
    """One run of the body: where it lies in the mesh, and how it meets the others."""

    __slots__ = ("_site", "error", "outcome", "position", "program", "state", "thread")

    def __init__(self, program: Program, position: int) -> None:
        """`position` is that of its device in the program's axes, row-major."""
        self.program = program
        self.position = position
        self.thread = 0  # the only thread that may call collectives, once it runs
        self.outcome: Any = PENDING
        self.error: BaseException | None = None
        self.state: Any = None  # the executor's own
        self._site: tuple[CodeType, int] | None = None

    @property
    def axis_names(self) -> tuple[Hashable, ...]:
        """Names of the axes that are bound in the body, in mesh order."""
        return self.program.axis_names

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """Sizes of those axes."""
        return self.program.axis_sizes

    @property
    def coordinates(self) -> tuple[int, ...]:
        """Where this participant lies on each of those axes."""
        return self.program.coordinates[self.position]

    @property
    def site(self) -> str:
        """The line of the body that called its last collective: "file.py:12", or "" before the first."""
        return "" if self._site is None else f"{self._site[0].co_filename}:{self._site[1]}"

    def meet(
        self,
        members: tuple[int, ...],
        signature: Hashable,
        payload: Any,
        complete: Callable[[list[Any]], Sequence[Any]],
        depth: int = 2,
    ) -> Any:
        """Meets other participants: each leaves a payload, the last one computes the results of all.

        Args:
            members: Positions that take part, this one among them, in the same order for everybody.
            signature: What all must agree on; its str() stands in errors, say "psum float32(8,) over x".
            payload: What this participant brings.
            complete: Makes one result a member from the payloads in the order of `members`; called once, by whoever
                comes last. What it raises is raised in all members.
            depth: How many frames above this one the user's call is, for the table of errors.

        Returns:
            This participant's result.

        Raises:
            RuntimeError: Called on another thread than the body's own.
            Stopped: The program failed elsewhere.
        """
        program = self.program
        if threading.get_ident() != self.thread or _current.get() is not self:
            raise RuntimeError(
                f"{signature}: a collective was called on a thread that a participant started; expected the thread of "
                f"its own body, got {threading.current_thread().name}; call it in the body and hand the result over"
            )
        frame = sys._getframe(depth)
        self._site = (frame.f_code, frame.f_lineno)
        return program.meet(self, members, signature, payload, complete)
