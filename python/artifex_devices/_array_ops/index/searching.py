# SPDX-License-Identifier: Apache-2.0
"""nonzero, unique and similar functions: each tile is searched where it is placed, only positions and values meet."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifex_devices._array_ops.core.arguments import array_operand, replicated_array
from artifex_devices._array_ops.core.blocks import Box, local_arrays, run_all, tiling
from artifex_devices._array_ops.core.dispatch import implements
from artifex_devices._array_ops.core.fused_small import fused_value, is_small
from artifex_devices._array_ops.core.layout import spec_of
from artifex_devices._array_ops.core.reading import Source, assemble
from artifex_devices._core import Array


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
        whole = fused_value(x)
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
    if any(spec_of(x)[long + 1 :]):  # tiles do not follow one another
        order = np.argsort(np.ravel_multi_index(index, x.shape))
        index = tuple(along[order] for along in index)
    return index


@implements(np.nonzero)
def nonzero(a: Any) -> tuple[Array, ...]:
    """np.nonzero: every result is whole on each device of a."""
    x = array_operand("nonzero", a)
    return tuple(
        replicated_array("nonzero", places.shape, places, np.intp, x) for places in nonzero_on_host("nonzero", x)
    )


@implements(np.argwhere)
def _argwhere(a: Any) -> Array:
    x = array_operand("argwhere", a)
    rows = np.transpose(nonzero_on_host("argwhere", x)) if x.ndim else np.argwhere(np.asarray(x))
    return replicated_array("argwhere", rows.shape, rows, np.intp, x)


@implements(np.flatnonzero)
def _flatnonzero(a: Any) -> Array:
    x = array_operand("flatnonzero", a)
    places = (
        np.ravel_multi_index(nonzero_on_host("flatnonzero", x), x.shape) if x.ndim else np.flatnonzero(np.asarray(x))
    )
    return replicated_array("flatnonzero", places.shape, places, np.intp, x)


class _Values(NamedTuple):
    """The distinct values of a part.

    Attributes:
        values: The values.
        first: Row-major position of the first element of each value; empty where it is not asked for.
        counts: Number of elements of each value; empty where it is not asked for.
    """

    values: NDArray[Any]
    first: NDArray[np.intp]
    counts: NDArray[np.intp]


class _Asked(NamedTuple):
    """The fields of _Values that are asked for."""

    first: bool
    counts: bool


class _Found(NamedTuple):
    """Distinct values, ascending; NaNs apart, in the order of their positions."""

    numbers: _Values
    missing: _Values

    def all(self, field: str) -> NDArray[Any]:
        """One field of both."""
        return np.concatenate([getattr(self.numbers, field), getattr(self.missing, field)])


_NONE = np.empty(0, np.intp)


def _distinct(asked: _Asked, values: NDArray[Any]) -> _Values:
    """The distinct values of a vector without NaN."""
    if not asked.first and not asked.counts:
        return _Values(np.unique(values), _NONE, _NONE)
    unique: Any = np.unique
    found, *others = unique(values, return_index=asked.first, return_counts=asked.counts)
    return _Values(found, others[0] if asked.first else _NONE, others[-1] if asked.counts else _NONE)


def _joined(asked: _Asked, parts: Sequence[_Values]) -> _Values:
    """The distinct values of several parts."""
    values = np.concatenate([part.values for part in parts])
    if not asked.first and not asked.counts:
        return _Values(np.unique(values), _NONE, _NONE)
    found, inverse = np.unique(values, return_inverse=True)
    first, counts = _NONE, _NONE
    if asked.first:
        first = np.full(found.shape, np.iinfo(np.intp).max, np.intp)
        np.minimum.at(first, inverse, np.concatenate([part.first for part in parts]))
    if asked.counts:
        counts = np.zeros(found.shape, np.intp)
        np.add.at(counts, inverse, np.concatenate([part.counts for part in parts]))
    return _Values(found, first, counts)


def _in_tile(asked: _Asked, tile: NDArray[Any], box: Box, shape: tuple[int, ...]) -> _Found:
    flat = tile.reshape(-1)
    is_missing = flat != flat
    missing = np.flatnonzero(is_missing)
    numbers = _distinct(asked, flat[~is_missing] if missing.size else flat)
    first = np.flatnonzero(~is_missing)[numbers.first] if missing.size and asked.first else numbers.first
    return _Found(
        numbers._replace(first=flat_positions(first, box, shape)),
        _Values(flat[missing], flat_positions(missing, box, shape), np.ones(missing.shape, np.intp)),
    )


def _find(operation: str, x: Array, asked: _Asked, equal_nan: bool) -> _Found:
    """The distinct values of x; all NaNs are one where `equal_nan`."""
    tiles = over_tiles(operation, x, lambda tile, box: _in_tile(asked, tile, box, x.shape))
    numbers = tiles[0].numbers if len(tiles) == 1 else _joined(asked, [tile.numbers for tile in tiles])
    missing = _Values(*(np.concatenate(column) for column in zip(*(tile.missing for tile in tiles), strict=True)))
    order = np.argsort(missing.first)
    missing = _Values(*(column[order] for column in missing))
    if equal_nan and len(order):
        missing = _Values(missing.values[:1], missing.first[:1], np.array([len(order)], np.intp))
    return _Found(numbers, missing)


def _inverse(operation: str, x: Array, found: _Found) -> Array:
    """For each element of x the number of its value, sharded as x."""
    source = Source(operation, x, x.sharding)
    values, missing = found.numbers.values, found.missing.first

    def fill(out: NDArray[Any], box: Box, position: int) -> None:
        part = source.box(box, position)
        out[...] = np.searchsorted(values, part)
        inside = np.flatnonzero(part != part)
        if inside.size:
            rank = np.searchsorted(missing, flat_positions(inside, box, x.shape)) if len(missing) > 1 else 0
            out[np.unravel_index(inside, out.shape)] = len(values) + rank

    return assemble(operation, x.shape, np.dtype(np.intp), x.sharding, committed=x.committed, fill=fill)


def _unique(
    operation: str, a: Any, equal_nan: bool, *, index: bool = False, inverse: bool = False, counts: bool = False
) -> list[Array]:
    """The values of a, then what else is asked for; all but the inverse whole on each device of a."""
    x = array_operand(operation, a)
    found = _find(operation, x, _Asked(index, counts), equal_nan)
    fields = ["values", *(["first"] if index else []), *(["counts"] if counts else [])]
    results = []
    for field in fields:
        value = found.all(field)
        results.append(replicated_array(operation, value.shape, value, value.dtype, x))
    if inverse:
        results.insert(1 + index, _inverse(operation, x, found))
    return results


@implements(np.unique)
def _numpy_unique(
    ar: Any,
    return_index: Any = False,
    return_inverse: Any = False,
    return_counts: Any = False,
    axis: Any = None,
    *,
    equal_nan: Any = True,
    sorted: Any = True,
) -> Any:
    """np.unique of all elements; the values are sorted."""
    if axis is not None:
        raise TypeError(
            f"unique: rows are not compared on Arrays; expected axis None, got {axis}; gather first: "
            f"np.unique(np.asarray(x), axis={axis})"
        )
    results = _unique(
        "unique",
        ar,
        bool(equal_nan),
        index=bool(return_index),
        inverse=bool(return_inverse),
        counts=bool(return_counts),
    )
    return results[0] if len(results) == 1 else tuple(results)


def _class_of(function: Any) -> Any:
    """The named tuple that a function of NumPy returns."""
    return type(function(np.empty(0)))


@implements(np.unique_all)
def _unique_all(x: Any, /) -> Any:
    """np.unique_all: each NaN is a value of its own."""
    results = _unique("unique_all", x, False, index=True, inverse=True, counts=True)
    return _class_of(np.unique_all)(*results)


@implements(np.unique_counts)
def _unique_counts(x: Any, /) -> Any:
    """np.unique_counts: each NaN is a value of its own."""
    return _class_of(np.unique_counts)(*_unique("unique_counts", x, False, counts=True))


@implements(np.unique_inverse)
def _unique_inverse(x: Any, /) -> Any:
    """np.unique_inverse: each NaN is a value of its own."""
    return _class_of(np.unique_inverse)(*_unique("unique_inverse", x, False, inverse=True))


@implements(np.unique_values)
def _unique_values(x: Any, /) -> Array:
    """np.unique_values: each NaN is a value of its own."""
    return _unique("unique_values", x, False)[0]
