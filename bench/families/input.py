# SPDX-License-Identifier: Apache-2.0
"""Batches of shuffled samples from files, beside Grain and torch's DataLoader.

All peers read the same records of an ArrayRecord file and the same rows of a .npy file in random order, decode them
by the same function, and return batches of NumPy arrays, of tensors, or of Arrays on one device. `workers` are threads
here and processes in the peers. The rows of 10^9 samples use a source without files, whose sample is its index: they
measure the order and the resume. torch's RandomSampler makes a list of all indices, so its rows have 10^7 samples.
"""

from __future__ import annotations

import gc
import importlib.util
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measure import Row

SIDE = 32
SHAPE = (SIDE, SIDE, 3)  # uint8: 3 KiB, as a small picture
SAMPLES = 50_000
BATCH = 256
WORKERS = (1, 2)
FEW, MANY = 10**6, 10**9  # samples of the source without files


def decode(record: Any) -> np.ndarray:
    """Returns the pixels of a record, between 0 and 1."""
    return np.frombuffer(record, np.uint8).reshape(SHAPE).astype(np.float32) / np.float32(255)


class Indices:
    """A source whose samples are their indices."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> np.ndarray:
        return np.full(8, index, np.int64)


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """Rates by format and number of workers, then resume and memory."""
    if not hasattr(peer, "batches"):
        return
    count = SAMPLES // 10 if quick else SAMPLES
    with tempfile.TemporaryDirectory() as folder:
        for kind, path in _write(Path(folder), count):
            for workers in WORKERS:
                yield Row(
                    f"input, {kind} of 3 KiB, {workers} worker{'s' * (workers > 1)}, per sample",
                    samples=_seconds_per_sample(peer, kind, str(path), workers, count, 2 if quick else 5),
                    bytes=int(np.prod(SHAPE)),
                    notes=peer.WORKERS,
                )
    many = getattr(peer, "MOST_SAMPLES", MANY)
    name = f"10^{len(str(many)) - 1} samples"
    yield Row(
        "input, first batch after a resume in the middle of 10^9 samples",
        samples=[_resume(peer, many) for _ in range(3)],
        notes=name,
    )
    _memory(peer, FEW)  # loads what the first use loads
    few = _memory(peer, FEW)
    yield Row(
        "input, memory of 10^9 samples beyond that of 10^6",
        samples=[max(0.0, _memory(peer, many) - few)],
        unit="bytes",
        notes=name,
    )


def _write(folder: Path, count: int) -> Iterator[tuple[str, Path]]:
    """Writes the files that this interpreter can read."""
    values = np.random.default_rng(0).integers(0, 256, (count, *SHAPE), np.uint8)
    np.save(folder / "rows.npy", values)
    yield ".npy", folder / "rows.npy"
    if importlib.util.find_spec("array_record") is None:
        return
    from array_record.python.array_record_module import ArrayRecordWriter

    writer = ArrayRecordWriter(str(folder / "records.array_record"), "group_size:1")
    for value in values:
        writer.write(value.tobytes())
    writer.close()
    yield "ArrayRecord", folder / "records.array_record"


def _seconds_per_sample(peer: Any, kind: str, path: str, workers: int, count: int, repeats: int) -> list[float]:
    """Times of whole batches after the first ones, which contain the start of the workers."""
    batches = iter(peer.batches(kind, path, decode, BATCH, workers))
    each = max(1, (count // BATCH - 4) // repeats)
    for _ in range(4):
        next(batches)
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        for _ in range(each):
            batch = next(batches)
        times.append((time.perf_counter() - begin) / (each * BATCH))
    assert tuple(batch.shape) == (BATCH, *SHAPE)
    peer.end_input(batches)
    return times


def _resume(peer: Any, count: int) -> float:
    """Seconds from the saved state of half of the samples to the next batch, in a new loader."""
    gc.collect()
    begin = time.perf_counter()
    peer.end_input(_first(peer.resumed(Indices(count), BATCH, count // 2 // BATCH)))
    return time.perf_counter() - begin


def _memory(peer: Any, count: int) -> float:
    """Peak bytes of this process from here to a batch in the middle of a source."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    peer.end_input(_first(peer.resumed(Indices(count), BATCH, count // 2 // BATCH)))
    with open("/proc/self/status") as file:
        return 1024.0 * next(float(line.split()[1]) for line in file if line.startswith("VmHWM:"))


def _first(batches: Any) -> Any:
    iterator = iter(batches)
    batch = next(iterator)
    assert batch.shape[0] == BATCH
    return iterator
