# SPDX-License-Identifier: Apache-2.0
"""Arrays whose elements are at known places of files of other formats; the core reads their boxes."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from artifex_devices._base.checks import failure
from artifex_devices._core import internal
from artifex_devices.checkpoint.pieces import pieces_of, whole
from artifex_devices.checkpoint.readers.reader import Box, Reader
from artifex_devices.checkpoint.readers.stored_reader import read_box
from artifex_devices.checkpoint.readers.zip_members import StoredBytes


class LocatedPart(NamedTuple):
    """One stored box: index of its first element, shape, file number, first byte, and the storage that contains it."""

    origin: tuple[int, ...]
    shape: tuple[int, ...]
    file: int
    begin: int
    storage: StoredBytes | None = None


class LocatedArray(NamedTuple):
    """One array: dtype, shape, its dimensions in the order in which they are stored, and its parts."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    parts: tuple[LocatedPart, ...]


class LocatedArrays:
    """Reads boxes of arrays by the places of their parts.

    Attributes:
        without_checksums: Names of the arrays in storages that have no checksum.
        verified_by: For each array the names whose `verify` compares the checksums of its storages.
    """

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
        self._paths = paths
        self.without_checksums = [
            name
            for name, array in arrays.items()
            if any(part.storage and part.storage.nbytes and not part.storage.crc for part in array.parts)
        ]
        owners: dict[tuple[int, StoredBytes], str] = {}  # the first array of each storage
        for name, array in arrays.items():
            for part in array.parts:
                if part.storage:
                    owners.setdefault((part.file, part.storage), name)
        self._storages: dict[str, list[tuple[int, int, StoredBytes]]] = {}  # row, file, bytes
        for row, ((file, storage), name) in enumerate(owners.items(), len(arrays)):
            self._storages.setdefault(name, []).append((row, file, storage))
            shape = (storage.nbytes,)
            rows.append((f"\0{row}", np.dtype(np.uint8), shape, (0,), shape, file, storage.begin))
        self.verified_by = {
            name: sorted({owners[part.file, part.storage] for part in array.parts if part.storage is not None})
            for name, array in arrays.items()
        }
        self._files: internal.StoredCheckpoint | None = internal.StoredCheckpoint.of_parts(paths, rows, operation)

    def read(self, operation: str, name: str, dtype: np.dtype[Any], box: Box) -> np.ndarray[Any, Any]:
        """Returns a new row-major ndarray with the elements of a box."""
        return row_major(self.read_stored(operation, name, dtype, box), self._axes[name])

    def read_stored(self, operation: str, name: str, dtype: np.dtype[Any], box: Box) -> np.ndarray[Any, Any]:
        """Returns a new ndarray with the elements of a box, and with the dimensions in the order of the file."""
        origin, shape = box
        stored = _stored(origin, self._axes[name]), _stored(shape, self._axes[name])
        return read_box(operation, self._files, self._numbers[name], dtype, stored)

    def verify(self, operation: str, name: str) -> Iterator[int]:
        """Reads the storages whose first array this is, compares checksums, and yields the bytes of pieces."""
        for row, file, storage in self._storages.get(name, ()):
            crc = 0
            for piece in pieces_of(whole((storage.nbytes,)), 1):
                content = read_box(operation, self._files, row, np.dtype(np.uint8), piece)
                crc = zlib.crc32(content.data, crc)
                yield content.nbytes
            if storage.crc not in (0, crc):
                problem = f"its checksum is {crc:08x}, expected {storage.crc:08x}"
                raise failure(
                    ValueError,
                    operation,
                    f"{self._paths[file]!r}: {name!a} is damaged: {problem}",
                    expected="the bytes that were saved",
                    fix="copy the file again",
                )

    def close(self) -> None:
        """Closes the files when no thread reads them any more."""
        self._files = None


class ArchiveReader(Reader):
    """Reader of arrays in archives of torch.save, whose storages have checksums."""

    _arrays_in_files: LocatedArrays

    def _verify(self, operation: str, name: str, dtype: np.dtype[Any]) -> Iterator[int]:
        return self._arrays_in_files.verify(operation, name)

    def _unchecked(self, name: str, box: Box) -> Sequence[str]:
        return self._arrays_in_files.verified_by[name] if name not in self._arrays_in_files.without_checksums else ()

    def _checksums(self) -> str:
        return self._checksums_of("CRC-32", self._arrays_in_files.without_checksums)

    def _close(self) -> None:
        self._arrays_in_files.close()


def row_major(stored: np.ndarray[Any, Any], axes: Iterable[int]) -> np.ndarray[Any, Any]:
    """Returns an array whose dimensions are stored in the order of `axes`, in its own order."""
    inverse = sorted(range(stored.ndim), key=list(axes).__getitem__)
    return stored.transpose(inverse).copy(order="C") if inverse != list(range(stored.ndim)) else stored


def _stored(values: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(values[axis] for axis in axes)
