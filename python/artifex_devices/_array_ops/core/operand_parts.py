# SPDX-License-Identifier: Apache-2.0
"""The parts of operands that parts of an element-wise result need."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._array_ops.core.blocks import PIECE_BYTES, Box, blocks_at, moved_to
from artifex_devices._array_ops.core.layout import Cuts, Home, cuts_in, sharding_with
from artifex_devices._core import Array, Sharding

__all__ = ["SCALARS", "Compute", "cuts_for", "operand_parts", "pieces_of"]

# Writes the results for equally shaped parts: compute(outputs, inputs).
Compute = Callable[[Sequence[NDArray[Any]], Sequence[Any]], Any]

SCALARS = (bool, int, float, complex)


def operand_parts(
    operation: str,
    x: Any,
    home: Home,
    shape: tuple[int, ...],
    sharding: Sharding,
    positions: tuple[int, ...],
    boxes: tuple[Box, ...],
) -> Any:
    """The parts of one operand, a list with one a buffer of the result; a number as it is."""
    if type(x) in SCALARS:
        return x
    if not isinstance(x, Array):
        if x.ndim == 0:
            return x
        _core._check_transfer("host_to_device", False, x.shape, x.dtype, "host", sharding, operation)
        return [x[_part(box, x.shape, shape)] for box in boxes]
    wanted = boxes if x.shape == shape else [_part(box, x.shape, shape) for box in boxes]
    if x.sharding._same_devices(sharding):
        views = blocks_at(x, positions, wanted, operation)
        if views is not None:
            return views
    # It does not lie where it is needed: it is moved there, cut as the result is.
    cuts = cuts_for(x.shape, shape, sharding)
    moved = moved_to(operation, x, home, sharding_with(sharding, cuts))
    views = blocks_at(moved, positions, wanted, operation)
    assert views is not None
    return views


def cuts_for(x_shape: tuple[int, ...], shape: tuple[int, ...], sharding: Sharding) -> Cuts:
    """The cuts of a result of `shape` in the dimensions that an operand of `x_shape` has."""
    offset = len(shape) - len(x_shape)
    cuts = cuts_in(sharding, len(shape))
    return tuple(cuts[offset + d] if size == shape[offset + d] else () for d, size in enumerate(x_shape))


def _part(box: Box, x_shape: tuple[int, ...], shape: tuple[int, ...]) -> Box:
    """The part of an operand that a box of the result needs."""
    offset = len(shape) - len(x_shape)
    return tuple(box[offset + d] if size == shape[offset + d] else slice(0, size, 1) for d, size in enumerate(x_shape))


def pieces_of(compute: Compute, outputs: list[NDArray[Any]], parts: list[Any]) -> list[Callable[[], Any]]:
    """One call for a small buffer, several along its first long dimension for a big one."""
    whole = outputs[0]
    count = min(-(-whole.nbytes // PIECE_BYTES), max(whole.shape, default=1))
    if count <= 1:
        return [functools.partial(compute, outputs, parts)]
    axis = next(d for d, size in enumerate(whole.shape) if size >= count or size == max(whole.shape))
    size = whole.shape[axis]
    step = -(-size // count)
    tasks: list[Callable[[], Any]] = []
    for start in range(0, size, step):
        index = slice(start, min(start + step, size))
        tasks.append(
            functools.partial(
                compute,
                [_along(out, axis, index, whole) for out in outputs],
                [_along(part, axis, index, whole) for part in parts],
            )
        )
    return tasks


def _along(part: Any, axis: int, index: slice, whole: NDArray[Any]) -> Any:
    if not isinstance(part, np.ndarray):
        return part
    d = axis - (whole.ndim - part.ndim)
    if d < 0 or part.shape[d] != whole.shape[axis]:
        return part
    return part[(*(slice(None),) * d, index)]
