# SPDX-License-Identifier: Apache-2.0
"""The outcomes of one call: what bodies returned or raised, and the error that the caller gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from artifex_devices._base.raised_exceptions import add_note
from artifex_devices.errors import CollectiveError

# Mistakes in bodies by the class and a part of the text of NumPy's error, and what to write.
_MISTAKES = (
    (
        ValueError,
        "read-only",
        "a body cannot write to its arguments and to results of collectives; write x = x + 1 instead of x += 1, or "
        "copy the block first: x = x.copy()",
    ),
    (
        AttributeError,
        "'numpy.ndarray' object has no attribute 'at'",
        "blocks are ndarrays, which have no x.at; write x = x.copy(); x[i] = v",
    ),
)


class Stopped(BaseException):
    """Raised in participants whose session failed elsewhere; not an Exception, because bodies must not catch it."""


class Outcomes:
    """Results and exceptions of the bodies of one call, by position.

    Attributes:
        returned: Results of the bodies, in a list that the scheduler fills too.
    """

    def __init__(self, participants: int) -> None:
        self.returned: list[Any] = [None] * participants
        # Created before the bodies run: an error must be recorded even when memory runs out.
        self._errors: list[BaseException | None] = [None] * participants
        self._refusal: CollectiveError | None = None
        self._is_closed = False

    def record_return(self, position: int, value: object) -> None:
        """Records what a body returned."""
        self.returned[position] = value

    def record_error(self, position: int, error: BaseException) -> None:
        """Records what a body raised, unless the call has ended without it."""
        errors = self._errors
        if not self._is_closed:
            errors[position] = error

    def record_refusal(self, error: CollectiveError) -> None:
        """Records why an executor cancelled the call; the caller gets this error."""
        self._refusal = error

    def close(self) -> None:
        """Releases all of them."""
        self._is_closed = True
        self.returned = []
        self._errors = []

    def settle(self, operation: str, failure: str, timeout_s: float | None, table: Callable[[], str]) -> list[Any]:
        """Returns the results of the bodies.

        `failure` is the failure of the rendezvous, "" for none; `table` returns a line for each participant.

        Raises:
            BaseException: The first exception of a body, with the table as a note.
            CollectiveError: Participants did not reach the same collective; its text has the table.
        """
        if not failure:
            return self.returned
        if self._refusal is not None:
            raise self._refusal
        first = self._first_error()
        text = f"{operation}: {_reason_of(failure, timeout_s)}\n{table()}"
        if first is None or failure not in ("body", "cancelled"):
            raise CollectiveError(text)
        add_note(first, text)
        for kind, part, repair in _MISTAKES:
            if isinstance(first, kind) and part in str(first) and repair not in str(first):
                first.args = (f"{first}; {operation}: {repair}", *first.args[1:])
        raise first

    def _first_error(self) -> BaseException | None:
        own = [error for error in self._errors if error is not None and not isinstance(error, Stopped)]
        interrupts = [error for error in own if isinstance(error, KeyboardInterrupt)]
        return next(iter(interrupts + own), None)  # Ctrl-C may have caused the other bodies' errors


def _reason_of(failure: str, timeout_s: float | None) -> str:
    """Formats a failure of the rendezvous."""
    return {
        "mismatch": "participants called different collectives; expected the same operation, shape, dtype and axes "
        "from each member of a group; make all of them take the same branch",
        "early exit": "a participant returned while others wait for it in a collective; expected each member to "
        "call it; make all of them call the same number of collectives",
        "deadlock": "participants wait for each other and none can go on; expected collectives in the same order "
        "everywhere; call them in one order",
        "deadline": f"a collective waited longer than collective_timeout_s = {timeout_s}; expected all "
        "members to arrive in time; raise config.collective_timeout_s, or see below which ones are running",
        "body": "a participant raised",
        "cancelled": "the call was interrupted",
    }[failure]
