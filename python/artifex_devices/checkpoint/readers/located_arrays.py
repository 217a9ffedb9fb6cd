# SPDX-License-Identifier: Apache-2.0
"""Arrays whose elements are at known places of files of other formats; the core reads their boxes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from artifex_devices._core import internal
from artifex_devices.checkpoint.readers.reader import Box
from artifex_devices.checkpoint.readers.stored_reader import read_box


class LocatedPart(NamedTuple):
    """One stored box: index of its first element, shape, number of its file, and first byte in the file."""

    origin: tuple[int, ...]
    shape: tuple[int, ...]
    file: int
    begin: int


class LocatedArray(NamedTuple):
    """One array: dtype, shape, its dimensions in the order in which they are stored, and its parts."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    parts: tuple[LocatedPart, ...]


class LocatedArrays:
    """Reads boxes of arrays by the places of their parts."""

    def __init__(self, operation: str, paths: list[str], arrays: dict[str, LocatedArray]) -> None:
        """Opens the files and checks all places.

        Raises:
            ValueError: A part is outside its file or its array, parts overlap, or elements are in no part.
            OSError: A file cannot be opened.
        """
        self._axes = {name: array.axes for name, array in arrays.items()}
        self._numbers = {name: number for number, name in enumerate(arrays)}
        rows = [
            (
                name,
                array.dtype,
                _stored(array.shape, array.axes),
                _stored(part.origin, array.axes),
                _stored(part.shape, array.axes),
                part.file,
                part.begin,
            )
            for name, array in arrays.items()
            for part in array.parts
        ]
        self._files: internal.StoredCheckpoint | None = internal.StoredCheckpoint.of_parts(paths, rows, operation)

    def read(self, operation: str, name: str, dtype: np.dtype[Any], box: Box) -> np.ndarray[Any, Any]:
        """Returns a new row-major ndarray with the elements of a box."""
        return row_major(self.read_stored(operation, name, dtype, box), self._axes[name])

    def read_stored(self, operation: str, name: str, dtype: np.dtype[Any], box: Box) -> np.ndarray[Any, Any]:
        """Returns a new ndarray with the elements of a box, and with the dimensions in the order of the file."""
        origin, shape = box
        stored = _stored(origin, self._axes[name]), _stored(shape, self._axes[name])
        return read_box(operation, self._files, self._numbers[name], dtype, stored)

    def close(self) -> None:
        """Closes the files when no thread reads them any more."""
        self._files = None


def row_major(stored: np.ndarray[Any, Any], axes: Iterable[int]) -> np.ndarray[Any, Any]:
    """Returns an array whose dimensions are stored in the order of `axes`, in its own order."""
    inverse = sorted(range(stored.ndim), key=list(axes).__getitem__)
    return stored.transpose(inverse).copy(order="C") if inverse != list(range(stored.ndim)) else stored


def _stored(values: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(values[axis] for axis in axes)
