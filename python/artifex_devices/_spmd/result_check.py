# SPDX-License-Identifier: Apache-2.0
"""What processes tell each other when a mapped call ends: that they return the same, or that one of them does not."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from artifex_devices._spmd.block_exchange import bytes_of
from artifex_devices._spmd.cross_process import carrier_of, digest_of
from artifex_devices.config import config

if TYPE_CHECKING:
    from artifex_devices._spmd.program import Program
    from artifex_devices._spmd.specs import Layout

__all__ = ["Ending", "abandon"]

_CERTAIN = bytes(32)  # stands for a value that a collective made equal


class Ending:
    """Collects what the participants of this process return; `settle` compares it with the others."""

    def __init__(self, layout: Layout, program: Program) -> None:
        """Of one call."""
        assert layout.spread is not None
        self._layout = layout
        self._spread = layout.spread
        self._program = program
        self._told: list[tuple[Any, ...]] = []
        self._values: dict[tuple[int, ...], Any] = {}  # by processes: a hash of what should be equal in them, or None
        self._paths: list[str] = []

    def add(self, path: str, spec: Any, named: Sequence[Hashable], checks: bool, parts: Sequence[NDArray[Any]]) -> None:
        """One output: its blocks, and the axes that its spec names."""
        first = parts[0]
        self._told.append((path, first.dtype, first.shape, spec))
        span = self._spread.compared(named, self._layout.manual, self._layout.sizes) if checks else None
        if span is None:
            return
        self._paths.append(path)
        self._values.setdefault(span.processes, None)
        for part in span.parts:
            block = parts[min(part.mine.values())]
            if not self._program.is_common(block, part.members):
                value = self._values[span.processes] or hashlib.blake2b(digest_size=32)
                value.update(bytes_of(block).data)
                self._values[span.processes] = value

    def settle(self) -> None:
        """Meets the other processes.

        Raises:
            CollectiveError: They return other shapes, dtypes or specs, or one of them has failed.
            ValueError: What should be the same everywhere is not; raised in all processes.
        """
        if not config.distributed_checks:
            return
        spread = self._spread
        text, digest = self._described()
        carrier = carrier_of(spread, text)
        values = {spread.processes: None, **self._values}
        several = len(values) > 1
        for processes, value in sorted(values.items(), key=_size_and_numbers) if several else values.items():
            mine = _CERTAIN if value is None else value.digest()
            self._program.lost = processes
            told = carrier.agree(text, digest, processes, mine)
            self._program.lost = None
            if len({each for each in told if each != _CERTAIN}) > 1:
                self._program.lost = processes
                raise ValueError(
                    f"{self._program.operation}: {', '.join(f'output{path}' for path in self._paths)} is replicated by "
                    f"its spec, but not the same in processes {', '.join(map(str, processes))}; expected the same "
                    "bits; name the axis in out_specs, reduce the value (lax.pmean), or take each process's own with "
                    "check_vma=False"
                )

    def _described(self) -> tuple[str, bytes]:
        """What is returned, in words, and their digest; kept for the next call that returns the like."""
        known = self._spread.endings
        key = (self._program.operation, *self._told)
        if key not in known:
            if len(known) >= 256:
                known.clear()
            outputs = [f"output{path} of {dtype}{shape} as {spec!r}" for path, dtype, shape, spec in self._told]
            text = f"{self._program.operation} returns {'; '.join(outputs)}"
            known[key] = (text, digest_of(text))
        return known[key]


def _size_and_numbers(each: tuple[tuple[int, ...], Any]) -> tuple[int, tuple[int, ...]]:
    return len(each[0]), each[0]


def abandon(layout: Layout, program: Program, error: BaseException) -> None:
    """Tells the other processes that this one does not come to what they may wait for."""
    spread = layout.spread
    assert spread is not None
    operation = program.operation
    try:
        carrier = carrier_of(spread, operation)
    except RuntimeError:  # there is none, so nobody waits
        return
    if not isinstance(error, Exception):  # Ctrl-C: a thread may still wait in the carrier, and nobody goes on anyway
        carrier.fail(f"{type(error).__name__} in {operation}")
        return
    reason = f"{type(error).__name__}: {error}"
    for processes in spread.circles(layout.manual, layout.sizes):
        if processes != program.lost and (processes != spread.processes or config.distributed_checks):
            carrier.refuse(operation, reason, processes)
