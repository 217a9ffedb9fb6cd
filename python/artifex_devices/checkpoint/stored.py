# SPDX-License-Identifier: Apache-2.0
"""The arrays of a checkpoint on disk: of this package, of torch.distributed.checkpoint, or plain safetensors files."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artifex_devices import _core
from artifex_devices._base.public_path import public
from artifex_devices.checkpoint import folders, manifest
from artifex_devices.checkpoint.manifest import Manifest

_SUFFIX = ".safetensors"
_INDEX_SUFFIX = ".safetensors.index.json"
_MAX_INDEX_BYTES = 1 << 28


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


class StoredArray:
    """One array: its shape, its dtype or the type in the files that has no dtype here, and its parts."""

    __slots__ = ("dtype", "numbers", "parts", "shape", "type")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any] | None, type_name: str) -> None:
        self.shape = shape
        self.dtype = dtype
        self.type = type_name
        self.parts: list[PartMetadata] = []
        self.numbers: list[int] = []  # of the parts, in the list of all tensors


class Stored:
    """The headers of all files of a checkpoint."""

    def __init__(self, operation: str, path: Path) -> None:
        """Reads the headers.

        Raises:
            OSError: The folder has no checkpoint, or a file cannot be read.
            ValueError: A file is damaged.
        """
        self.path = path
        self._operation = operation
        self.manifest, paths = self._find_files()
        self.files = _core._StoredFiles([str(path) for path in paths], operation)
        self.arrays: dict[str, StoredArray] = {}
        if self.manifest is not None:
            for name, (shape, dtype) in self.manifest.arrays.items():
                self.arrays[name] = StoredArray(shape, dtype, "")
        file_names = [path.name for path in paths]
        for number, row in enumerate(self.files.tensors):
            self._add(number, file_names, *row)

    @property
    def values(self) -> dict[str, Any]:
        """The Python values, by name."""
        return {} if self.manifest is None else self.manifest.values

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
        has = sum(part.nbytes for part in array.parts)
        if has != wanted:
            raise ValueError(
                f"{self._operation}: {name!a} has {has} bytes in the files; expected {wanted} for {array.dtype.name} "
                f"of shape {array.shape}; a file is missing or damaged, restore another checkpoint"
            )
        return array.dtype

    def _find_files(self) -> tuple[Manifest | None, list[Path]]:
        path, operation = self.path, self._operation
        if path.is_file():
            return None, [path]
        if not path.is_dir():
            raise FileNotFoundError(
                errno.ENOENT,
                f"{operation}: {str(path)!r} does not exist; expected a checkpoint or a safetensors file; "
                "correct the path",
            )
        names = sorted(os.listdir(path))
        files = [path / name for name in names if name.endswith(_SUFFIX)]
        if folders.is_checkpoint(path):
            return manifest.read(operation, path), files
        indexes = [name for name in names if name.endswith(_INDEX_SUFFIX)]
        if indexes:
            return None, [path / name for name in self._read_index(path / indexes[0])]
        if not files:
            raise FileNotFoundError(
                errno.ENOENT,
                f"{operation}: {str(path)!r} has neither {manifest.FILE} nor safetensors files; expected a checkpoint; "
                "correct the path",
            )
        return None, files

    def _read_index(self, path: Path) -> list[str]:
        """The files that model.safetensors.index.json names."""
        with path.open("rb") as file:
            text = file.read(_MAX_INDEX_BYTES + 1)
        try:
            names = sorted(set(json.loads(text)["weight_map"].values()))
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            raise ValueError(
                f"{self._operation}: {str(path)!r} is not an index of safetensors files; expected JSON with a "
                '"weight_map"; download the file again'
            ) from None
        for name in names:
            if not isinstance(name, str) or Path(name).name != name or not name.endswith(_SUFFIX) or "\0" in name:
                raise ValueError(
                    f"{self._operation}: {str(path)!r} names the file {name!a}; expected names of safetensors files in "
                    "the same folder; download the file again"
                )
        return names

    def _add(
        self,
        number: int,
        files: list[str],
        name: str,
        type_name: str,
        dtype_name: str | None,
        shape: tuple[int, ...],
        origin: tuple[int, ...] | None,
        global_shape: tuple[int, ...] | None,
        file: int,
        nbytes: int,
    ) -> None:
        """Adds a tensor to its array."""
        found = self.arrays.get(name)
        start = (0,) * len(shape) if origin is None else origin
        if self.manifest is not None:
            if found is None:
                raise ValueError(
                    f"{self._operation}: {str(self.path / files[file])!r} has {name!a}, which {manifest.FILE} does not "
                    "list; expected files of one save; restore another checkpoint"
                )
            rank = len(found.shape)  # complex numbers are stored with a further dimension
            found.type = type_name
            found.parts.append(PartMetadata(files[file], start[:rank], shape[:rank], nbytes))
            found.numbers.append(number)
            return
        whole = tuple(a + b for a, b in zip(start, shape, strict=True)) if global_shape is None else global_shape
        if found is None:
            dtype = None if dtype_name is None else _core._dtype_from_name(dtype_name)
            found = self.arrays[name] = StoredArray(whole, dtype, type_name)
        elif len(found.shape) != len(whole) or found.type != type_name:
            raise ValueError(
                f"{self._operation}: the parts of {name!a} have several types or numbers of dimensions; expected parts "
                "of one array; restore another checkpoint"
            )
        found.shape = tuple(map(max, found.shape, whole))
        found.parts.append(PartMetadata(files[file], start, shape, nbytes))
        found.numbers.append(number)
