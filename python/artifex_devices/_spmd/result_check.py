# SPDX-License-Identifier: Apache-2.0
"""The check at the end of a mapped call: if the results of the processes differ, every process raises an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from artifex_devices._base.checks import failure
from artifex_devices._base.clearable_cache import remember
from artifex_devices._base.digest import digest_of
from artifex_devices._core import internal
from artifex_devices._runtime.cupy_arrays import is_on_gpu
from artifex_devices._runtime.gpu_block import gpu_blocks, host_copy
from artifex_devices._spmd.cross_process import CrossProcess, transport_of
from artifex_devices._spmd.process_groups import CrossProcessGroups
from artifex_devices.config import config

_CERTAIN = bytes(32)  # stands for a value that a collective made equal


class ResultCheck:
    """Collects the results of this process's participants in one call; `run` compares them with other processes."""

    def __init__(self, others: CrossProcess) -> None:
        self._others = others
        self._outputs: list[tuple[Any, ...]] = []
        self._values: dict[tuple[int, ...], bytes] = {}  # by processes: digests of what should be equal in them
        self._paths: list[str] = []

    def add(self, path: str, spec: object, across: CrossProcessGroups | None, parts: Sequence[NDArray[Any]]) -> None:
        """Adds one output: its blocks, and the processes in which they should be equal."""
        first = parts[0]
        self._outputs.append((path, first.dtype, first.shape, spec))
        if across is None:
            return
        self._paths.append(path)
        self._values.setdefault(across.processes, b"")
        for group in across.groups:
            block = parts[min(group.here.values())]
            if not self._others.is_common(block, group.members):
                self._values[across.processes] += value_digest(block)

    def run(self) -> None:
        """Meets the other processes.

        CollectiveError where they return other shapes, dtypes or specs, or one of them has failed; ValueError in all
        processes where a replicated value differs.
        """
        if not config.distributed_checks:
            return
        others, values = self._others, self._values
        process_map = others.process_map
        text, digest = self._described()
        transport = transport_of(process_map, text)
        values.setdefault(process_map.processes, b"")
        for processes in sorted(values, key=lambda each: (len(each), each)) if len(values) > 1 else values:
            value = values[processes]
            mine = digest_of(value) if value else _CERTAIN
            others.begin_meeting(processes)
            digests = transport.agree(text, digest, processes, mine)
            if digests.count(mine) < len(digests) and len({each for each in digests if each != _CERTAIN}) > 1:
                raise failure(
                    ValueError,
                    others.operation,
                    (
                        f"{', '.join(f'output{path}' for path in self._paths)} is replicated by its spec, but not "
                        f"the same in processes {', '.join(map(str, processes))}"
                    ),
                    expected="the same bits",
                    fix=(
                        "name the axis in out_specs, reduce the value (lax.pmean), or take each process's own with "
                        "check_vma=False"
                    ),
                )
            others.end_meeting()

    def _described(self) -> tuple[str, bytes]:
        """Describes the outputs in words, with their digest; cached."""
        known = self._others.process_map.results
        key = (self._others.operation, *self._outputs)
        if key in known:
            return known[key]
        outputs = [f"output{path} of {dtype}{shape} as {spec!r}" for path, dtype, shape, spec in self._outputs]
        text = f"{self._others.operation} returns {'; '.join(outputs)}"
        return remember(known, key, (text, digest_of(text)))


def value_digest(block: object) -> bytes:
    """Returns bytes that are equal for equal blocks; one in the memory of a GPU is read."""
    return internal.value_digest(host_copy(gpu_blocks([block])[0]) if is_on_gpu(block) else block)
