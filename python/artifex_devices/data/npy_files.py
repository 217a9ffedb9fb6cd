# SPDX-License-Identifier: Apache-2.0
"""Rows of .npy files."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from artifex_devices.data.files import FileSource, open_file, unreadable

_MOST_HEADER = 10_000  # bytes; NumPy's own limit of the text of a header
_GAP = 1 << 16  # bytes between rows that are read and thrown away, where that is cheaper than another read
_READ = 1 << 24  # bytes of one read


class NpyFiles(FileSource):
    """The rows of arrays in .npy files, which have one dtype and one shape of rows.

    Rows are read by `pread`, and not through a memory map: a file that shrinks meanwhile is an error and ends nothing.
    """

    kind = ".npy"

    def __init__(self, paths: Sequence[Path]) -> None:
        self._rows: tuple[np.dtype[Any], tuple[int, ...]] | None = None
        self._offsets: list[int] = []
        super().__init__(paths)

    def _groups(self, path: Path) -> tuple[Sequence[int], int]:
        with open(open_file(path), "rb") as file:
            try:
                version = npy.read_magic(file)
                read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
                shape, fortran_order, dtype = read(file, max_header_size=_MOST_HEADER)
            except Exception as error:  # numpy raises errors of many classes for damaged headers
                raise unreadable(
                    path, f"is not an .npy file that NumPy can read: {error}", "an array of np.save"
                ) from error
            offset = file.tell()
            size = os.fstat(file.fileno()).st_size
        if dtype.hasobject:
            raise unreadable(
                path, "has Python objects", "numbers, as objects would run code of the file", "save numbers"
            )
        if not shape or (fortran_order and len(shape) > 1):
            problem = (
                "has no rows: it is one number" if not shape else "is in column order, in which rows are scattered"
            )
            raise unreadable(path, problem, "rows", "save it again: np.save(path, np.ascontiguousarray(array))")
        if size - offset < math.prod(shape) * dtype.itemsize:
            raise unreadable(path, f"ends after {size} bytes", f"{offset + math.prod(shape) * dtype.itemsize}")
        rows = (dtype, tuple(shape[1:]))
        if self._rows is None:
            self._rows = rows
        if rows != self._rows:
            problem = f"has rows of {dtype}{list(rows[1])}, and the file before it {self._rows[0]}{list(self._rows[1])}"
            raise unreadable(path, problem, "files with rows of one dtype and shape", "make one source of each kind")
        self._offsets.append(offset)
        return [0], shape[0]

    def _read_file(self, number: int, records: NDArray[np.int64]) -> list[Any]:
        assert self._rows is not None
        dtype, shape = self._rows
        row = math.prod(shape) * dtype.itemsize
        found: list[Any] = []
        descriptor = open_file(self.files[number].path)
        try:
            for run in _runs(records, row):
                first, count = int(run[0]), int(run[-1] - run[0]) + 1
                data = os.pread(descriptor, count * row, self._offsets[number] + first * row)
                if len(data) < count * row:
                    self.check_unchanged(number)
                    raise unreadable(self.files[number].path, "ends inside a row", "whole rows")
                block = np.frombuffer(bytearray(data), dtype).reshape(count, *shape)
                found += list(block if count == len(run) else block[run - first])
        finally:
            os.close(descriptor)
        return found


def _runs(records: NDArray[np.int64], row: int) -> list[NDArray[np.int64]]:
    """Returns ascending records in parts that one read takes each."""
    if row == 0:
        return [records]
    far = np.diff(records) * row > _GAP + row
    parts = np.split(records, np.flatnonzero(far) + 1)
    most = max(1, _READ // row)
    return [part[k : k + most] for part in parts for k in range(0, len(part), most)] if records.size else []
