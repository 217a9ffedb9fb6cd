# SPDX-License-Identifier: Apache-2.0
"""Small blocks that travel with the words of a meeting, so that a collective takes one message each way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices._spmd.process_groups import Span

__all__ = ["Key", "SmallBlocks", "fit"]

Leaves = list[NDArray[Any]]
Key = tuple[int, int]  # a member, and the member for which its block was cut; -1 for a whole block
_ALIGNMENT = 16


def fit(span: Span, leaves: Leaves, most: int) -> bool:
    """Whether the blocks of each process fit into so many bytes, whole; the same in all processes."""
    if not span.is_even or not all(leaf.nbytes for leaf in leaves):
        return False
    size = sum(_rounded(leaf.nbytes) for leaf in leaves)
    return all(size * sum(part.owners.count(process) for part in span.parts) <= most for process in span.processes)


class SmallBlocks:
    """Where each block lies in what the processes of a span bring, for members that bring arrays like `template`."""

    def __init__(self, span: Span, me: int, template: Leaves) -> None:
        """Of blocks that `fit`."""
        self._count = len(span.parts)
        self._mine = [
            slot for part in span.parts for index, slot in part.mine.items() if part.owners[index] == me
        ]  # whose blocks this process brings
        self._paddings = [bytes(-leaf.nbytes % _ALIGNMENT) for leaf in template]
        kinds = [(leaf.dtype, leaf.size, leaf.shape, _rounded(leaf.nbytes)) for leaf in template]
        self._theirs: list[tuple[int, int, Key, list[tuple[Any, int, int, tuple[int, ...]]]]] = []
        for position, process in enumerate(span.processes):
            place = 0
            for number, part in enumerate(span.parts):
                for index, owner in enumerate(part.owners):
                    if owner != process or process == me:
                        continue
                    leaves = []
                    for dtype, size, shape, step in kinds:
                        leaves.append((dtype, size, place, shape))
                        place += step
                    self._theirs.append((position, number, (index, -1), leaves))

    def packed(self, brought: Mapping[int, Leaves]) -> bytes:
        """What this process brings: its members' blocks, group by group."""
        return b"".join(
            [
                part
                for slot in self._mine
                for leaf, padding in zip(brought[slot], self._paddings, strict=True)
                for part in (leaf.tobytes(), padding)
            ]
        )

    def unpacked(self, told: Sequence[bytes]) -> list[dict[Key, Leaves]]:
        """What the others have brought, for each group: blocks to be read only."""
        found: list[dict[Key, Leaves]] = [{} for _ in range(self._count)]
        for position, number, key, leaves in self._theirs:
            data = told[position]
            found[number][key] = [
                np.frombuffer(data, dtype, size, place).reshape(shape) for dtype, size, place, shape in leaves
            ]
        return found


def _rounded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
