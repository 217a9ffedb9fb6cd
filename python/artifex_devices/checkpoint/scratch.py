# SPDX-License-Identifier: Apache-2.0
"""Scratch: tiles of a box in a file without a name, from which the slabs of the box are read."""

from __future__ import annotations

import itertools
import math
import os
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from artifex_devices._core import internal
from artifex_devices.checkpoint.pieces import Box, tiles_of


class Scratch:
    """One box, written tile by tile and read slab by slab, by several threads at once.

    Each tile is one run of the file. A slab takes one run from each tile that it meets, because both are row-major.
    """

    def __init__(self, path: str, box: Box, tile: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Creates a file and removes its name: it vanishes with this object, or with the process."""
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self.close = weakref.finalize(self, os.close, self._file)
        os.unlink(path)
        self._origin = box[0]
        self._tile = tile
        self._dtype = dtype
        self._tiles: dict[tuple[int, ...], tuple[int, Box]] = {}  # first byte and box, by the number in each dimension
        end = 0
        for each in tiles_of(box, tile):
            self._tiles[self._number(each[0])] = end, each
            end += dtype.itemsize * math.prod(each[1])

    def write(self, tile: Box, elements: np.ndarray[Any, Any]) -> None:
        """Writes a tile."""
        self._transfer(os.pwritev, elements, self._tiles[self._number(tile[0])][0])

    def read(self, slab: Box) -> np.ndarray[Any, Any]:
        """Returns a new ndarray with the elements of a slab, after all tiles have been written."""
        origin, shape = slab
        out: np.ndarray[Any, Any] = internal.host_empty(shape, self._dtype)
        first, last = self._number(origin), self._number(tuple(a + b - 1 for a, b in zip(origin, shape, strict=True)))
        for number in itertools.product(*(range(a, b + 1) for a, b in zip(first, last, strict=True))):
            place, tile = self._tiles[number]
            begin = tuple(map(max, origin, tile[0]))
            end = (min(a + b, c + d) for a, b, c, d in zip(*slab, *tile, strict=True))
            part: np.ndarray[Any, Any] = np.empty([b - a for a, b in zip(begin, end, strict=True)], self._dtype)
            self._transfer(os.preadv, part, place + self._dtype.itemsize * _offset(begin, tile))
            out[tuple(slice(a - b, a - b + c) for a, b, c in zip(begin, origin, part.shape, strict=True))] = part
        return out

    def _transfer(
        self, call: Callable[[int, list[memoryview], int], int], array: np.ndarray[Any, Any], at: int
    ) -> None:
        """Writes or reads all bytes of an array."""
        data = array.reshape(-1).view(np.uint8).data
        done = 0
        while done < len(data):
            try:
                count = call(self._file, [data[done:]], at + done)
            except OSError as error:
                error.filename = self._path
                raise
            if not count:
                raise OSError(f"the scratch file {self._path!r} of a conversion ends early")
            done += count

    def _number(self, index: tuple[int, ...]) -> tuple[int, ...]:
        return tuple((a - b) // step for a, b, step in zip(index, self._origin, self._tile, strict=True))


def _offset(index: tuple[int, ...], tile: Box) -> int:
    """Returns the number of elements of a tile before an index of the array."""
    place = (a - b for a, b in zip(index, tile[0], strict=True))
    return sum(a * math.prod(tile[1][d + 1 :]) for d, a in enumerate(place))
