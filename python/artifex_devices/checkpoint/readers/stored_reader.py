# SPDX-License-Identifier: Apache-2.0
"""Readers of files whose arrays the core reads: our checkpoints, safetensors, and DCP in safetensors files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from artifex_devices._core import Array, Sharding, internal
from artifex_devices.checkpoint.named_leaves import list_of
from artifex_devices.checkpoint.pieces import is_one_run
from artifex_devices.checkpoint.readers.reader import Box, Reader, closed
from artifex_devices.checkpoint.stored import Stored


class StoredReader(Reader):
    """Reads boxes of the arrays of a checkpoint of this package, of safetensors files, or of DCP in such files."""

    def __init__(self, operation: str, path: str) -> None:
        stored = Stored(operation, path)
        self._files: internal.StoredCheckpoint | None = stored.files
        self._without_checksums = frozenset(stored.files.without_checksums)
        super().__init__(path, *_format_of(stored), stored.arrays, stored.values, stored.paths)

    def _read(self, operation: str, name: str, dtype: np.dtype[Any], box: Box, verify: bool) -> np.ndarray[Any, Any]:
        return read_box(operation, self._files, self._arrays[name].number, dtype, box, verify)

    def _restore(
        self, operation: str, requests: Sequence[tuple[str, Sharding | None]], verify: bool
    ) -> list[np.ndarray[Any, Any] | Array]:
        """Reads all arrays at once, directly into their memory."""
        files = self._files
        if files is None:
            raise closed(operation)
        rows: list[tuple[int, np.ndarray[Any, Any] | Array]] = []
        for name, sharding in requests:
            shape, dtype, _, number = self._arrays[name]
            dtype = self._dtype(operation, name) if dtype is None else dtype
            if sharding is None:
                rows.append((number, internal.host_empty(shape, dtype)))
            else:
                rows.append((number, internal.empty(shape, dtype, sharding, True, operation)))
        files.read(rows, verify, operation)
        return [array for _, array in rows]

    def _unchecked(self, name: str, box: Box) -> Sequence[str]:
        return () if is_one_run(box, self._arrays[name].shape) or name in self._without_checksums else (name,)

    def _checksums(self) -> str:
        files = self._files
        if files is None:
            raise closed("Reader.verify")
        return self._checksums_of("CRC-32C", files.without_checksums)

    def _count_read(self) -> int:
        count: int = 0 if self._files is None else self._files.bytes_read
        return count

    def _close(self) -> None:
        self._files = None


def read_box(
    operation: str,
    files: internal.StoredCheckpoint | None,
    number: int,
    dtype: np.dtype[Any],
    box: Box,
    verify: bool = False,
) -> np.ndarray[Any, Any]:
    """Returns a new ndarray with a box of array `number`; ValueError if another thread has closed the files."""
    origin, shape = box
    out: np.ndarray[Any, Any] = internal.host_empty(shape, dtype)
    if files is None:
        raise closed(operation)
    if out.size:
        files.read_box(number, out, origin, verify, operation)
    return out


def _format_of(stored: Stored) -> tuple[str, tuple[str, ...]]:
    """Returns the format and the notes."""
    if stored.process_count is not None:
        return "artifex", (
            f"It is artifex: checkpoint.json is of this package, saved by "
            f"{stored.process_count} process{'es' * (stored.process_count != 1)}.",
        )
    if not stored.files.states_boxes:
        return "safetensors", (
            "It is safetensors: each tensor is a complete array.",
            "It is not artifex: there is no checkpoint.json; not dcp: no file states boxes of arrays.",
        )
    derived = stored.files.derived_shapes
    unseen = f"No file states the shape of {list_of(derived)}: a missing last file cannot be noticed."
    return "dcp", (
        "It is dcp: safetensors files state which boxes of arrays they have (DCP_SHARDING_INFO).",
        "It is not artifex: there is no checkpoint.json.",
        *([unseen] if derived else []),
    )
