# SPDX-License-Identifier: Apache-2.0
"""Writer: the files of a new checkpoint in one format, each of which is written in order and once."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from artifex_devices._base.checks import failure
from artifex_devices._core import internal
from artifex_devices.checkpoint.manifest import Path, Value
from artifex_devices.checkpoint.named_leaves import list_of
from artifex_devices.checkpoint.readers.reader import Box

_OPERATION = "checkpoint.convert"  # the only user of writers
Record = dict[str, Any]  # JSON of a finished file: what is_finished compares


class TargetBox(NamedTuple):
    """A box of an array of the new checkpoint: name, shape and dtype of the array, and the box."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    box: Box

    @property
    def nbytes(self) -> int:
        """Bytes of the box."""
        return self.dtype.itemsize * math.prod(self.box[1])


class TargetFile(NamedTuple):
    """A file of the new checkpoint: its name in the folder, and its boxes in the order in which they are written."""

    name: str
    boxes: tuple[TargetBox, ...]


@dataclass(frozen=True)
class Target:
    """What a writer writes.

    Attributes:
        operation: Public function, for messages.
        path: Absolute path of the new checkpoint: a folder, or a file for a writer with `writes_one_file`.
        arrays: Shape and dtype of each array, by name, in their order.
        parts: For each future process the boxes of arrays that its file has: they cover each array exactly once.
        values: Python values by name; empty for a writer without `has_values`.
        paths: Paths of leaves in their tree, by name, for formats that store them.
        max_shard_size: Largest number of bytes of a file, or None.
    """

    operation: str
    path: str
    arrays: Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]
    parts: Sequence[Mapping[str, Sequence[Box]]]
    values: Mapping[str, Value]
    paths: Mapping[str, Path]
    max_shard_size: int | None = None

    def whole(self, name: str) -> TargetBox:
        """Returns the box that is the whole array."""
        shape, dtype = self.arrays[name]
        return TargetBox(name, shape, dtype, ((0,) * len(shape), shape))


class FileWriter(ABC):
    """Writes one file. Only one thread uses it."""

    @abstractmethod
    def write(self, box: TargetBox, origin: tuple[int, ...], piece: np.ndarray[Any, Any]) -> None:
        """Writes the next piece of a box: row-major, contiguous in the box, and after the pieces before it.

        Boxes come in the order of TargetFile. A box of size 0 comes as one empty piece.

        Args:
            box: Box of the TargetFile.
            origin: Index in the array of the first element of the piece.
            piece: Elements.
        """

    @abstractmethod
    def finish(self) -> Record:
        """Completes and closes the file, waits for the storage, and returns what `is_finished` compares."""

    @abstractmethod
    def close(self) -> None:
        """Closes the file after an error; does nothing after `finish`."""


class Writer(ABC):
    """A new checkpoint in one format. It opens nothing until `begin`.

    Attributes:
        format: Name of the format.
        has_values: Whether the format stores Python values.
    """

    format: ClassVar[str]
    has_values: ClassVar[bool] = False

    def __init__(self, target: Target) -> None:
        """Raises ValueError that names the arrays that the format cannot store."""
        self.target = target

    def _check_types(self, place: str, has_type: Callable[[np.dtype[Any]], object]) -> None:
        """Raises ValueError that names the arrays whose dtypes the format lacks; `place` begins the message."""
        arrays = self.target.arrays
        unknown = [name for name, (_, dtype) in arrays.items() if not has_type(dtype)]
        if unknown:
            dtypes = sorted({arrays[name][1].name for name in unknown})
            raise failure(
                ValueError,
                self.target.operation,
                f"{place} no type for {', '.join(dtypes)}, the dtype of {list_of(unknown)}",
                expected="another dtype",
                fix='cast them by rules.cast, or pass format="artifex"',
            )

    @property
    def writes_one_file(self) -> bool:
        """Whether the target is a file, so that `files` returns one, and `finish` writes none."""
        return False

    @abstractmethod
    def files(self) -> list[TargetFile]:
        """Returns the files with arrays, in the order in which they are written. Names are the same at each call."""

    def names(self) -> tuple[str, ...]:
        """Returns the names of the files with arrays."""
        return tuple(file.name for file in self.files())

    @abstractmethod
    def begin(self, folder: str, file: TargetFile) -> FileWriter:
        """Creates a file in a folder, or replaces the rest of an interrupted one."""

    def finish(self, folder: str) -> None:  # noqa: B027
        """Writes files that the arrays do not need, such as an index, after all others, and syncs them."""

    def is_finished(self, folder: str, file: TargetFile, record: Record, count: Callable[[int], None]) -> bool:
        """Returns whether a file is still as `FileWriter.finish` of an interrupted conversion left it.

        `count` is called with the numbers of bytes that were compared, and an error of it is raised.
        """
        return is_stream(f"{folder}/{file.name}", record, count)


class Stream:
    """A file that is written from its beginning to its end. The first bytes may be written last."""

    def __init__(self, path: str, *, head_bytes: int = 0) -> None:
        with suppress(FileNotFoundError):
            os.unlink(path)  # the rest of an interrupted conversion
        self._file: Any = internal.StreamedFile(path, _OPERATION, head_bytes)

    @property
    def nbytes(self) -> int:
        """Bytes so far, with the first `head_bytes`."""
        count: int = self._file.bytes
        return count

    def write(self, data: bytes | np.ndarray[Any, Any]) -> None:
        """Appends bytes, or the elements of a row-major ndarray."""
        self._file.write(data if isinstance(data, bytes) else data.reshape(-1).view(np.uint8).data)

    def finish(self, head: bytes = b"") -> Record:
        """Writes the first `head_bytes` bytes, waits for the storage and closes the file."""
        self._file.finish(head)
        checksums = [internal.crc32c(head, 0), self._file.checksum]
        record = {"bytes": self._file.bytes, "head": len(head), "crc32c": checksums}
        self.close()
        return record

    def close(self) -> None:
        """Closes the file."""
        self._file = None


def is_stream(path: str, record: Record, count: Callable[[int], None]) -> bool:
    """Returns whether a file has the size and the checksums that `Stream.finish` returned; see `Writer.is_finished`."""
    try:
        with open(path, "rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_size != record["bytes"]:
                return False
            checksums = [internal.crc32c(file.read(record["head"]), 0), 0]
            while data := file.read(1 << 20):
                checksums[1] = internal.crc32c(data, checksums[1])
                count(len(data))
            return bool(checksums == record["crc32c"])
    except FileNotFoundError:
        return False
