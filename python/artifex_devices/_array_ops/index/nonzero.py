# SPDX-License-Identifier: Apache-2.0
"""nonzero, argwhere and flatnonzero: each tile is searched where it is placed, only the positions meet."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices._array_ops.core.arguments import array_operand, whole_array
from artifex_devices._array_ops.core.blocks import Box, local_arrays, run_all, tiling
from artifex_devices._array_ops.core.dispatch import implements
from artifex_devices._array_ops.core.fused_small import is_small, whole_of
from artifex_devices._array_ops.core.layout import cuts_of
from artifex_devices._core import Array

__all__ = ["flat_positions", "nonzero", "nonzero_on_host", "over_tiles"]


def over_tiles(operation: str, x: Array, find: Callable[[NDArray[Any], Box], Any]) -> list[Any]:
    """Calls find(tile, box) once for each tile of x, over the cores; the results in the order of the tiles.

    Raises:
        RuntimeError: Parts of x belong to other processes.
    """
    if not x.is_fully_addressable:
        raise RuntimeError(
            f"{operation}: the number of elements depends on parts of the Array in other processes; expected an Array "
            f"of shape {x.shape} that is fully addressable; gather it first: multihost_utils.process_allgather(x)"
        )
    if is_small(x.nbytes):
        whole = whole_of(x)
        if whole is not None:
            return [find(whole, tuple(slice(0, size, 1) for size in x.shape))]
    places = tiling(x.sharding, x.shape, operation)
    arrays = local_arrays(x)
    first: dict[int, int] = {}
    for number, tile in enumerate(places.tiles):
        first.setdefault(tile, number)
    found: dict[int, Any] = {}

    def search(tile: int, number: int) -> None:
        found[tile] = find(arrays[number], places.boxes[number])

    run_all([functools.partial(search, tile, number) for tile, number in first.items()], x.nbytes)
    return [found[tile] for tile in sorted(found)]


def flat_positions(inside: NDArray[np.intp], box: Box, shape: tuple[int, ...]) -> NDArray[np.intp]:
    """Row-major positions in an array of `shape`, of row-major positions in a box of it."""
    sizes = tuple(part.stop - part.start for part in box)
    if sizes == shape:
        return inside
    index = np.unravel_index(inside, sizes)
    result: NDArray[np.intp] = np.ravel_multi_index(
        tuple(along + part.start for along, part in zip(index, box, strict=True)), shape
    )
    return result


def nonzero_on_host(operation: str, x: Array) -> tuple[NDArray[np.intp], ...]:
    """The indices of the elements that are not zero, one array a dimension, in row-major order.

    Raises:
        ValueError: x has no dimensions.
    """
    if not x.ndim:
        raise ValueError(
            f"{operation}: Calling nonzero on 0d arrays is not allowed; expected at least one dimension, got shape (); "
            "use np.atleast_1d(x) first"
        )

    def find(tile: NDArray[Any], box: Box) -> tuple[NDArray[np.intp], ...]:
        return tuple(along + part.start for along, part in zip(np.nonzero(tile), box, strict=True))

    found = over_tiles(operation, x, find)
    if len(found) == 1:
        return found[0]  # type: ignore[no-any-return]
    index = tuple(np.concatenate(along) for along in zip(*found, strict=True))
    long = next((d for d, size in enumerate(x.shape) if size > 1), 0)
    if any(cuts_of(x)[long + 1 :]):  # tiles do not follow one another
        order = np.argsort(np.ravel_multi_index(index, x.shape))
        index = tuple(along[order] for along in index)
    return index


@implements(np.nonzero)
def nonzero(a: Any) -> tuple[Array, ...]:
    """np.nonzero: every result is whole on each device of a."""
    x = array_operand("nonzero", a)
    return tuple(whole_array("nonzero", places.shape, places, np.intp, x) for places in nonzero_on_host("nonzero", x))


@implements(np.argwhere)
def _argwhere(a: Any) -> Array:
    x = array_operand("argwhere", a)
    rows = np.transpose(nonzero_on_host("argwhere", x)) if x.ndim else np.argwhere(np.asarray(x))
    return whole_array("argwhere", rows.shape, rows, np.intp, x)


@implements(np.flatnonzero)
def _flatnonzero(a: Any) -> Array:
    x = array_operand("flatnonzero", a)
    places = (
        np.ravel_multi_index(nonzero_on_host("flatnonzero", x), x.shape) if x.ndim else np.flatnonzero(np.asarray(x))
    )
    return whole_array("flatnonzero", places.shape, places, np.intp, x)
