# SPDX-License-Identifier: Apache-2.0
"""The arrays of a checkpoint on disk: of this package, of torch.distributed.checkpoint, or plain safetensors files."""

from __future__ import annotations

import errno
import json
import os
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from artifex_devices import _core
from artifex_devices._base.public_path import public
from artifex_devices.checkpoint import manifest

_SUFFIX = ".safetensors"
_INDEX_SUFFIX = ".safetensors.index.json"
_MAX_INDEX_BYTES = 1 << 28
_TRIES = 100


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


class StoredArray(NamedTuple):
    """One array: shape, dtype (None for a type that has no dtype here), type in the files, and bytes of its parts."""

    number: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any] | None
    type: str
    nbytes: int


class Stored:
    """The headers of all files of a checkpoint."""

    def __init__(self, operation: str, path: str) -> None:
        """Reads the headers, again if a save replaces the checkpoint meanwhile.

        Raises:
            OSError: The folder has no checkpoint, a file cannot be read, or saves replace the checkpoint all the time.
            ValueError: A file is damaged.
        """
        self.path = path
        self._operation = operation
        for number in range(_TRIES):
            folder = self._open_folder(existed=number > 0)
            try:
                self._read_headers(folder)
                if self._is_at_path(folder):  # otherwise files may have been removed before they were listed
                    return
            except (OSError, ValueError):
                if self._is_at_path(folder):
                    raise
            finally:
                if folder is not None:
                    os.close(folder)
        raise OSError(
            errno.ESTALE,
            f"{operation}: {path!r} was replaced by another save each of the {_TRIES} times that it was read; expected "
            "a checkpoint that stays while its headers are read; call it again",
        )

    def _open_folder(self, *, existed: bool) -> int | None:
        """Opens the folder, which keeps its files when a save renames it; returns None if the path is one file."""
        if os.path.isfile(self.path):
            return None
        with suppress(FileNotFoundError, NotADirectoryError):
            if os.path.isdir(self.path):
                return os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        if existed:
            problem = "was removed while it was read; expected a checkpoint that stays; read another one"
        else:
            problem = "does not exist; expected a checkpoint or a safetensors file; correct the path"
        raise FileNotFoundError(errno.ENOENT, f"{self._operation}: {self.path!r} {problem}")

    def _is_at_path(self, folder: int | None) -> bool:
        """Returns whether the path still has the folder."""
        try:
            return folder is None or os.path.samestat(os.fstat(folder), os.stat(self.path))
        except (FileNotFoundError, NotADirectoryError):
            return False

    def _read_headers(self, folder: int | None) -> None:
        manifest_path, paths = self._find_files(folder)
        self.files = _core._StoredCheckpoint(paths, manifest_path, self._operation, folder)
        self.values = manifest.values_of(self._operation, self.path, self.files.values)

    @cached_property
    def arrays(self) -> dict[str, StoredArray]:
        """The arrays, by name."""
        arrays: dict[str, StoredArray] = self.files.arrays(StoredArray)
        return arrays

    @property
    def process_count(self) -> int | None:
        """Number of processes that saved it; None for files of other programs."""
        count: int | None = self.files.process_count
        return count

    def dtype_of(self, name: str) -> np.dtype[Any]:
        """Returns the dtype of an array whose elements are all in the files.

        Raises:
            ValueError: Its type has no dtype here, or elements are missing: a shape alone must not allocate memory.
        """
        array = self.arrays[name]
        if array.dtype is None:
            raise ValueError(
                f"{self._operation}: {name!a} is stored as {array.type}, which has no dtype here; expected types such "
                "as F32; restore the other names by `like` and strict=False"
            )
        wanted = array.dtype.itemsize
        for size in array.shape:
            wanted *= size
        if array.nbytes != wanted:
            raise ValueError(
                f"{self._operation}: {name!a} has {array.nbytes} bytes in the files; expected {wanted} for "
                f"{array.dtype.name} of shape {array.shape}; a file is missing or damaged, restore another checkpoint"
            )
        return array.dtype

    def _find_files(self, folder: int | None) -> tuple[str, list[str]]:
        """The paths of checkpoint.json, or an empty text, and of the safetensors files."""
        path, operation = self.path, self._operation
        if folder is None:
            return "", [path]
        names = sorted(os.listdir(folder))
        files = [f"{path}/{name}" for name in names if name.endswith(_SUFFIX)]
        if manifest.FILE in names:
            return f"{path}/{manifest.FILE}", files
        indexes = [name for name in names if name.endswith(_INDEX_SUFFIX)]
        if indexes:
            return "", [f"{path}/{name}" for name in self._read_index(folder, f"{path}/{indexes[0]}")]
        if not files:
            raise FileNotFoundError(
                errno.ENOENT,
                f"{operation}: {path!r} has neither {manifest.FILE} nor safetensors files; expected a checkpoint; "
                "correct the path",
            )
        return "", files

    def _read_index(self, folder: int, path: str) -> list[str]:
        """The files that model.safetensors.index.json names."""
        with open(os.open(os.path.basename(path), os.O_RDONLY, dir_fd=folder), "rb") as file:
            text = file.read(_MAX_INDEX_BYTES + 1)
        try:
            names = sorted(set(json.loads(text)["weight_map"].values()))
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            raise ValueError(
                f"{self._operation}: {path!r} is not an index of safetensors files; expected JSON with a "
                '"weight_map"; download the file again'
            ) from None
        for name in names:
            if (
                not isinstance(name, str)
                or os.path.basename(name) != name
                or not name.endswith(_SUFFIX)
                or "\0" in name
            ):
                raise ValueError(
                    f"{self._operation}: {path!r} names the file {name!a}; expected names of safetensors files in "
                    "the same folder; download the file again"
                )
        return names
