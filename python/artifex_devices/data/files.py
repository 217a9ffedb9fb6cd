# SPDX-License-Identifier: Apache-2.0
"""Sources that are files: their records are numbered through, file after file."""

from __future__ import annotations

import copy
import functools
import hashlib
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifex_devices._base.checks import failure
from artifex_devices.data.sources import Source

_BLOCKS = 64  # of each file, in a digest
_BLOCK = 4096  # bytes
_MOST_READ = 128 << 20  # bytes of all blocks together


class SampleFile(NamedTuple):
    """A file of samples as it was when the source was made.

    Attributes:
        path: The file.
        name: Its name relative to the folder of all files.
        size: Its bytes.
        modified_ns: Its time of modification.
        starts: Record in the file at which each group of it begins (row groups of Parquet); [0] for one group.
        records: Number of records.
    """

    path: Path
    name: str
    size: int
    modified_ns: int
    starts: tuple[int, ...]
    records: int


class FileSource(Source):
    """Samples in one or more files of one kind.

    A derived class has `_groups(path)`, which returns where groups begin and the number of records, and
    `_read_file(number, records)`, which returns the samples at ascending records of one file without repetition.
    """

    kind: str  # as messages name it

    def __init__(self, paths: Sequence[Path]) -> None:
        folder = Path(os.path.commonpath([path.parent.absolute() for path in paths]))
        self.files = [self._examined(path, folder) for path in paths]
        self._ends = np.cumsum([each.records for each in self.files], dtype=np.int64)
        self.path = paths[0] if len(paths) == 1 else folder

    def _examined(self, path: Path, folder: Path) -> SampleFile:
        status = _status(path)
        starts, count = self._groups(path)
        name = path.absolute().relative_to(folder).as_posix()
        return SampleFile(path, name, status.st_size, status.st_mtime_ns, tuple(starts), count)

    def _groups(self, path: Path) -> tuple[Sequence[int], int]:
        raise NotImplementedError

    def _read_file(self, number: int, records: NDArray[np.int64]) -> list[Any]:
        raise NotImplementedError

    def __len__(self) -> int:
        return int(self._ends[-1])

    def read(self, indices: NDArray[np.int64]) -> list[Any]:
        """Returns the samples at `indices`; each file is read once, in the order of its records."""
        indices = np.asarray(indices, np.int64)
        outside = indices[(indices < 0) | (indices >= len(self))]
        if outside.size:
            raise failure(
                IndexError,
                "data.source",
                f"{self!r} has no sample {outside[0]}",
                expected=f"0 to {len(self) - 1}",
                fix="ask for len(source) first",
            )
        wanted, places = np.unique(indices, return_inverse=True)
        numbers = np.searchsorted(self._ends, wanted, side="right")
        found: list[Any] = []
        for number in np.unique(numbers).tolist():
            records = wanted[numbers == number] - (self._ends[number] - self.files[number].records)
            self.check_unchanged(number)
            found += self._read_file(number, records)
        if len(wanted) == len(indices):
            return [found[place] for place in places.tolist()]
        first = np.unique(places, return_index=True)[1]
        again = np.ones(len(places), bool)
        again[first] = False
        # A sample that is wanted twice is given as two, since the caller may change one.
        return [
            copy.deepcopy(found[p]) if a else found[p] for p, a in zip(places.tolist(), again.tolist(), strict=True)
        ]

    def check_unchanged(self, number: int) -> None:
        """Raises RuntimeError if the file has another size or time than when the source was made."""
        each = self.files[number]
        status = _status(each.path)
        if (status.st_size, status.st_mtime_ns) != (each.size, each.modified_ns):
            was = "" if status.st_size == each.size else f", from {each.size} to {status.st_size} bytes"
            raise failure(
                RuntimeError,
                "data.source",
                f"{str(each.path)!r} was changed while it is read{was}",
                expected="files that do not change",
                fix="make the source again, after the file is complete",
            )

    def digest(self) -> str:
        """Returns a digest of the names in the folder, the sizes, and sampled blocks of each file."""
        return self._digest

    @functools.cached_property
    def _digest(self) -> str:
        found = hashlib.blake2b(f"{self.kind} {len(self.files)}".encode(), digest_size=16)
        blocks = max(1, min(_BLOCKS, _MOST_READ // (_BLOCK * len(self.files))))
        block = min(_BLOCK, _MOST_READ // len(self.files))
        for number, each in enumerate(self.files):
            self.check_unchanged(number)
            found.update(f"\n{each.name}\n{each.size}\n".encode())
            descriptor = open_file(each.path)
            try:
                for place in range(blocks):
                    # The first block and the last one are among them.
                    offset = (each.size - block) * place // max(1, blocks - 1) if each.size > block else 0
                    found.update(os.pread(descriptor, block, offset))
                    if each.size <= block:
                        break
            finally:
                os.close(descriptor)
        return found.hexdigest()

    def describe(self, index: int) -> str:
        """Returns the record and the file of a sample."""
        number = int(np.searchsorted(self._ends, index, side="right"))
        each = self.files[number]
        return f"record {index - int(self._ends[number]) + each.records} of {str(each.path)!r}"

    @property
    def shards(self) -> NDArray[np.int64]:
        """The index at which each file or row group begins."""
        first = self._ends - [each.records for each in self.files]
        starts = [start + int(begin) for each, begin in zip(self.files, first, strict=True) for start in each.starts]
        return np.unique(np.array(starts, np.int64)[np.array(starts) < len(self)])

    def __repr__(self) -> str:
        if len(self.files) == 1:
            return f"{self.kind} {str(self.files[0].path)!r}"
        return f"{len(self.files)} {self.kind} files in {str(self.path)!r}"


def open_file(path: Path) -> int:
    """Opens a regular file for reading; a pipe, whose reading may never end, is refused."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise unreadable(path, "is not a regular file", "a file of samples")
    return descriptor


def unreadable(
    path: Path, problem: str, expected: str, fix: str = "write the file again, or leave it out"
) -> ValueError:
    """Returns the error of a file whose content cannot be used."""
    return failure(ValueError, "data.source", f"{str(path)!r} {problem}", expected=expected, fix=fix)


def _status(path: Path) -> os.stat_result:
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise unreadable(path, "is not a regular file", "a file of samples")
    return status
