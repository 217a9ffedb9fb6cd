# SPDX-License-Identifier: Apache-2.0
"""Reader of checkpoints of torch.distributed.checkpoint in .distcp files.

Each item of a file is an archive of torch.save. PyTorch reads its header, without the elements; the core reads those.
"""

from __future__ import annotations

import io
import math
import os
import zipfile
from contextlib import ExitStack
from typing import Any

import numpy as np

from artifex_devices._base.checks import failure
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.text import counted
from artifex_devices.checkpoint.manifest import VALUE_TYPES
from artifex_devices.checkpoint.named_leaves import list_of
from artifex_devices.checkpoint.readers.distcp_metadata import FILE, Chunk, Place, StoredTensor, read_metadata
from artifex_devices.checkpoint.readers.located_arrays import ArchiveReader, LocatedArray, LocatedArrays, LocatedPart
from artifex_devices.checkpoint.readers.reader import Box, ReadArray
from artifex_devices.checkpoint.readers.torch_archive import ARCHIVE_ERRORS, axes_of, storages_of
from artifex_devices.checkpoint.readers.torch_library import dtype_of, import_torch, load
from artifex_devices.checkpoint.readers.zip_members import StoredBytes, open_regular, read_stored, stored_bytes

_MAX_OBJECT = 1 << 20  # bytes of a Python object, or of the header of a tensor


class _Slice(io.RawIOBase):
    """The bytes of one item of a file, as a file."""

    def __init__(self, number: int, place: Place) -> None:
        super().__init__()
        self._number = number
        self._place = place
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self._at = max(0, offset + (0, self._at, self._place.nbytes)[whence])
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        size = max(0, min(len(buffer), self._place.nbytes - self._at))
        content = os.pread(self._number, size, self._place.begin + self._at)
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)


class DistcpReader(ArchiveReader):
    """Reads boxes of the tensors of .distcp files."""

    def __init__(self, operation: str, path: str) -> None:
        self._operation = operation
        self._torch = import_torch(operation, f"{path!r} has .distcp files")
        tensors, objects = read_metadata(operation, path)
        places = [chunk.place for tensor in tensors.values() for chunk in tensor.chunks] + list(objects.values())
        self._file_paths = {name: os.path.join(path, name) for name in sorted({place.file for place in places})}
        self._files: dict[str, io.FileIO] = {}
        self._headers: dict[bytes, Any] = {}
        with ExitStack() as stack:
            for name, file in self._file_paths.items():
                self._files[name] = stack.enter_context(open_regular(operation, file))
            located = {name: self._located(name, tensor) for name, tensor in tensors.items() if dtype_of(tensor.dtype)}
            found = {name: self._object(place) for name, place in objects.items()}
        self._arrays_in_files = LocatedArrays(operation, list(self._file_paths.values()), located)
        values = {name: value for name, value in found.items() if type(value) in VALUE_TYPES}
        left_out = [name for name in found if name not in values]
        notes = [
            f"It is dcp: {FILE} of torch.distributed.checkpoint names {counted(len(self._file_paths), '.distcp file')}."
        ]
        if left_out:
            notes.append(f"Left out, because they are neither tensors nor values: {list_of(left_out)}.")
        super().__init__(
            path,
            "dcp",
            tuple(notes),
            {name: ReadArray(tensor.shape, dtype_of(tensor.dtype), tensor.dtype) for name, tensor in tensors.items()},
            values,
        )

    def _read(self, operation: str, name: str, dtype: np.dtype[Any], box: Box, verify: bool) -> np.ndarray[Any, Any]:
        return self._arrays_in_files.read(operation, name, dtype, box)

    def _located(self, name: str, tensor: StoredTensor) -> LocatedArray:
        numbers = {file: number for number, file in enumerate(self._file_paths)}
        dtype = dtype_of(tensor.dtype)
        assert dtype is not None
        parts, all_axes = [], set()
        for chunk in tensor.chunks:
            if 0 in chunk.shape:
                continue
            axes, begin, storage = self._elements(name, chunk, tensor.dtype, dtype.itemsize)
            all_axes.add(axes)
            parts.append(LocatedPart(chunk.origin, chunk.shape, numbers[chunk.place.file], begin, storage))
        if len(all_axes) > 1:
            raise self._damaged(name, "its parts have their dimensions in several orders")
        axes = all_axes.pop() if all_axes else tuple(range(len(tensor.shape)))
        if not parts:  # so that an array without elements is checked too
            parts = [LocatedPart((0,) * len(tensor.shape), tensor.shape, 0, 0)]
        return LocatedArray(dtype, tensor.shape, axes, tuple(parts))

    def _elements(self, name: str, chunk: Chunk, dtype: str, itemsize: int) -> tuple[tuple[int, ...], int, StoredBytes]:
        """Returns the dimensions in the order of the bytes of a chunk, its first byte in the file, and its storage."""
        place = chunk.place
        number = self._files[place.file].fileno()
        try:
            with zipfile.ZipFile(io.BufferedReader(_Slice(number, place))) as archive:
                storages = storages_of(archive, number, place.begin)
                (storage,) = storages.values()
                tensor = self._header(archive, place)
        except ARCHIVE_ERRORS as error:
            raise self._damaged(name, f"a part cannot be read: {safe_repr(error)[:300]}") from None
        if tuple(tensor.shape) != chunk.shape or str(tensor.dtype) != dtype:
            raise self._damaged(name, f"a part of shape {chunk.shape} has shape {tuple(tensor.shape)} in its file")
        axes = axes_of(chunk.shape, tensor.stride())
        if axes is None:
            raise self._damaged(name, f"a part is not dense, with strides {tensor.stride()}")
        offset = int(tensor.storage_offset()) * itemsize
        if offset + math.prod(chunk.shape) * itemsize > storage.nbytes:
            raise self._damaged(name, f"a part has a storage of {storage.nbytes} bytes")
        if storage.begin + storage.nbytes > place.begin + place.nbytes:
            raise self._damaged(name, "a part ends after its item")
        return axes, storage.begin + offset, storage

    def _header(self, archive: zipfile.ZipFile, place: Place) -> Any:
        """Returns the tensor of an item without its elements. PyTorch reads equal headers once."""
        (info,) = (info for info in archive.infolist() if info.filename.endswith("/data.pkl"))
        if info.file_size > _MAX_OBJECT:
            raise ValueError(f"its header has {info.file_size} bytes")
        number = self._files[place.file].fileno()
        header = read_stored(number, stored_bytes(number, info, place.begin))
        if header not in self._headers:
            source = io.BufferedReader(_Slice(number, place))
            path = self._file_paths[place.file]
            self._headers[header] = load(self._torch, self._operation, path, source, map_location="meta")
        return self._headers[header]

    def _object(self, place: Place) -> Any:
        if place.nbytes > _MAX_OBJECT:
            return None
        source = io.BufferedReader(_Slice(self._files[place.file].fileno(), place))
        try:
            return load(self._torch, self._operation, self._file_paths[place.file], source)
        except ValueError:
            return None  # an object of a class: left out, with a note

    def _damaged(self, name: str, problem: str) -> ValueError:
        return failure(
            ValueError,
            self._operation,
            f"{name!a} is not read: {problem}",
            expected="dense tensors as torch.distributed.checkpoint.save writes them",
            fix="copy the checkpoint again, or save it again from contiguous tensors",
        )
