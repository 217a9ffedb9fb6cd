# SPDX-License-Identifier: Apache-2.0
"""nonzero, unique and similar functions: each device searches its own tiles, and only the results are combined."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from artifex_devices._array_ops.core.arguments import array_operand, replicated_array
from artifex_devices._array_ops.core.blocks import Box, local_arrays, run_all, tiling
from artifex_devices._array_ops.core.fused_small import small_value
from artifex_devices._array_ops.core.operand_sharding import is_split, sharding_with, spec_of
from artifex_devices._array_ops.core.reading import Source, assemble
from artifex_devices._array_ops.core.registry import implements
from artifex_devices._base.argument_types import Axes
from artifex_devices._base.checks import failure
from artifex_devices._core import Array, internal
from artifex_devices._runtime.gpu_block import host_value


def over_tiles(operation: str, x: Array, find: Callable[[NDArray[Any], Box], Any]) -> list[Any]:
    """Calls find(tile, box) once for each tile of x, on several cores; the results are in the order of the tiles."""
    if not x.is_fully_addressable:
        raise failure(
            RuntimeError,
            operation,
            "the number of elements depends on parts of the Array in other processes",
            expected=f"an Array of shape {x.shape} that is fully addressable",
            fix="gather it first: multihost_utils.process_allgather(x)",
        )
    whole = small_value(x)
    if whole is not None:
        return [find(whole, tuple(slice(0, size, 1) for size in x.shape))]
    places = tiling(x.sharding, x.shape, operation)
    arrays = local_arrays(operation, x)
    found: dict[int, Any] = {}

    def search(tile: int, number: int) -> None:
        found[tile] = host_value(find(arrays[number], places.boxes[number]))

    run_all([functools.partial(search, tile, number) for tile, number in places.first.items()], x.nbytes)
    return [found[tile] for tile in sorted(found)]


def flat_positions(inside: NDArray[np.intp], box: Box, shape: tuple[int, ...]) -> NDArray[np.intp]:
    """Converts row-major positions in a box to positions in the array, which has the shape `shape`."""
    sizes = tuple(part.stop - part.start for part in box)
    if sizes == shape:
        return inside
    index = np.unravel_index(inside, sizes)
    result: NDArray[np.intp] = np.ravel_multi_index(
        tuple(along + part.start for along, part in zip(index, box, strict=True)), shape
    )
    return result


def nonzero_on_host(operation: str, x: Array) -> tuple[NDArray[np.intp], ...]:
    """Returns the indices of the nonzero elements in row-major order, one array for each dimension."""
    if not x.ndim:
        raise failure(
            ValueError,
            operation,
            "Calling nonzero on 0d arrays is not allowed",
            expected="at least one dimension",
            got="shape ()",
            fix="use np.atleast_1d(x) first",
        )

    def find(tile: NDArray[Any], box: Box) -> tuple[NDArray[np.intp], ...]:
        return tuple(along + part.start for along, part in zip(np.nonzero(tile), box, strict=True))

    found = over_tiles(operation, x, find)
    if len(found) == 1:
        return _read_by_host(operation, x, found[0])
    index = tuple(np.concatenate(along) for along in zip(*found, strict=True))
    long = next((d for d, size in enumerate(x.shape) if size > 1), 0)
    if any(
        is_split(x.sharding, axes) for axes in spec_of(x)[long + 1 :]
    ):  # the tiles are not in the order of the elements
        order = np.argsort(np.ravel_multi_index(index, x.shape))
        index = tuple(along[order] for along in index)
    return _read_by_host(operation, x, index)


def _read_by_host(operation: str, x: Array, index: tuple[NDArray[np.intp], ...]) -> tuple[NDArray[np.intp], ...]:
    """Returns the indices, after asking the transfer guards about reading them and recording it."""
    shape = (len(index), len(index[0]))
    repair = "i = ad.device_get(i)" if operation == "index" else f"np.{operation}(ad.device_get(x))"
    name = "i" if operation == "index" else "x"
    internal.host_result(
        sharding_with(x.sharding, ()), shape, np.dtype(np.intp), operation, f"read {name} first: {repair}"
    )
    return index


@implements(np.nonzero)
def nonzero(a: ArrayLike) -> tuple[Array, ...]:
    """Implements np.nonzero: the results are replicated on the devices of a."""
    x = array_operand("nonzero", a)
    return tuple(replicated_array("nonzero", places, x) for places in nonzero_on_host("nonzero", x))


@implements(np.argwhere)
def _argwhere(a: ArrayLike) -> Array:
    x = array_operand("argwhere", a)
    rows = np.transpose(nonzero_on_host("argwhere", x)) if x.ndim else np.argwhere(np.asarray(x))
    return replicated_array("argwhere", rows, x)


@implements(np.flatnonzero)
def _flatnonzero(a: ArrayLike) -> Array:
    x = array_operand("flatnonzero", a)
    places = (
        np.ravel_multi_index(nonzero_on_host("flatnonzero", x), x.shape) if x.ndim else np.flatnonzero(np.asarray(x))
    )
    return replicated_array("flatnonzero", places, x)


class _Values(NamedTuple):
    """The distinct values of a part."""

    values: NDArray[Any]
    first: NDArray[np.intp]  # row-major position of the first element of each value
    counts: NDArray[np.intp]  # number of elements of each value


class _Found(NamedTuple):
    """Distinct values in ascending order, and NaNs in the order of their positions."""

    numbers: _Values
    missing: _Values

    def all(self, field: str) -> NDArray[Any]:
        """Returns one field of both sets of values."""
        return np.concatenate([getattr(self.numbers, field), getattr(self.missing, field)])


_NONE = np.empty(0, np.intp)  # a field that is not computed


def _distinct(values: NDArray[Any], index: bool, counts: bool) -> _Values:
    """Returns the distinct values of a vector without NaN."""
    unique: Any = np.unique
    found = unique(values, return_index=index, return_counts=counts)
    columns = iter(found if index or counts else (found,))
    return _Values(next(columns), next(columns) if index else _NONE, next(columns) if counts else _NONE)


def _joined(parts: Sequence[_Values], index: bool, counts: bool) -> _Values:
    """Returns the distinct values of several parts."""
    values, first, count = (np.concatenate(column) for column in zip(*parts, strict=True))
    if not index and not counts:
        return _Values(np.unique(values), first, count)
    found, inverse = np.unique(values, return_inverse=True)
    least, total = np.full(found.shape, np.iinfo(np.intp).max, np.intp), np.zeros(found.shape, np.intp)
    if index:
        np.minimum.at(least, inverse, first)
    if counts:
        np.add.at(total, inverse, count)
    return _Values(found, least, total)


def _in_tile(tile: NDArray[Any], box: Box, shape: tuple[int, ...], index: bool, counts: bool) -> _Found:
    flat = tile.reshape(-1)
    is_missing = flat != flat
    missing = np.flatnonzero(is_missing)
    numbers = _distinct(flat[~is_missing] if missing.size else flat, index, counts)
    first = np.flatnonzero(~is_missing)[numbers.first] if missing.size else numbers.first
    return _Found(
        numbers._replace(first=flat_positions(first, box, shape)),
        _Values(flat[missing], flat_positions(missing, box, shape), np.ones(missing.shape, np.intp)),
    )


def _find(x: Array, index: bool, counts: bool, equal_nan: bool) -> _Found:
    """Returns the distinct values of x; all NaNs are equal if `equal_nan`."""
    tiles = over_tiles("unique", x, lambda tile, box: _in_tile(tile, box, x.shape, index, counts))
    numbers = tiles[0].numbers if len(tiles) == 1 else _joined([tile.numbers for tile in tiles], index, counts)
    missing = _Values(*(np.concatenate(column) for column in zip(*(tile.missing for tile in tiles), strict=True)))
    order = np.argsort(missing.first)
    missing = _Values(*(column[order] for column in missing))
    if equal_nan and len(order):
        missing = _Values(missing.values[:1], missing.first[:1], np.array([len(order)], np.intp))
    size = len(numbers.values) + len(missing.values)
    repair = "read x first: np.unique(ad.device_get(x))"
    internal.host_result(sharding_with(x.sharding, ()), (size,), x.dtype, "unique", repair)
    return _Found(numbers, missing)


def _inverse(x: Array, found: _Found) -> Array:
    """Returns the number of its value for each element of x, sharded as x."""
    source = Source("unique", x, x.sharding)
    values, missing = found.numbers.values, found.missing.first

    def fill(out: NDArray[Any], box: Box, position: int) -> None:
        part = source.box(box, position)
        out[...] = np.searchsorted(values, part)
        inside = np.flatnonzero(part != part)
        if inside.size:
            rank = np.searchsorted(missing, flat_positions(inside, box, x.shape)) if len(missing) > 1 else 0
            out[np.unravel_index(inside, out.shape)] = len(values) + rank

    return assemble("unique", x.shape, np.dtype(np.intp), x.sharding, committed=x.committed, fill=fill)


@implements(np.unique)
def _unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Axes = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """Implements np.unique of all elements, sorted; all results except the inverse are replicated on its devices."""
    if axis is not None:
        raise failure(
            TypeError,
            "unique",
            "rows are not compared on Arrays",
            expected="axis None",
            got=axis,
            fix=f"gather first: np.unique(np.asarray(x), axis={axis})",
        )
    x = array_operand("unique", ar)
    found = _find(x, bool(return_index), bool(return_counts), bool(equal_nan))
    fields = ["values", *(["first"] if return_index else []), *(["counts"] if return_counts else [])]
    results = [replicated_array("unique", found.all(field), x) for field in fields]
    if return_inverse:
        results.insert(2 if return_index else 1, _inverse(x, found))
    return results[0] if len(results) == 1 else tuple(results)
