# SPDX-License-Identifier: Apache-2.0
"""Records of ArrayRecord files, read by the package array-record."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices.data.files import FileSource, unreadable

_OPTIONS = "readahead_buffer_size:0,max_parallelism:0"  # for reading at random, by the package's documentation
_MOST_OPEN = 128  # readers


class ArrayRecordFiles(FileSource):
    """The records of ArrayRecord files: each sample is bytes."""

    kind = "ArrayRecord"

    def __init__(self, paths: Sequence[Path]) -> None:
        self._forget_readers()
        super().__init__(paths)

    def _forget_readers(self) -> None:
        self._readers: dict[Path, Any] = {}
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_readers", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget_readers()

    def _groups(self, path: Path) -> tuple[Sequence[int], int]:
        return [0], int(self._reader(path).num_records())

    def _reader(self, path: Path) -> Any:
        if self._process != os.getpid():  # a fork: the readers are the parent's
            self._forget_readers()
        with self._lock:
            reader = self._readers.get(path)
            if reader is None:
                if len(self._readers) >= _MOST_OPEN:
                    self._readers.clear()  # those in use stay open until their read has ended
                reader = self._readers[path] = _open_reader(path)
        return reader

    def _read_file(self, number: int, records: NDArray[np.int64]) -> list[Any]:
        path = self.files[number].path
        try:
            found = list(self._reader(path).read(records.tolist()))
        except Exception:
            with self._lock:
                self._readers.pop(path, None)  # a reader reads nothing after an error
            raise
        if len(found) != len(records):
            raise unreadable(path, f"gave {len(found)} records for {len(records)}", "all records")
        return found


def _open_reader(path: Path) -> Any:
    try:
        from array_record.python.array_record_module import ArrayRecordReader
    except ImportError as error:
        raise ImportError(
            f"data.source: array_record cannot be imported ({error}); expected it for ArrayRecord files; "
            "pip install 'artifex_devices[array-record]' installs it"
        ) from error
    try:
        reader = ArrayRecordReader(str(path), options=_OPTIONS)
        if not reader.ok():
            reader.read([0])  # raises what is wrong with the file
        return reader
    except Exception as error:
        raise unreadable(
            path, f"is not an ArrayRecord file that array_record can read: {error}", "a complete file"
        ) from error
