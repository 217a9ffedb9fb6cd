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

from artifex_devices._core.data import read_rows
from artifex_devices.data.files import FileSource, open_file, unreadable

_MOST_HEADER = 10_000  # bytes; NumPy's own limit of the text of a header


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
        found = np.empty((len(records), *shape), dtype)
        descriptor = open_file(self.files[number].path)
        try:
            is_whole = read_rows(descriptor, self._offsets[number], records, found)
        finally:
            os.close(descriptor)
        if not is_whole:
            self.check_unchanged(number)
            raise unreadable(self.files[number].path, "ends inside a row", "whole rows")
        return list(found)
