# SPDX-License-Identifier: Apache-2.0
"""torch: its DataLoader, and its converter of checkpoints."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.distributed.checkpoint.format_utils import torch_save_to_dcp
from torch.utils.data import DataLoader, Dataset, RandomSampler

NAME = "torch"
IMPORT = "import torch"
HAS_MESHES = False
WORKERS = "processes"
MOST_SAMPLES = 10**7
SEED = 7


def version() -> str:
    """Version of the package."""
    return str(torch.__version__)


CONVERSIONS = ("torch",)


def write_source(folder: Any, kind: str, arrays: dict[str, np.ndarray]) -> Any:
    """Writes a file of torch.save, and returns its path."""
    torch.save({name: torch.from_numpy(value.copy()) for name, value in arrays.items()}, folder / "model.bin")
    return folder / "model.bin"


def convert(source: Any, target: Any, kind: str) -> None:
    """Converts the file, and waits for the storage."""
    torch_save_to_dcp(source, target)
    for file in target.iterdir():
        with open(file, "rb") as opened:
            os.fsync(opened.fileno())


class _Samples(Dataset):
    """Decoded samples of a file, which each worker opens."""

    def __init__(self, kind: str, path: str, decode: Callable[[Any], np.ndarray]) -> None:
        self._kind, self._path, self._decode = kind, path, decode
        self._file: Any = None
        self._length = len(self._open())
        self._file = None

    def _open(self) -> Any:
        if self._file is None and self._kind == "ArrayRecord":
            from array_record.python.array_record_data_source import ArrayRecordDataSource

            self._file = ArrayRecordDataSource(self._path)
        elif self._file is None:
            self._file = np.load(self._path, mmap_mode="r")
        return self._file

    def __len__(self) -> int:
        return self._length

    def __getitems__(self, indices: list[int]) -> list[np.ndarray]:
        file = self._open()
        records = file.__getitems__(indices) if self._kind == "ArrayRecord" else [file[index] for index in indices]
        return [self._decode(record) for record in records]


def batches(kind: str, path: str, decode: Callable[[Any], np.ndarray], batch: int, workers: int) -> Iterator[Any]:
    """Shuffled batches of a file, read by worker processes; one epoch after the other."""
    loader = DataLoader(
        _Samples(kind, path, decode),
        batch_size=batch,
        shuffle=True,
        num_workers=workers,
        drop_last=True,
        persistent_workers=True,
        multiprocessing_context="spawn" if kind == "ArrayRecord" else None,  # its readers do not survive a fork
        generator=torch.Generator().manual_seed(SEED),
    )
    while True:
        yield from loader


def resumed(source: Any, batch: int, step: int) -> Iterator[Any]:
    """Batches of a shuffled source from a step on: the indices of the earlier ones are drawn and dropped."""
    sampler = RandomSampler(source, generator=torch.Generator().manual_seed(SEED))
    indices = itertools.islice(iter(sampler), step * batch, None)
    return iter(DataLoader(source, batch_size=batch, sampler=indices, num_workers=0))


def end_input(iterator: Any) -> None:
    """Ends the worker processes of an iterator."""
    if hasattr(iterator, "close"):
        iterator.close()
