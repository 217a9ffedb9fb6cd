# SPDX-License-Identifier: Apache-2.0
"""Scratch: tiles of a box in a file without a name, from which the slabs of the box are read."""

from __future__ import annotations

import itertools
import math
import os
from typing import Any

import numpy as np

from artifex_devices._core import internal
from artifex_devices.checkpoint.pieces import Box


class Scratch:
    """One box, written tile by tile and read slab by slab.

    Each tile is written in one run. A slab takes one run from each tile that it meets, because both are row-major.
    """

    def __init__(self, path: str, box: Box, tile: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Creates a file and removes its name: it vanishes with this object, or with the process."""
        self._file = open(path, "w+b")  # noqa: SIM115 `close` closes it
        os.unlink(path)
        self._origin = box[0]
        self._tile = tile
        self._dtype = dtype
        self._tiles: dict[tuple[int, ...], tuple[int, Box]] = {}  # first byte and box, by the number in each dimension

    def write(self, tile: Box, elements: np.ndarray[Any, Any]) -> None:
        """Writes the next tile."""
        self._tiles[self._number(tile[0])] = self._file.tell(), tile
        try:
            self._file.write(elements.reshape(-1).view(np.uint8).data)
        except OSError as error:
            error.filename = self._file.name
            raise

    def read(self, slab: Box) -> np.ndarray[Any, Any]:
        """Returns a new ndarray with the elements of a slab, after all tiles have been written."""
        origin, shape = slab
        out: np.ndarray[Any, Any] = internal.host_empty(shape, self._dtype)
        first, last = self._number(origin), self._number(tuple(a + b - 1 for a, b in zip(origin, shape, strict=True)))
        for number in itertools.product(*(range(a, b + 1) for a, b in zip(first, last, strict=True))):
            place, tile = self._tiles[number]
            begin = tuple(map(max, origin, tile[0]))
            end = (min(a + b, c + d) for a, b, c, d in zip(*slab, *tile, strict=True))
            size = tuple(b - a for a, b in zip(begin, end, strict=True))
            part: np.ndarray[Any, Any] = np.empty(size, self._dtype)
            self._file.seek(place + self._dtype.itemsize * _offset(begin, tile))
            if self._file.readinto(part.reshape(-1).view(np.uint8).data) != part.nbytes:
                raise OSError(f"the scratch file of a conversion ends early: {self._file.name!r}")
            out[tuple(slice(a - b, a - b + c) for a, b, c in zip(begin, origin, size, strict=True))] = part
        return out

    def close(self) -> None:
        """Removes the file."""
        self._file.close()

    def _number(self, index: tuple[int, ...]) -> tuple[int, ...]:
        return tuple((a - b) // step for a, b, step in zip(index, self._origin, self._tile, strict=True))


def _offset(index: tuple[int, ...], tile: Box) -> int:
    """Returns the number of elements of a tile before an index of the array."""
    place = (a - b for a, b in zip(index, tile[0], strict=True))
    return sum(a * math.prod(tile[1][d + 1 :]) for d, a in enumerate(place))
