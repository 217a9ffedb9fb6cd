# SPDX-License-Identifier: Apache-2.0
"""Writer of checkpoints of Orbax: a folder for each array, in the format Zarr 2 without compression.

A chunk of Zarr is then a file of row-major elements, so no library is needed.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from typing import Any, TypeVar

import numpy as np

from artifex_devices._base.checks import failure
from artifex_devices.checkpoint.folders import sync
from artifex_devices.checkpoint.manifest import Value
from artifex_devices.checkpoint.named_leaves import list_of
from artifex_devices.checkpoint.readers.orbax_metadata import FILE, is_name_within
from artifex_devices.checkpoint.writers.writer import (
    FileWriter,
    Record,
    Stream,
    Target,
    TargetBox,
    TargetFile,
    Writer,
    is_stream,
)

_CHUNK_BYTES = 32 << 20
_GROUP_BYTES = 64 << 20  # of the chunks that are synced together
_GROUP_CHUNKS = 256  # which are open files
_SYNCS = 16  # at once: the journal of a file system completes them in one step
# Types of ml_dtypes that tensorstore's driver "zarr" has, under its names.
_ML_DTYPES = (
    "bfloat16", "float8_e3m4", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "int4",
)  # fmt: skip
_DICT_KEY = 2  # of Orbax: the type of a key in a path


class OrbaxWriter(Writer):
    """Writes each chunk of each array to a file. Names are split at dots into the keys of nested dicts."""

    format = "orbax"
    has_values = True

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        arrays = target.arrays
        self._refuse(
            [name for name, (shape, _) in arrays.items() if 0 in shape],
            "Orbax cannot store arrays of size 0",
            "arrays with elements",
            "leave them out by rules.drop",
        )
        self._refuse(
            [name for name, value in target.values.items() if _scalar(value) is None],
            "Orbax cannot store texts, complex numbers, and integers of more than 64 bits as leaves",
            "other numbers",
            'pass format="artifex"',
        )
        self._check_types("arrays of Orbax have", _type)
        names = [*arrays, *target.values]
        inner = {name[:end] for name in names for end in range(len(name)) if name[end] == "."}
        self._refuse(
            [name for name in names if name in inner or not is_name_within(name)],
            "names are paths in nested dicts of Orbax, and these are not leaves there",
            "names that are not the beginning of other names, and not '..'",
            "rename them by rules.rename",
        )
        self.chunks = {name: self._chunk(name) for name in arrays}

    def files(self) -> list[TargetFile]:
        """Returns groups of chunks, named by their first one. Each box is a chunk, which has a file of its own."""
        groups: list[list[TargetBox]] = []
        nbytes = 0
        for box in self._chunks():
            if not groups or nbytes + box.nbytes > _GROUP_BYTES or len(groups[-1]) == _GROUP_CHUNKS:
                groups.append([])
                nbytes = 0
            groups[-1].append(box)
            nbytes += box.nbytes
        return [TargetFile(self.path(group[0]), tuple(group)) for group in groups]

    def names(self) -> tuple[str, ...]:
        """Returns the names of the files of all chunks."""
        return tuple(map(self.path, self._chunks()))

    def path(self, box: TargetBox) -> str:
        """Returns the name of the file of a chunk."""
        index = [begin // size for begin, size in zip(box.box[0], self.chunks[box.name], strict=True)]
        return f"{box.name}/{'.'.join(map(str, index)) or '0'}"

    def begin(self, folder: str, file: TargetFile) -> FileWriter:
        """Prepares for the files of a group, which replace the rest of an interrupted one."""
        return _GroupWriter(self, folder)

    def is_finished(self, folder: str, file: TargetFile, record: Record, count: Callable[[int], None]) -> bool:
        """Returns whether the files of a group are as `_GroupWriter.finish` left them."""
        chunks = zip(file.boxes, record["chunks"], strict=True)
        return all(is_stream(f"{folder}/{self.path(box)}", chunk, count) for box, chunk in chunks)

    def finish(self, folder: str) -> None:
        """Writes the headers of the arrays and the metadata of the tree."""
        arrays, values = self.target.arrays, self.target.values

        def write_array(name: str) -> None:
            shape, dtype = arrays[name]
            _write_header(f"{folder}/{name}", shape, self.chunks[name], dtype)

        def write_value(name: str) -> None:
            scalar = _scalar(values[name])
            assert scalar is not None
            os.makedirs(f"{folder}/{name}", exist_ok=True)
            _write_header(f"{folder}/{name}", (), (), scalar.dtype)
            _write_file(f"{folder}/{name}/0", scalar.tobytes())

        _at_once(write_array, arrays)
        _at_once(write_value, values)
        tree = dict.fromkeys(arrays, "np.ndarray") | dict.fromkeys(values, "scalar")
        document = {
            "tree_metadata": {str(tuple(name.split("."))): _entry(name, kind) for name, kind in tree.items()},
            "use_ocdbt": False,
            "use_zarr3": False,
            "store_array_data_equal_to_fill_value": True,
            "custom_metadata": None,
        }
        _write_json(f"{folder}/{FILE}", document)
        now = time.time_ns()
        _write_json(f"{folder}/_CHECKPOINT_METADATA", {"init_timestamp_nsecs": now, "commit_timestamp_nsecs": now})
        _at_once(sync, [inner for inner, _, _ in os.walk(folder)])

    def _chunks(self) -> Iterator[TargetBox]:
        for name, chunk in self.chunks.items():
            shape, dtype = self.target.arrays[name]
            for origin in itertools.product(*map(range, itertools.repeat(0), shape, chunk)):
                size = tuple(min(part, end - at) for part, end, at in zip(chunk, shape, origin, strict=True))
                yield TargetBox(name, shape, dtype, (origin, size))

    def _chunk(self, name: str) -> tuple[int, ...]:
        """Returns the shape of the chunks of an array: that of its first part, with fewer of the first indices."""
        shape, dtype = self.target.arrays[name]
        parts = [box for part in self.target.parts for box in part.get(name, ())]
        chunk = list(parts[0][1] if parts else shape)
        for axis in range(len(chunk)):
            below = dtype.itemsize * math.prod(chunk[axis + 1 :])
            chunk[axis] = max(1, min(chunk[axis], _CHUNK_BYTES // below))
        return tuple(chunk)

    def _refuse(self, names: list[str], problem: str, expected: str, fix: str) -> None:
        if names:
            problem = f"{problem}: {list_of(names)}"
            raise failure(ValueError, self.target.operation, problem, expected=expected, fix=fix)


class _GroupWriter(FileWriter):
    """Writes the files of chunks, and syncs them together."""

    def __init__(self, writer: OrbaxWriter, folder: str) -> None:
        self._writer = writer
        self._folder = folder
        self._streams: list[Stream] = []
        self._folders: dict[str, None] = {}
        self._whole: np.ndarray[Any, Any] | None = None  # the last chunk of a dimension: its file has a whole one too

    def write(self, box: TargetBox, origin: tuple[int, ...], piece: np.ndarray[Any, Any]) -> None:
        if origin == box.box[0]:
            self._end_chunk()
            path = f"{self._folder}/{self._writer.path(box)}"
            folder = os.path.dirname(path)
            if folder not in self._folders:
                os.makedirs(folder, exist_ok=True)
                self._folders[folder] = None
            self._streams.append(Stream(path))
            chunk = self._writer.chunks[box.name]
            self._whole = np.zeros(chunk, box.dtype) if box.box[1] != chunk else None
        if self._whole is None:
            self._streams[-1].write(piece)
        else:
            begins = (at - begin for at, begin in zip(origin, box.box[0], strict=True))
            self._whole[tuple(slice(at, at + size) for at, size in zip(begins, piece.shape, strict=True))] = piece

    def finish(self) -> Record:
        self._end_chunk()
        chunks = _at_once(Stream.finish, self._streams)
        _at_once(sync, self._folders)
        return {"chunks": chunks}

    def close(self) -> None:
        for stream in self._streams:
            stream.close()

    def _end_chunk(self) -> None:
        if self._whole is not None:
            self._streams[-1].write(self._whole)
            self._whole = None


_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def _at_once(call: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
    """Calls a function that waits for the storage, for several items at once."""
    with futures.ThreadPoolExecutor(_SYNCS, "artifex_devices-sync") as pool:
        return list(pool.map(call, items))


def _type(dtype: np.dtype[Any]) -> str | None:
    """Returns the type in a header of Zarr 2, or None."""
    return dtype.str if dtype.isbuiltin == 1 else dtype.name if dtype.name in _ML_DTYPES else None


def _scalar(value: Value) -> np.ndarray[Any, Any] | None:
    """Returns the array of a Python value, or None for one that Orbax cannot store."""
    scalar = np.asarray(value)
    return scalar if scalar.dtype.kind in "biuf" else None


def _entry(name: str, kind: str) -> dict[str, Any]:
    keys = [{"key": key, "key_type": _DICT_KEY} for key in name.split(".")]
    return {"key_metadata": keys, "value_metadata": {"value_type": kind, "skip_deserialize": False}}


def _write_header(folder: str, shape: tuple[int, ...], chunk: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    header = {
        "chunks": chunk,
        "compressor": None,
        "dimension_separator": ".",
        "dtype": _type(dtype),
        "fill_value": None,
        "filters": None,
        "order": "C",
        "shape": shape,
        "zarr_format": 2,
    }
    _write_json(f"{folder}/.zarray", header)


def _write_json(path: str, document: dict[str, Any]) -> None:
    _write_file(path, json.dumps(document).encode())


def _write_file(path: str, content: bytes) -> None:
    stream = Stream(path)
    stream.write(content)
    stream.finish()
