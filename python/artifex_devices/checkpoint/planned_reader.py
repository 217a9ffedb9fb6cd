# SPDX-License-Identifier: Apache-2.0
"""PlannedReader: the arrays that a plan makes of a checkpoint, read piece by piece."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from artifex_devices._core import internal
from artifex_devices.checkpoint.pieces import Box, pieces_of
from artifex_devices.checkpoint.readers.reader import Reader


class PlannedReader:
    """Reads pieces of the target arrays of a plan. Several threads may use it.

    Attributes:
        reader: Reader of the checkpoint.
        arrays: Shape and dtype of each array, by name.
    """

    def __init__(self, operation: str, plan: internal.ConversionPlan, reader: Reader) -> None:
        self._operation = operation
        self._plan = plan
        self.reader = reader
        self.arrays: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {
            name: (shape, dtype) for name, shape, dtype in plan.targets()
        }
        self._numbers = {name: number for number, name in enumerate(self.arrays)}
        self._unchecked: set[str] = set()

    def pieces(self, name: str, box: Box) -> Iterator[Box]:
        """Yields the pieces of a box: at most PIECE_BYTES in the source too."""
        return pieces_of(box, self.itemsize(name))

    def tile(self, name: str, box: Box, slab: Box) -> tuple[int, ...] | None:
        """Returns the shape of tiles to read a box in, no larger than its first slab; None if slabs are as good."""
        return None if slab == box else self._plan.tile_shape(self._numbers[name], *box, slab[1])

    def itemsize(self, name: str) -> int:
        """Returns the bytes of an element, in the checkpoint if they are more there."""
        return self._plan.itemsize(self._numbers[name])

    def read(self, name: str, piece: Box) -> np.ndarray[Any, Any]:
        """Reads what a piece is made of, and changes it."""
        shape = piece[1]
        parts = self._plan.parts(self._numbers[name], *piece)
        if len(parts) == 1:
            source, origin, extents, part = parts[0]
            if part.is_identity:
                return self._read_source(source, (origin, extents)).reshape(shape)
        out: np.ndarray[Any, Any] = internal.host_empty(shape, self.arrays[name][1])
        for source, origin, extents, part in parts:
            part.copy(None if source is None else self._read_source(source, (origin, extents)), out)
        return out

    def skip(self, name: str, piece: Box) -> None:
        """Notes what a piece is made of, which was read by an earlier call."""
        for source, origin, extents, _ in self._plan.parts(self._numbers[name], *piece):
            if source is not None:
                self._unchecked.update(self.reader._unchecked(source, (origin, extents)))

    def unchecked(self) -> list[str]:
        """Returns the arrays of which boxes were read without their checksums, such as columns."""
        return sorted(self._unchecked)

    def check(self, name: str) -> None:
        """Reads an array of the checkpoint, and compares its checksums."""
        deque(self.reader._verify(self._operation, name, self.reader.dtype(name)), maxlen=0)

    def _read_source(self, name: str, box: Box) -> np.ndarray[Any, Any]:
        unchecked = self.reader._unchecked(name, box)
        self._unchecked.update(unchecked)
        return self.reader._read_box(self._operation, name, box, not unchecked)
