# SPDX-License-Identifier: Apache-2.0
"""The check at the end of a mapped call that all processes return the same, or learn that one of them does not."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._base.clearable_cache import remember
from artifex_devices._runtime.cupy_arrays import is_on_gpu
from artifex_devices._runtime.gpu_block import gpu_blocks, host_copy
from artifex_devices._spmd.cross_process import digest_of, transport_of
from artifex_devices._spmd.process_groups import ProcessGroups
from artifex_devices._spmd.program import Program
from artifex_devices._spmd.specs import Layout
from artifex_devices.config import config

_CERTAIN = bytes(32)  # stands for a value that a collective made equal


class ResultCheck:
    """Collects what the participants of this process return in one call; `run` compares it with the others."""

    def __init__(self, layout: Layout, program: Program) -> None:
        assert layout.process_map is not None
        self._process_map = layout.process_map
        self._program = program
        self._outputs: list[tuple[Any, ...]] = []
        self._values: dict[tuple[int, ...], Any] = {}  # by processes: hash of what should be equal in them, or None
        self._paths: list[str] = []

    def add(self, path: str, spec: Any, across: ProcessGroups | None, parts: Sequence[NDArray[Any]]) -> None:
        """Adds one output: its blocks, and the processes in which they should be equal."""
        first = parts[0]
        self._outputs.append((path, first.dtype, first.shape, spec))
        if across is None:
            return
        self._paths.append(path)
        self._values.setdefault(across.processes, None)
        for group in across.groups:
            block = parts[min(group.here.values())]
            if not self._program.is_common(block, group.members):
                value = self._values[across.processes] or hashlib.blake2b(digest_size=32)
                value.update(value_digest(block))
                self._values[across.processes] = value

    def run(self) -> None:
        """Meets the other processes.

        CollectiveError where they return other shapes, dtypes or specs, or one of them has failed; ValueError in all
        processes where a replicated value differs.
        """
        if not config._values["distributed_checks"]:
            return
        process_map, program, values = self._process_map, self._program, self._values
        text, digest = self._described()
        transport = transport_of(process_map, text)
        values.setdefault(process_map.processes, None)
        for processes in sorted(values, key=lambda each: (len(each), each)) if len(values) > 1 else values:
            value = values[processes]
            mine = _CERTAIN if value is None else value.digest()
            program.unmet = processes
            digests = transport.agree(text, digest, processes, mine)
            program.unmet = None
            if digests.count(mine) < len(digests) and len({each for each in digests if each != _CERTAIN}) > 1:
                program.unmet = processes
                raise ValueError(
                    f"{program.operation}: {', '.join(f'output{path}' for path in self._paths)} is replicated by "
                    f"its spec, but not the same in processes {', '.join(map(str, processes))}; expected the same "
                    "bits; name the axis in out_specs, reduce the value (lax.pmean), or take each process's own with "
                    "check_vma=False"
                )

    def _described(self) -> tuple[str, bytes]:
        """The outputs in words, and their digest; cached."""
        known = self._process_map.results
        key = (self._program.operation, *self._outputs)
        if key in known:
            return known[key]
        outputs = [f"output{path} of {dtype}{shape} as {spec!r}" for path, dtype, shape, spec in self._outputs]
        text = f"{self._program.operation} returns {'; '.join(outputs)}"
        return remember(known, key, (text, digest_of(text)))


def value_digest(block: Any) -> bytes:
    """Bytes that are equal for equal blocks; one in the memory of a GPU is read."""
    return _core._value_digest(host_copy(gpu_blocks([block])[0]) if is_on_gpu(block) else block)


def abandon(layout: Layout, program: Program, error: BaseException) -> None:
    """Reports to the other processes that this one does not come to what they may wait for."""
    process_map = layout.process_map
    assert process_map is not None
    operation = program.operation
    try:
        transport = transport_of(process_map, operation)
    except RuntimeError:  # without a transport nobody waits
        return
    if not isinstance(error, Exception):  # Ctrl-C: a thread may still wait in the transport, and nobody goes on anyway
        transport.fail(f"{type(error).__name__} in {operation}")
        return
    reason = f"{type(error).__name__}: {error}"
    for processes in process_map.meeting_sets():
        if processes != program.unmet and (processes != process_map.processes or config.distributed_checks):
            transport.refuse(operation, reason, processes)
