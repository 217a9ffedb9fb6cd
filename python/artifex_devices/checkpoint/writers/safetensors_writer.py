# SPDX-License-Identifier: Apache-2.0
"""Writer of safetensors: one file, or shards with an index."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from artifex_devices._base.checks import failure
from artifex_devices._core import internal
from artifex_devices.checkpoint.writers.writer import FileWriter, Record, Stream, Target, TargetBox, TargetFile, Writer

_STEM = "model"


class SafetensorsWriter(Writer):
    """Writes complete arrays: `model.safetensors`, or shards of at most `max_shard_size` with their index.

    A target whose name ends in ".safetensors" is the one file.
    """

    format = "safetensors"

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._types = {name: internal.safetensors_type(dtype) for name, (_, dtype) in target.arrays.items()}
        self._check_types("safetensors files have", internal.safetensors_type)
        self._shards = self._fill()
        if self.writes_one_file and len(self._shards) > 1:
            raise failure(
                ValueError,
                target.operation,
                f"{target.path!r} is one file, and max_shard_size={target.max_shard_size} needs {len(self._shards)}",
                expected="a folder",
                fix=f"pass the target {os.path.dirname(target.path)!r}",
            )

    @property
    def writes_one_file(self) -> bool:
        """Whether the target is named like a file."""
        return self.target.path.endswith(".safetensors")

    def files(self) -> list[TargetFile]:
        """Returns the shards."""
        count = len(self._shards)
        if count == 1:
            return [TargetFile(f"{_STEM}.safetensors", self._shards[0])]
        return [
            TargetFile(f"{_STEM}-{number:05}-of-{count:05}.safetensors", boxes)
            for number, boxes in enumerate(self._shards, 1)
        ]

    def begin(self, folder: str, file: TargetFile) -> FileWriter:
        """Creates a shard with its header."""
        return _ShardWriter(f"{folder}/{file.name}", self._header(file))

    def finish(self, folder: str) -> None:
        """Writes the index of several shards."""
        files = self.files()
        if len(files) == 1:
            return
        total = sum(box.nbytes for file in files for box in file.boxes)
        index = {
            "metadata": {"total_size": total},
            "weight_map": {name: file.name for file in files for name in sorted(box.name for box in file.boxes)},
        }
        stream = Stream(f"{folder}/{_STEM}.safetensors.index.json")
        stream.write((json.dumps(index, indent=2) + "\n").encode())
        stream.finish()

    def _fill(self) -> list[tuple[TargetBox, ...]]:
        """Returns the arrays of each shard, with the largest elements first: each array is aligned to its itemsize."""
        shards: list[list[TargetBox]] = [[]]
        size = 0
        most = self.target.max_shard_size
        for name in self.target.arrays:
            box = self.target.whole(name)
            if most is not None and shards[-1] and size + box.nbytes > most:
                shards.append([])
                size = 0
            shards[-1].append(box)
            size += box.nbytes
        return [tuple(sorted(shard, key=lambda box: -box.dtype.itemsize)) for shard in shards]

    def _header(self, file: TargetFile) -> bytes:
        header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
        begin = 0
        for box in file.boxes:
            end = begin + box.nbytes
            header[box.name] = {"dtype": self._types[box.name], "shape": box.shape, "data_offsets": [begin, end]}
            begin = end
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        return len(text).to_bytes(8, "little") + text


class _ShardWriter(FileWriter):
    def __init__(self, path: str, header: bytes) -> None:
        self._stream = Stream(path)
        self._stream.write(header)

    def write(self, box: TargetBox, origin: tuple[int, ...], piece: np.ndarray[Any, Any]) -> None:
        self._stream.write(piece)

    def finish(self) -> Record:
        return self._stream.finish()

    def close(self) -> None:
        self._stream.close()
