# SPDX-License-Identifier: Apache-2.0
"""Boxes of arrays, and the pieces of them that are read and written at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import TypeAlias

Box: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]  # the index of its first element, and its shape
PIECE_BYTES = 64 << 20


def pieces_of(box: Box, itemsize: int) -> Iterator[Box]:
    """Yields pieces of a box, each at most PIECE_BYTES and contiguous in it, in row-major order; one of an empty box.

    Dimensions before the divided one are divided into single indices.
    """
    origin, shape = box
    if not math.prod(shape):
        yield box
        return
    divided, inner = len(shape), itemsize
    while divided and inner * shape[divided - 1] <= PIECE_BYTES:
        divided -= 1
        inner *= shape[divided]
    if not divided:
        yield box
        return
    divided -= 1
    chunk = max(1, PIECE_BYTES // inner)
    for outer in itertools.product(*map(range, shape[:divided])):
        for begin in range(0, shape[divided], chunk):
            place = (*outer, begin, *(0,) * (len(shape) - divided - 1))
            size = (*(1,) * divided, min(chunk, shape[divided] - begin), *shape[divided + 1 :])
            yield tuple(a + b for a, b in zip(origin, place, strict=True)), size


def tiles_of(box: Box, tile: tuple[int, ...]) -> Iterator[Box]:
    """Yields the tiles of a box in row-major order; the last ones of a dimension may be smaller."""
    origin, shape = box
    for place in itertools.product(*(range(0, size, step) for size, step in zip(shape, tile, strict=True))):
        size = tuple(min(step, end - begin) for step, end, begin in zip(tile, shape, place, strict=True))
        yield tuple(a + b for a, b in zip(origin, place, strict=True)), size


def is_one_run(box: Box, shape: tuple[int, ...]) -> bool:
    """Returns whether a box of an array of this shape is a range of its elements in row-major order."""
    divided = next((d for d, size in enumerate(box[1]) if size != 1), len(shape))
    return box[1][divided + 1 :] == shape[divided + 1 :]


def whole(shape: tuple[int, ...]) -> Box:
    """Returns the box that is a whole array."""
    return (0,) * len(shape), shape
