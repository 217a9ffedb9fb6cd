# SPDX-License-Identifier: Apache-2.0
"""The positions of each batch, and the rows of a batch that this process reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifex_devices import tree_util
from artifex_devices._base.leaf_types import PyTree
from artifex_devices.data.collating import collate
from artifex_devices.data.leaves import Positions
from artifex_devices.data.placing import Placement, Rows
from artifex_devices.data.reading import Fetched, Replacement
from artifex_devices.data.state import MAX_POSITION

_FIX = "repair the source, or skip such samples: data.batches(stream, on_error='skip')"


class BatchPlan(NamedTuple):
    """The batches of an iteration.

    Attributes:
        batch: Number of samples in each batch.
        last: What becomes of an incomplete last batch: "drop", "pad" or "short".
        length: Length of the stream; None if it is endless.
        start: Position of the first sample.
    """

    batch: int
    last: str
    length: int | None
    start: int

    def num_batches(self) -> int | None:
        """Returns the number of batches; None if the stream is endless."""
        if self.length is None:
            return None
        samples = self.length - self.start
        return samples // self.batch if self.last == "drop" else -(-samples // self.batch)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Yields the positions [begin, end) of the samples of each batch."""
        begin = self.start
        stop = MAX_POSITION if self.length is None else self.length
        while begin + self.batch <= stop:
            yield begin, begin + self.batch
            begin += self.batch
        if begin < stop and self.last != "drop":
            yield begin, stop

    def rows_of(self, begin: int, end: int) -> int:
        """Returns the number of rows of a batch, with its padding."""
        return end - begin if self.last == "short" else self.batch

    def sizes(self) -> list[int]:
        """Returns the different numbers of rows that batches have."""
        if self.length is None:
            return [self.batch]
        whole, rest = divmod(self.length - self.start, self.batch)
        has_full = whole > 0 or (rest > 0 and self.last == "pad")
        return [self.batch] * has_full + [rest] * (rest > 0 and self.last == "short")


class ReadBatch(NamedTuple):
    """The rows of a batch that this process holds."""

    tree: PyTree
    rows: Rows
    begin: int
    end: int
    replaced: list[Replacement]


class BatchReader:
    """Reads and places batches. Several threads may read at the same time."""

    def __init__(
        self, operation: str, stream: Positions, plan: BatchPlan, placement: Placement, *, skips: bool
    ) -> None:
        self.plan = plan
        self.skips = skips
        self._operation = operation
        self._stream = stream
        self._placement = placement
        self._no_rows: PyTree = None  # arrays with the dtypes and shapes of batches, for batches without rows here

    def read(self, positions: tuple[int, int]) -> ReadBatch:
        """Reads the rows of a batch that this process holds."""
        begin, end = positions
        count = end - begin
        rows = self._placement.rows(self.plan.rows_of(begin, end))
        numbers = _numbers(rows)
        real = numbers[numbers < count]
        replaced: list[Replacement] = []
        if len(real):
            tree, replaced = self._joined(begin + real, len(numbers) - len(real))
        if self._no_rows is None:
            # A process without rows reads one sample for the structure.
            tree_of_any = tree if len(real) else self._joined(np.array([begin]), 0)[0]
            self._no_rows = tree_util.tree_map(lambda leaf: np.empty((0, *leaf.shape[1:]), leaf.dtype), tree_of_any)
        if not len(real):
            tree = tree_util.tree_map(lambda leaf: np.zeros((len(numbers), *leaf.shape[1:]), leaf.dtype), self._no_rows)
        if self.plan.last == "pad":
            tree = (tree, numbers < count)
        return ReadBatch(tree, rows, begin, end, replaced)

    def _joined(self, positions: NDArray[np.int64], padding: int) -> tuple[PyTree, list[Replacement]]:
        """Returns the samples at positions as rows of arrays, and those of them that replace others."""
        fetched = Fetched(self._stream, positions, skips=self.skips, operation=self._operation, fix=_FIX)
        return collate(self._operation, fetched.samples(), positions, padding), fetched.replaced

    def place(self, batch: ReadBatch) -> PyTree:
        """Places the rows of this process as its part of the global batch."""
        return self._placement.place(batch.tree, batch.rows, self.plan.rows_of(batch.begin, batch.end))


def _numbers(rows: Rows) -> NDArray[np.int64]:
    """Returns the numbers of rows, ascending."""
    if len(rows) == 1:
        return np.arange(*rows[0], dtype=np.int64)
    return np.concatenate([np.empty(0, np.int64), *(np.arange(*each, dtype=np.int64) for each in rows)])
