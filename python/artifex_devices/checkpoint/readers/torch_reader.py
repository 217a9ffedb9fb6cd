# SPDX-License-Identifier: Apache-2.0
"""Reader of files of torch.save, such as pytorch_model.bin and its shards, through PyTorch with weights_only."""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from artifex_devices._base.checks import failure
from artifex_devices._base.regular_file import read_regular_file
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.text import counted
from artifex_devices.checkpoint.manifest import VALUE_TYPES, Value
from artifex_devices.checkpoint.named_leaves import list_of
from artifex_devices.checkpoint.readers.located_arrays import ArchiveReader, LocatedArray, LocatedArrays, LocatedPart
from artifex_devices.checkpoint.readers.reader import Box, ReadArray, Reader
from artifex_devices.checkpoint.readers.torch_archive import ARCHIVE_ERRORS, INDEX, axes_of, model_files, storages_of
from artifex_devices.checkpoint.readers.torch_library import bits_of, dtype_of, fake_tensors, import_torch, load
from artifex_devices.checkpoint.readers.zip_members import BoundedFile, StoredBytes, open_regular

_MAX_INDEX = 1 << 28  # bytes
_MAX_DEPTH = 64  # of dicts and lists
_MOST_REPEATS = 1024  # of the elements of a storage in a tensor: a shape alone must not allocate memory


class _View(NamedTuple):
    """A tensor that is not dense: its strides, and its first element in the storage."""

    strides: tuple[int, ...]
    offset: int


class TorchReader(ArchiveReader):
    """Reads boxes of the tensors of files of torch.save."""

    def __init__(self, operation: str, path: str) -> None:
        self._operation = operation
        self._torch = import_torch(operation, f"{path!r} has files of torch.save")
        index, files = _files_of(operation, path)
        places = None if index is None else _places(operation, index)
        if places is not None:
            files = [os.path.join(os.path.dirname(str(index)), name) for name in sorted(set(places.values()))]
        self._located: dict[str, LocatedArray] = {}
        self._views: dict[str, _View] = {}
        self._in_memory: dict[str, np.ndarray[Any, Any]] = {}
        tensors: dict[str, ReadArray] = {}
        values: dict[str, Value] = {}
        left_out: list[str] = []
        notes = [f"It is torch: {counted(len(files), 'file')} of torch.save, read by PyTorch with weights_only=True."]
        for number, file in enumerate(files):
            found = self._file(file, number)
            if places is not None:
                stated = {name for name, place in places.items() if place == os.path.basename(file)}
                self._check_names(file, stated, {name for name, item in found.items() if isinstance(item, ReadArray)})
            for name, item in found.items():
                if name in tensors or name in values:
                    raise self._failure(
                        file, f"{name!a} occurs twice", "each name in one file", "pass the path of one file"
                    )
                if isinstance(item, ReadArray):
                    tensors[name] = item
                elif type(item) in VALUE_TYPES:
                    values[name] = item
                else:
                    left_out.append(name)
        self._arrays_in_files = LocatedArrays(operation, files, self._located)
        if self._in_memory:
            notes.append("Files of PyTorch before 1.6 are loaded completely.")
            self._kept_bytes = sum(array.nbytes for array in self._in_memory.values())
        if left_out:
            notes.append(f"Left out, because they are neither dense tensors nor values: {list_of(left_out)}.")
        super().__init__(path, "torch", tuple(notes), tensors, values)

    def _read(self, operation: str, name: str, dtype: np.dtype[Any], box: Box, verify: bool) -> np.ndarray[Any, Any]:
        origin, shape = box
        view = self._views.get(name)
        if name in self._in_memory:
            slices = tuple(slice(begin, begin + size) for begin, size in zip(origin, shape, strict=True))
            return self._in_memory[name][slices].copy()
        if view is None:
            return self._arrays_in_files.read(operation, name, dtype, box)
        if 0 in shape:
            return np.empty(shape, dtype)
        begin = view.offset + _dot(origin, view.strides)
        last = _dot((size - 1 for size in shape), view.strides)
        span = self._arrays_in_files.read(operation, name, dtype, ((begin,), (last + 1,)))
        strides = tuple(stride * dtype.itemsize for stride in view.strides)
        return np.lib.stride_tricks.as_strided(span, shape, strides).copy()

    def _close(self) -> None:
        super()._close()
        self._in_memory.clear()

    def _verify(self, operation: str, name: str, dtype: np.dtype[Any]) -> Iterator[int]:
        verify = Reader._verify if name in self._in_memory else ArchiveReader._verify
        return verify(self, operation, name, dtype)

    def _unchecked(self, name: str, box: Box) -> Sequence[str]:
        return () if name in self._in_memory else super()._unchecked(name, box)

    def _checksums(self) -> str:
        return self._checksums_of("CRC-32", [*self._arrays_in_files.without_checksums, *self._in_memory])

    def _file(self, path: str, number: int) -> dict[str, Any]:
        """Returns the items of a file by their names, with a ReadArray for each tensor that can be read."""
        with open_regular(self._operation, path) as file:
            storages = None
            if file.read(2) == b"PK":
                try:
                    with zipfile.ZipFile(BoundedFile(os.dup(file.fileno()))) as archive:
                        storages = storages_of(archive, file.fileno())
                except ARCHIVE_ERRORS as error:
                    problem = f"it is damaged: {safe_repr(error)}"
                    raise self._failure(path, problem, "a file of torch.save", "copy the file again") from None
            file.seek(0)
            source = io.BufferedReader(file)
            with nullcontext() if storages is None else fake_tensors():
                content = load(self._torch, self._operation, path, source, map_location="cpu")
                return {
                    name: self._add_tensor(path, number, name, item, storages) if self._is_tensor(item) else item
                    for name, item in _items(content, "", 0)
                }

    def _is_tensor(self, item: object) -> bool:
        torch = self._torch
        if not isinstance(item, torch.Tensor):
            return False
        return item.layout == torch.strided and not (item.is_quantized or item.is_conj() or item.is_neg())

    def _add_tensor(
        self, path: str, number: int, name: str, tensor: Any, storages: dict[int, StoredBytes] | None
    ) -> ReadArray:
        """Notes where the elements of a tensor are."""
        shape, strides = tuple(tensor.shape), tuple(tensor.stride())
        dtype = dtype_of(str(tensor.dtype))
        found = ReadArray(shape, dtype, str(tensor.dtype))
        if dtype is None:
            return found
        if storages is None:
            self._in_memory[name] = bits_of(self._torch, tensor).view(dtype).reshape(shape)
            return found
        storage = tensor.untyped_storage()
        begin, nbytes = getattr(storage, "_checkpoint_offset", None), storage.nbytes()
        if begin is None:
            problem = f"PyTorch {self._torch.__version__} does not report where its elements are"
            raise self._failure(path, problem, "PyTorch 2.7 or later", "run `pip install -U torch`")
        first = 0 if 0 in shape else int(tensor.storage_offset())
        last = first + _dot((size - 1 for size in shape), strides)
        is_outside = min((first, *strides)) < 0 or (0 not in shape and (last + 1) * dtype.itemsize > nbytes)
        stored = storages.get(begin)
        if (
            is_outside
            or stored is None
            or stored.nbytes < nbytes
            or math.prod(shape) * dtype.itemsize > _MOST_REPEATS * nbytes
        ):
            problem = f"the storage of {name!a} has fewer bytes than its shape needs"
            raise self._failure(path, problem, "a file of torch.save", "copy the file again")
        axes = axes_of(shape, strides)
        if axes is None:
            self._views[name] = _View(strides, first)
            shape, axes, first = (last + 1,), (0,), 0
        part = LocatedPart((0,) * len(shape), shape, number, begin + first * dtype.itemsize, stored)
        self._located[name] = LocatedArray(dtype, shape, axes, (part,))
        return found

    def _failure(self, path: str, problem: str, expected: str, fix: str) -> ValueError:
        return failure(ValueError, self._operation, f"{path!r}: {problem}", expected=expected, fix=fix)

    def _check_names(self, file: str, stated: set[str], found: set[str]) -> None:
        missing, extra = sorted(stated - found), sorted(found - stated)
        if not missing and not extra:
            return
        problem = (
            f"it lacks {list_of(missing)}" if missing else f"it has {list_of(extra)}, which the index does not name"
        )
        raise self._failure(file, problem, "the tensors of the index", "download the folder again")


def _items(value: Any, name: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Yields the leaves of dicts and lists, by their names."""
    if isinstance(value, (Mapping, list, tuple)) and depth < _MAX_DEPTH:
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _items(item, f"{name}.{key}" if name else str(key), depth + 1)
    else:
        yield name or "value", value


def _dot(indices: Iterable[int], strides: tuple[int, ...]) -> int:
    return sum(map(mul, indices, strides))


def _files_of(operation: str, path: str) -> tuple[str | None, list[str]]:
    """Returns the index of a path, or None, and the files without an index."""
    if not os.path.isdir(path):
        return (path, []) if path.endswith(INDEX) else (None, [path])
    names = sorted(os.listdir(path))
    indexes = [name for name in names if name.endswith(INDEX)]
    if len(indexes) == 1:
        return os.path.join(path, indexes[0]), []
    files = model_files(names)
    if len(files) == 1 and not indexes:
        return None, [os.path.join(path, files[0])]
    raise failure(
        ValueError,
        operation,
        f"{path!r} has {list_of(indexes or files)}",
        expected="one file, or one index that says which files belong together",
        fix=f"pass the path of one, such as {os.path.join(path, (indexes or files)[0])!r}",
    )


def _places(operation: str, index: str) -> dict[str, str]:
    """Returns the file name of each tensor that an index names."""
    try:
        places = json.loads(read_regular_file(index, _MAX_INDEX))["weight_map"]
        if not isinstance(places, dict) or not places:
            raise ValueError("its weight_map is not an object with names")
        for file in places.values():
            if not isinstance(file, str) or "/" in file or not file.endswith(".bin"):
                raise ValueError(f"it names the file {safe_repr(file)}")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise failure(
            ValueError,
            operation,
            f"{index!r} is not an index of files of torch.save: {safe_repr(error)}",
            expected='a "weight_map" of names to .bin files of the folder',
            fix="download the file again",
        ) from None
    return places
