# SPDX-License-Identifier: Apache-2.0
"""Writer of our format: the files that checkpoint.save writes in a job of so many processes."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import numpy as np

from artifex_devices._core import internal
from artifex_devices.checkpoint import manifest
from artifex_devices.checkpoint.manifest import Manifest
from artifex_devices.checkpoint.writers.writer import FileWriter, Record, Stream, TargetBox, TargetFile, Writer


class ArtifexWriter(Writer):
    """Writes for each future process a file with its boxes, and checkpoint.json."""

    format = "artifex"
    has_values = True

    def files(self) -> list[TargetFile]:
        """Returns the files of all processes. File k of a process has box k of each array with more than k boxes."""
        files = []
        for process, part in enumerate(self.target.parts, 1):
            count = max(map(len, part.values()), default=0)
            for k in range(count):
                boxes = [self._box(name, k, part) for name in part if len(part[name]) > k]
                boxes.sort(key=lambda box: -box.dtype.itemsize)  # each box is aligned to its itemsize
                files.append(TargetFile(_file_name(process, k + 1, count), tuple(boxes)))
        return files

    def begin(self, folder: str, file: TargetFile) -> FileWriter:
        """Creates a file of a process."""
        return _PartWriter(self.target.operation, f"{folder}/{file.name}", file)

    def finish(self, folder: str) -> None:
        """Writes checkpoint.json."""
        target = self.target
        with suppress(FileNotFoundError):
            os.unlink(f"{folder}/{manifest.FILE}")  # of an interrupted conversion
        manifest.write(
            folder, Manifest(dict(target.arrays), dict(target.values), len(target.parts), dict(target.paths))
        )

    def _box(self, name: str, k: int, part: Any) -> TargetBox:
        shape, dtype = self.target.arrays[name]
        return TargetBox(name, shape, dtype, part[name][k])


def _file_name(process: int, number: int, count: int) -> str:
    return f"shard-{process:05}-model-{number:05}-of-{count:05}.safetensors"


class _PartWriter(FileWriter):
    def __init__(self, operation: str, path: str, file: TargetFile) -> None:
        rows = [(box.name, box.dtype, box.shape, *box.box) for box in file.boxes]
        self._file = internal.StreamedBoxes(rows, operation)
        self._stream = Stream(path, head_bytes=len(self._file.header()))

    def write(self, box: TargetBox, origin: tuple[int, ...], piece: np.ndarray[Any, Any]) -> None:
        self._file.add(piece.reshape(-1).view(np.uint8).data)
        self._stream.write(piece)

    def finish(self) -> Record:
        return self._stream.finish(self._file.header())

    def close(self) -> None:
        self._stream.close()
