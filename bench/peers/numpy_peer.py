# SPDX-License-Identifier: Apache-2.0
"""Plain NumPy in one thread: shards are copied slices. A lower limit for small work."""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

NAME = "numpy"
IMPORT = ""
HAS_MESHES = False
PREFETCH = "a plain loop"
PIECE_BYTES = 8 << 20  # of writes and reads
numpy = np


@dataclass(frozen=True)
class Cut:
    """How many parts each dimension has, and how many copies there are of each part."""

    parts: tuple[int, ...]
    copies: int


@dataclass
class Shards:
    """Copied slices with the index of each in the global array."""

    shape: tuple[int, ...]
    pieces: list[tuple[tuple[slice, ...], np.ndarray]]


def version() -> str:
    """Version of the package."""
    return np.__version__


def devices() -> list[int]:
    """Device numbers."""
    return list(range(8))


def mesh(devices: Any, names: Any) -> dict[str, int]:
    """Sizes by name."""
    return dict(zip(names, np.shape(devices), strict=True))


def named(mesh: dict[str, int], *entries: Any) -> Cut:
    """The parts and copies of a spec."""
    parts = tuple(
        1 if entry is None else math.prod(mesh[axis] for axis in ((entry,) if isinstance(entry, str) else entry))
        for entry in entries
    )
    return Cut(parts, math.prod(mesh.values()) // math.prod(parts))


def put(value: Any, where: Any) -> Any:
    """Copies the slices."""
    if isinstance(value, dict):
        return {key: put(item, where) for key, item in value.items()}
    if isinstance(value, Shards):
        value = get(value)
    if not isinstance(where, Cut):
        return value.copy()
    sides = [size // parts for size, parts in zip(value.shape, where.parts, strict=False)]
    pieces = []
    for place in np.ndindex(*where.parts):
        index = tuple(slice(at * side, (at + 1) * side) for at, side in zip(place, sides, strict=True))
        pieces += [(index, value[index].copy()) for _ in range(where.copies)]
    return Shards(value.shape, pieces)


def allocate_and_free(nbytes: int, times: int, touch: bool) -> None:
    """Takes an ndarray, writes to each of its pages if asked to, and frees it."""
    for _ in range(times):
        block = np.empty(nbytes, np.uint8)
        if touch:
            block[::4096] = 1
        del block


def get(array: Any) -> np.ndarray:
    """Assembles the slices in a fresh array."""
    if not isinstance(array, Shards):
        return np.array(array)
    out = np.empty(array.shape, array.pieces[0][1].dtype)
    for index, piece in array.pieces:
        out[index] = piece
    return out


def get_tree(tree: dict[str, Any]) -> dict[str, np.ndarray]:
    """Gathers each leaf of a dict."""
    return {key: get(item) for key, item in tree.items()}


def prefetch(batches: Iterator[Any], where: Any) -> Iterator[Any]:
    """Placed batches, each read when it is asked for."""
    return (put(batch, where) for batch in batches)


def save(path: Any, array: Any) -> None:
    """Writes the bytes of each slice to one file in large pieces, and waits for the storage."""
    with open(path, "wb", buffering=0) as file:
        for _, piece in array.pieces:
            view = memoryview(piece).cast("B")
            for start in range(0, len(view), PIECE_BYTES):
                file.write(view[start : start + PIECE_BYTES])
        os.fsync(file.fileno())


CONVERSIONS = ("renamed", "processes", "transposed", "stacked", "cast")


def convert(source: Any, target: Any, kind: str) -> None:
    """Copies the files, and waits for the storage."""
    subprocess.run(["cp", "-r", source, target], check=True)
    subprocess.run(["sync", *target.iterdir()], check=True)


def restore(path: Any, where: Any, like: Any) -> np.ndarray:
    """Reads the bytes of one file in large pieces."""
    with open(path, "rb", buffering=0) as file:
        found = np.empty(os.fstat(file.fileno()).st_size, np.uint8)
        view = memoryview(found)
        for start in range(0, len(view), PIECE_BYTES):
            os.preadv(file.fileno(), [view[start : start + PIECE_BYTES]], start)
    return found
