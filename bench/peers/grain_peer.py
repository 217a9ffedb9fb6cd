# SPDX-License-Identifier: Apache-2.0
"""Grain, for input."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version as version_of
from typing import Any

import grain
import numpy as np

NAME = "grain"
IMPORT = "import grain"
HAS_MESHES = False
WORKERS = "processes"
SEED = 7


def version() -> str:
    """Version of the package."""
    return version_of("grain")


class _Rows:
    """Rows of a .npy file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._rows: Any = None
        self._length = len(np.load(path, mmap_mode="r"))

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> np.ndarray:
        if self._rows is None:
            self._rows = np.load(self._path, mmap_mode="r")
        return self._rows[index]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_rows": None}


def batches(kind: str, path: str, decode: Callable[[Any], np.ndarray], batch: int, workers: int) -> Any:
    """Shuffled batches of a file, read by worker processes."""
    source = grain.sources.ArrayRecordDataSource(path) if kind == "ArrayRecord" else _Rows(path)
    stream = grain.MapDataset.source(source).shuffle(seed=SEED).repeat().map(decode).batch(batch, drop_remainder=True)
    return stream.to_iter_dataset().mp_prefetch(grain.MultiprocessingOptions(num_workers=workers))


def resumed(source: Any, batch: int, step: int) -> Any:
    """Batches of a shuffled source from a step on, without worker processes."""
    stream = grain.MapDataset.source(source).shuffle(seed=SEED).batch(batch, drop_remainder=True)
    iterator = iter(stream.to_iter_dataset())
    iterator.set_state({"next_index": step})
    return iterator


def end_input(iterator: Any) -> None:
    """Ends the worker processes of an iterator."""
    if hasattr(iterator, "close"):
        iterator.close()
