# SPDX-License-Identifier: Apache-2.0
"""The blocks that a member of a collective needs of members in other processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from artifex_devices._spmd.block_exchange import Key, Leaves


class CrossProcessOp(NamedTuple):
    """The blocks that a member of a collective needs of members in other processes, and its result."""

    # sources(index, size): the members whose blocks it needs, in the order in which `finish` gets them, or None for
    # all.
    sources: Callable[[int, int], Sequence[int]] | None = None
    # pick(block, index, size): the piece that it needs of each block, or None for entire blocks.
    pick: Callable[[NDArray[Any], int, int], NDArray[Any]] | None = None
    # finish(index, blocks): its result, or None for the function that computes a group in one process.
    finish: Callable[[int, list[Leaves]], Leaves] | None = None
    reduction: str = ""  # "sum", "prod", "max" or "min", where all blocks are combined into one
    # share(total, size): the parts of the sum that the members get. The caller owns the sum.
    share: Callable[[Leaves, int], Sequence[Leaves]] = lambda total, size: [total] * size
    by_rows: bool = False  # `share` divides the leading dimension equally, also the rows of some members
    is_shared: bool = False  # all members get the same arrays
    is_total: bool = False  # all members get the read-only sum itself

    @property
    def is_plain(self) -> bool:
        """Whether all members need all entire blocks."""
        return self.sources is None and self.pick is None

    def members_for(self, index: int, size: int) -> Sequence[int]:
        """Returns the members whose blocks a member needs."""
        return range(size) if self.sources is None else self.sources(index, size)

    def key(self, member: int, index: int) -> Key:
        """Returns the key of the piece of another member's block that member `index` needs."""
        return member, index if self.pick is not None else -1

    def picked(self, leaves: Leaves, index: int, size: int) -> Leaves:
        """Returns the part of a block that a member needs."""
        return leaves if self.pick is None else [self.pick(leaf, index, size) for leaf in leaves]
