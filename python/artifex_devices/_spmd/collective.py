# SPDX-License-Identifier: Apache-2.0
"""The collectives of a session: signature, members, and the function that computes their results."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from artifex_devices import _core
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._spmd.axis_groups import AxisGroups
from artifex_devices._spmd.cross_process_op import CrossProcessOp

_MAX_CACHED = 64  # collectives of a session that is used again


@dataclass(frozen=True, slots=True, eq=False)
class Collective:
    """A collective that participants have called, cached for the next call of it.

    Attributes:
        signature: Operation, axes, dtypes and shapes, which all members must agree on: a str, or a tuple that
            `signature_text` formats.
        number: The number of the signature in the rendezvous.
        groups: The groups of participants that run the collective together.
        numbers: Numbers of the parts of `groups` in the rendezvous.
        complete: Computes one result for each member from their payloads; the last member to arrive calls it. All
            members raise its exception.
        op: Which data members need from members in other processes; by default their unchanged payloads.
    """

    signature: Hashable
    number: int
    groups: AxisGroups
    numbers: list[int]
    complete: Callable[[list[Any]], Sequence[Any]]
    op: CrossProcessOp | None

    @property
    def text(self) -> str:
        """The collective in errors."""
        return signature_text(self.signature)


def _text(value: object) -> str:
    return value if isinstance(value, str) else safe_repr(value)


def signature_text(signature: Hashable) -> str:
    """Formats (operation, axes, options, dtype, shape, ...) as "psum float32(8, 4) over x"; returns a str unchanged."""
    if not isinstance(signature, tuple):
        return _text(signature)
    operation, axes, options, *leaves = signature
    over = ", ".join(map(_text, axes)) if isinstance(axes, tuple) else _text(axes)
    pairs = list(zip(leaves[::2], leaves[1::2], strict=True))
    arrays = ", ".join(f"{dtype}{shape}" for dtype, shape in pairs[:3]) + (", ..." if len(pairs) > 3 else "")
    chosen = "".join(f" {name}={_text(value)}" for name, value in options)
    return f"{operation} {arrays} over {over}{chosen}"


class CollectiveCache:
    """The collectives that the participants of one session have called, by their signatures and groups."""

    def __init__(self, rendezvous: _core.Rendezvous) -> None:
        self._rendezvous = rendezvous
        self._collectives: dict[tuple[Hashable, AxisGroups], Collective] = {}
        self._numbers: dict[Hashable, int] = {}
        self._lock = threading.RLock()  # hashing names of axes may call the user's code

    @property
    def is_small(self) -> bool:
        """Whether another call may use the session."""
        return len(self._collectives) <= _MAX_CACHED

    def get(self, signature: Hashable, groups: AxisGroups) -> Collective | None:
        """Returns the collective that was added with these attributes, or None."""
        return self._collectives.get((signature, groups))

    def add(
        self,
        signature: Hashable,
        groups: AxisGroups,
        complete: Callable[[list[Any]], Sequence[Any]],
        op: CrossProcessOp | None,
    ) -> Collective:
        """Adds a collective with these attributes; equal signatures have the same number."""
        with self._lock:
            number = self._numbers.setdefault(signature, len(self._numbers))
        parts = [self._rendezvous.group(part) for part in groups.parts]
        made = self._collectives[signature, groups] = Collective(signature, number, groups, parts, complete, op)
        return made

    def texts(self) -> dict[int, str]:
        """Returns the texts of all signatures by their numbers."""
        with self._lock:
            known = list(self._numbers.items())  # formatted without the lock: that may call the user's code
        return {number: signature_text(signature) for signature, number in known}
