# SPDX-License-Identifier: Apache-2.0
"""Indices by NumPy's rules: ints, slices, None, Ellipsis, masks and integer arrays."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifex_devices._array_ops.core.arguments import on_host
from artifex_devices._array_ops.index.searching import nonzero_on_host
from artifex_devices._base.checks import failure
from artifex_devices._core import Array


class Range(NamedTuple):
    """Dimension `dim` of the result is start, start + step, ... of dimension `source`."""

    dim: int
    source: int
    start: int
    step: int


class Pick(NamedTuple):
    """Positions in dimension `source`, not negative, in the common shape of the index arrays."""

    source: int
    places: NDArray[np.intp]


class Selection(NamedTuple):
    """An index that fits a shape. Dimensions of the result that are not listed here are new, of size 1."""

    shape: tuple[int, ...]  # of the result
    ranges: tuple[Range, ...]  # by dim, and by source
    picks: tuple[Pick, ...]  # an int is a pick without dimensions
    at: int  # the first dimension of the result that belongs to the picks
    rank: int  # number of these dimensions


def parse(x: Array, index: object) -> Selection:
    """Returns the Selection of x[index]."""
    items = [_item(part) for part in (index if isinstance(index, tuple) else (index,))]
    items = _without_ellipsis(items, x)
    shape = x.shape
    arrays = any(isinstance(item, (np.ndarray, Array)) for item in items)
    layout: list[tuple[int, int, int, int] | None] = []  # (source, start, step, count), None is a new dimension
    picks: list[tuple[int | None, NDArray[Any]]] = []  # the bool scalars have no source
    at: int | None = None
    source = 0
    together, gap = True, False
    for item in items:
        if item is None or item is Ellipsis or isinstance(item, slice):
            gap = at is not None
            if item is Ellipsis:
                continue
            if item is None:
                layout.append(None)
                continue
            start, stop, step = item.indices(shape[source])
            layout.append((source, start, step, len(range(start, stop, step))))
            source += 1
            continue
        if at is None:
            at = len(layout)
        elif gap:
            together = False
        if isinstance(item, int):
            picks.append((source, np.array(_place(item, source, shape), np.intp)))
            source += 1
        elif item.dtype != bool:
            picks.append((source, _places(item, source, shape)))
            source += 1
        elif item.ndim == 0:
            picks.append((None, np.zeros(1 if item else 0, np.intp)))
        else:
            _check_mask(item.shape, source, shape)
            places = nonzero_on_host("index", item) if isinstance(item, Array) else item.nonzero()
            picks.extend((source + d, along) for d, along in enumerate(places))
            source += item.ndim
    picked = _common_shape([places.shape for _, places in picks])
    at = 0 if at is None or (arrays and not together) else at
    ranges: list[Range] = []
    sizes: list[int] = []
    for entry in layout:
        if entry is None:
            sizes.append(1)
            continue
        dim = len(sizes) + (len(picked) if len(sizes) >= at else 0)
        ranges.append(Range(dim, entry[0], entry[1], entry[2]))
        sizes.append(entry[3])
    sizes[at:at] = picked
    return Selection(
        tuple(sizes),
        tuple(ranges),
        tuple(Pick(d, np.broadcast_to(places, picked)) for d, places in picks if d is not None),
        at,
        len(picked),
    )


def _item(part: Any) -> Any:
    """Converts a part of an index to None, Ellipsis, a slice, an int, an Array that is a mask, or an ndarray."""
    if isinstance(part, slice):
        bounds = (part.start, part.stop, part.step)
        return slice(*map(_bound, bounds)) if any(isinstance(bound, Array) for bound in bounds) else part
    if part is None or part is Ellipsis:
        return part
    if isinstance(part, (bool, np.bool_)):
        return np.array(part)
    if isinstance(part, Array) and (part.dtype == bool and part.ndim):
        return part
    if isinstance(part, (list, tuple)) or (hasattr(part, "__array__") and not isinstance(part, np.generic)):
        try:
            array = on_host("index", part, "i")
        except ValueError as error:
            if not isinstance(part, (list, tuple)) or "inhomogeneous" not in str(error):
                raise
            raise failure(
                ValueError,
                "index",
                "a list of lists of different lengths is not an index",
                expected="one length",
                got=_described(part),
                fix="flatten it: i = sum(i, [])",
            ) from None
        if array.size == 0 and isinstance(part, (list, tuple)):
            array = array.astype(np.intp)
        if array.dtype == bool:
            return array
        if array.dtype.kind in "iu":
            return int(array) if array.ndim == 0 else array
        raise failure(
            IndexError,
            "index",
            f"an array of dtype {array.dtype} is not an index",
            expected="integers or bools",
            got=_described(part),
            fix="convert it: i.astype(int)",
        )
    try:
        return operator.index(part)
    except TypeError:
        raise failure(
            IndexError,
            "index",
            f"{_described(part)} is not an index",
            expected="integers, slices, Ellipsis, None, and arrays of integers or bools",
            fix="convert a number by int(i)",
        ) from None


def _bound(bound: object) -> Any:
    """Converts a start, stop or step of a slice, or an Array, to an int."""
    return operator.index(on_host("index", bound, "i")) if isinstance(bound, Array) else bound


def _described(part: object) -> str:
    text = repr(part)
    return f"{text if len(text) < 60 else text[:57] + '...'} ({type(part).__name__})"


def _without_ellipsis(items: list[Any], x: Array) -> list[Any]:
    """Returns the items with `:` in place of Ellipsis, or at the end."""
    used = sum(0 if item is None or item is Ellipsis else _dimensions(item) for item in items)
    if used > x.ndim:
        raise failure(
            IndexError,
            "index",
            "too many indices",
            expected=f"at most {x.ndim} for shape {x.shape}",
            got=used,
            fix="leave some out",
        )
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise failure(
            IndexError,
            "index",
            "only one Ellipsis is possible",
            expected="one '...'",
            got=len(dots),
            fix="write ':' instead",
        )
    # An Ellipsis that matches no dimensions stays, because it separates the index arrays on its two sides, as in NumPy.
    rest: list[Any] = [slice(None)] * (x.ndim - used) or [Ellipsis] * len(dots)
    position = dots[0] if dots else len(items)
    return [*items[:position], *rest, *items[position + 1 :]]


def _dimensions(item: object) -> int:
    if isinstance(item, Array):
        return item.ndim
    return item.ndim if isinstance(item, np.ndarray) and item.dtype == bool else 1


def _place(i: int, d: int, shape: tuple[int, ...]) -> int:
    size = shape[d]
    if not -size <= i < size:
        raise _out_of_range(i, d, shape)
    return i + size if i < 0 else i


def _places(places: NDArray[Any], d: int, shape: tuple[int, ...]) -> NDArray[Any]:
    size = shape[d]
    wrong = (places < -size) | (places >= size)
    if wrong.any():
        raise _out_of_range(int(places[wrong][0]), d, shape)
    places = places.astype(np.intp)
    return np.where(places < 0, places + size, places)


def _out_of_range(i: int, d: int, shape: tuple[int, ...]) -> IndexError:
    size = shape[d]
    wanted = f"{-size} to {size - 1}" if size else "none, because there are no elements"
    return failure(
        IndexError,
        "index",
        f"{i} is out of range in dimension {d} of shape {shape}",
        expected=wanted,
        got=i,
        fix="np.take(x, i, axis, mode='clip') takes the nearest element",
    )


def _check_mask(mask: tuple[int, ...], source: int, shape: tuple[int, ...]) -> None:
    mine = shape[source : source + len(mask)]
    wrong = [
        f"dimension {source + d}: {a} against {b}" for d, (a, b) in enumerate(zip(mask, mine, strict=True)) if a != b
    ]
    if wrong:
        raise failure(
            IndexError,
            "index",
            "a mask does not fit",
            expected=f"shape {mine} for these dimensions of shape {shape}",
            got=f"{mask} ({'; '.join(wrong)})",
            fix="create it by comparing x itself",
        )


def _common_shape(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise failure(
            IndexError,
            "index",
            "the index arrays do not broadcast",
            expected="one common shape",
            got=" and ".join(map(str, shapes)),
            fix="np.ix_ combines each with each",
        ) from None
