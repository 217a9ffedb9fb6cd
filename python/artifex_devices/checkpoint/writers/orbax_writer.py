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
from typing import Any

import numpy as np

from artifex_devices._base.checks import failure
from artifex_devices.checkpoint.folders import sync
from artifex_devices.checkpoint.manifest import Value
from artifex_devices.checkpoint.named_leaves import list_of
from artifex_devices.checkpoint.readers.orbax_metadata import FILE, is_name_within
from artifex_devices.checkpoint.writers.writer import FileWriter, Record, Stream, Target, TargetBox, TargetFile, Writer

_CHUNK_BYTES = 32 << 20
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

    def files(self) -> list[TargetFile]:
        """Returns one file for each chunk."""
        files = []
        for name, (shape, dtype) in self.target.arrays.items():
            chunk = self._chunk(name)
            for index in itertools.product(*(range(-(-size // part)) for size, part in zip(shape, chunk, strict=True))):
                origin = tuple(number * part for number, part in zip(index, chunk, strict=True))
                size = tuple(min(part, end - at) for part, end, at in zip(chunk, shape, origin, strict=True))
                file = f"{name}/{'.'.join(map(str, index)) or '0'}"
                files.append(TargetFile(file, (TargetBox(name, shape, dtype, (origin, size)),)))
        return files

    def begin(self, folder: str, file: TargetFile) -> FileWriter:
        """Creates the file of a chunk."""
        os.makedirs(os.path.dirname(f"{folder}/{file.name}"), exist_ok=True)
        return _ChunkWriter(f"{folder}/{file.name}", self._chunk(file.boxes[0].name))

    def finish(self, folder: str) -> None:
        """Writes the headers of the arrays and the metadata of the tree."""
        tree = {}
        for name, (shape, dtype) in self.target.arrays.items():
            _write_header(f"{folder}/{name}", shape, self._chunk(name), dtype)
            tree[name] = "np.ndarray"
        for name, value in self.target.values.items():
            scalar = _scalar(value)
            assert scalar is not None
            os.makedirs(f"{folder}/{name}", exist_ok=True)
            _write_header(f"{folder}/{name}", (), (), scalar.dtype)
            _write_file(f"{folder}/{name}/0", scalar.tobytes())
            tree[name] = "scalar"
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
        for inner, _, _ in os.walk(folder):
            sync(inner)

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


class _ChunkWriter(FileWriter):
    def __init__(self, path: str, chunk: tuple[int, ...]) -> None:
        self._stream = Stream(path)
        self._chunk = chunk

    def write(self, box: TargetBox, origin: tuple[int, ...], piece: np.ndarray[Any, Any]) -> None:
        if piece.shape != self._chunk:  # the last one of a dimension: a file has a whole chunk
            whole = np.zeros(self._chunk, box.dtype)
            whole[tuple(map(slice, piece.shape))] = piece
            piece = whole
        self._stream.write(piece)

    def finish(self) -> Record:
        return self._stream.finish()

    def close(self) -> None:
        self._stream.close()


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
