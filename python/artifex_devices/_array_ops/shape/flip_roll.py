# SPDX-License-Identifier: Apache-2.0
"""flip, roll and rot90: whole dimensions turn where they lie, along cut ones the elements go to their new device."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from artifex_devices._array_ops.core.blocks import Box
from artifex_devices._array_ops.core.dispatch import implements
from artifex_devices._array_ops.core.layout import any_explicit, cuts_of
from artifex_devices._array_ops.shape.rearranging import copy_boxes
from artifex_devices._array_ops.shape.reshaping import ravel, reshape
from artifex_devices._array_ops.shape.transposing import swapaxes
from artifex_devices._core import Array
from artifex_devices.errors import ShardingTypeError

__all__ = ["flip", "roll"]


@implements(np.flip)
def flip(m: Array, axis: Any = None) -> Array:
    """np.flip: along a cut dimension the shards change places."""
    dims = set(range(m.ndim)) if axis is None else set(normalize_axis_tuple(axis, m.ndim))
    turned: Any = (*(slice(None, None, -1 if d in dims else 1) for d in range(m.ndim)), ...)

    def pieces(box: Box) -> Iterator[tuple[Box, Box]]:
        mirrored = tuple(
            slice(m.shape[d] - part.stop, m.shape[d] - part.start, 1) if d in dims else part
            for d, part in enumerate(box)
        )
        yield _whole(box), mirrored

    return copy_boxes("flip", m, m.shape, cuts_of(m), pieces, lambda view: view[turned])


def _whole(box: Box) -> Box:
    return tuple(slice(0, part.stop - part.start, 1) for part in box)


@implements(np.fliplr)
def _fliplr(m: Array) -> Array:
    if m.ndim < 2:
        raise ValueError(f"fliplr: no second dimension; expected at least two, got shape {m.shape}; use np.flip")
    return flip(m, 1)


@implements(np.flipud)
def _flipud(m: Array) -> Array:
    if m.ndim < 1:
        raise ValueError(f"flipud: no dimension; expected at least one, got shape {m.shape}")
    return flip(m, 0)


@implements(np.roll)
def roll(a: Array, shift: Any, axis: Any = None) -> Array:
    """np.roll: along a cut dimension the elements that leave a shard go to the device of the next one.

    Raises:
        ShardingTypeError: The dimension is cut over Explicit axes, as in JAX (a ValueError).
    """
    if axis is None:
        rolled: Array = reshape(roll(ravel(a), shift, 0), a.shape)
        return rolled
    axes = normalize_axis_tuple(axis, a.ndim, allow_duplicate=True)
    shifts = [0] * a.ndim
    for by, d in np.broadcast(np.asarray(shift), np.asarray(axes)):
        shifts[d] += operator.index(by)
    shifts = [by % size if size else 0 for by, size in zip(shifts, a.shape, strict=True)]
    cuts = cuts_of(a)
    wrong = [d for d, by in enumerate(shifts) if by and any_explicit(a.sharding, cuts[d])]
    if wrong:
        raise ShardingTypeError(
            f"roll: dimensions {wrong} are cut over Explicit axes {[cuts[d] for d in wrong]}; expected whole ones or "
            f"Auto axes, got {a.shape} with {a.sharding}; reshard(x, ...) so that they are whole"
        )

    def pieces(box: Box) -> Iterator[tuple[Box, Box]]:
        by_dimension = [_rolled(part, by, size) for part, by, size in zip(box, shifts, a.shape, strict=True)]
        for chosen in itertools.product(*by_dimension):
            yield tuple(inside for inside, _ in chosen), tuple(source for _, source in chosen)

    return copy_boxes("roll", a, a.shape, cuts, pieces)


def _rolled(part: slice, by: int, size: int) -> list[tuple[slice, slice]]:
    """Where the elements of one dimension of a box come from: one run, or two around the end."""
    length = part.stop - part.start
    if not length:
        return []
    start = (part.start - by) % size
    first = min(length, size - start)
    runs = [(slice(0, first, 1), slice(start, start + first, 1))]
    if first < length:
        runs.append((slice(first, length, 1), slice(0, length - first, 1)))
    return runs


@implements(np.rot90)
def _rot90(m: Array, k: int = 1, axes: Any = (0, 1)) -> Array:
    i, j = normalize_axis_tuple(axes, m.ndim)
    turns = k % 4
    if turns == 0:
        return m
    if turns == 2:
        return flip(m, (i, j))
    return swapaxes(flip(m, j), i, j) if turns == 1 else flip(swapaxes(m, i, j), j)
