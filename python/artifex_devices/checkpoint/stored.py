# SPDX-License-Identifier: Apache-2.0
"""The arrays of a checkpoint on disk: of this package, of torch.distributed.checkpoint, or plain safetensors files."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from artifex_devices._base.checks import failure
from artifex_devices._base.public_path import public
from artifex_devices._core import internal
from artifex_devices.checkpoint import manifest
from artifex_devices.checkpoint.readers.reader import ReadArray


@public("artifex_devices.checkpoint")
class PartMetadata(NamedTuple):
    """One stored box of an array.

    Attributes:
        file: Name of the file.
        origin: Index of the first element of the box in the array.
        shape: Shape of the box.
        nbytes: Bytes in the file.
    """

    file: str
    origin: tuple[int, ...]
    shape: tuple[int, ...]
    nbytes: int


class Stored:
    """The headers of all files of a checkpoint."""

    def __init__(self, operation: str, path: str) -> None:
        """Reads and checks the headers, again if a save replaces the checkpoint meanwhile.

        Raises:
            OSError: The folder has no checkpoint, a file cannot be read, or saves replace the checkpoint all the time.
            ValueError: A file is damaged, files are missing, or elements of an array are in no file or in several: a
                shape alone must not allocate memory.
        """
        self.path = path
        self._operation = operation
        self.files = internal.StoredCheckpoint(os.fspath(path), operation)
        self.values = manifest.values_of(operation, path, self.files.values)
        self.paths = manifest.paths_of(operation, path, self.files.paths)

    @cached_property
    def arrays(self) -> dict[str, ReadArray]:
        """The arrays, by name."""
        arrays: dict[str, ReadArray] = self.files.arrays(ReadArray)
        return arrays

    @property
    def process_count(self) -> int | None:
        """Number of processes that saved it, or None for files of other programs."""
        count: int | None = self.files.process_count
        return count

    def dtype_of(self, name: str) -> np.dtype[Any]:
        """Returns the dtype of an array; ValueError if its type in the files has no dtype here."""
        array = self.arrays[name]
        if array.dtype is None:
            raise failure(
                ValueError,
                self._operation,
                f"{name!a} is stored as {array.type}, which has no dtype here",
                expected="types such as F32",
                fix="restore the other names by `like` and strict=False",
            )
        return array.dtype
