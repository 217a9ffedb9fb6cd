# SPDX-License-Identifier: Apache-2.0
"""Functions that take elements by their positions; functions with results of unknown size raise an error."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from artifex_devices._array_ops.core.arguments import (
    as_array,
    deliver,
    host_target,
    on_host,
    one_axis,
    operand,
    refuse_bool_axis,
)
from artifex_devices._array_ops.core.auto_axes import whole_operands
from artifex_devices._array_ops.core.blocks import Box, local_arrays
from artifex_devices._array_ops.core.operand_sharding import common_devices, sharding_with, spec_of
from artifex_devices._array_ops.core.reading import Source, assemble
from artifex_devices._array_ops.core.registry import implements, refuses
from artifex_devices._array_ops.elementwise.ufuncs import map_elements
from artifex_devices._array_ops.index.indexing import get, part_of
from artifex_devices._base.argument_types import Operand, Out
from artifex_devices._base.checks import failure
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array


@implements(np.take)
def take(a: Any, indices: Any, axis: int | None = None, out: Out = None, mode: str = "raise") -> Operand:
    """Implements np.take: the dimensions of the indices replace the dimension."""
    if mode not in ("raise", "wrap", "clip"):
        raise failure(
            ValueError,
            "take",
            f"mode {safe_repr(mode)} is not known",
            expected="'raise', 'wrap' or 'clip'",
            fix="choose one of them",
        )
    refuse_bool_axis("take", axis)
    into = host_target("take", out)
    if into is not None and not np.can_cast(into.dtype, a.dtype, "safe"):  # as NumPy, which reads out as one of a
        raise failure(
            TypeError,
            "take",
            f"out of dtype {into.dtype} is not safely cast to {a.dtype}",
            expected=a.dtype,
            got=into.dtype,
            fix=f"make it by np.empty(shape, np.{a.dtype})",
        )
    if axis is not None:
        a = np.atleast_1d(a)  # a number is one element to NumPy
        axis = one_axis("take", axis, a.ndim)
    size = a.size if axis is None else a.shape[axis]
    dtype = indices.dtype if isinstance(indices, Array) else np.asarray(indices).dtype
    kind = dtype.kind
    if kind not in "iub" and (np.size(indices) or isinstance(indices, (Array, np.ndarray))):
        raise failure(
            TypeError,
            "take",
            "indices are not integers",
            expected="an integer dtype",
            got=dtype,
            fix="convert them: i.astype(int)",
        )
    places = indices
    if mode != "raise" or axis is None or not isinstance(indices, Array) or kind == "b":
        places = on_host("take", indices, "indices").astype(np.intp)
    if axis is not None and 0 in a.shape[:axis] + (() if mode == "raise" else a.shape[axis + 1 :]):
        # Nothing is taken, and NumPy does not check indices then.
        places = np.zeros_like(places)
        if not size:
            a = np.any(a, axis=axis, keepdims=True).astype(a.dtype)
    elif mode != "raise" and places.size:
        if not size:
            raise IndexError("take: the Array has no elements to take; expected 1 element or more, got 0")
        places = places % size if mode == "wrap" else np.clip(places, 0, size - 1)
    if axis is None:
        if a.ndim == 0:
            a = get(a, None)
        wrong = (places < -size) | (places >= size)
        if np.any(wrong):
            raise failure(
                IndexError,
                "take",
                f"{int(places[wrong].flat[0])} is out of range",
                expected=f"{-size} to {size - 1} for shape {a.shape}",
                fix="use mode='clip' to take the nearest",
            )
        # Nothing is taken from an empty Array, by one empty list of positions for each dimension.
        index: tuple[Any, ...] = np.unravel_index(places % size, a.shape) if size else (places,) * a.ndim
    else:
        index = (*(slice(None),) * axis, places)
    result = get(a, index)
    return deliver("take", result, into, "unsafe")


@implements(np.compress)
def compress(condition: ArrayLike, a: ArrayLike, axis: int | None = None, out: Out = None) -> Operand:
    """Implements np.compress, with a condition that is not sharded."""
    if isinstance(condition, Array) and not condition.is_fully_replicated:
        raise failure(
            TypeError,
            "compress",
            f"how many elements a condition with {spec_of(condition)} selects is not known before it is gathered",
            expected="a condition on the host",
            got="an Array that is sharded",
            fix="gather it: np.asarray(condition)",
        )
    chosen = on_host("compress", condition, "condition")
    if chosen.ndim != 1:
        raise failure(
            ValueError,
            "compress",
            f"condition has {chosen.ndim} dimensions",
            expected="1, a truth value for each element",
            got=f"shape {chosen.shape}",
            fix="give a list of bools",
        )
    return take(a, np.flatnonzero(chosen), axis, out)


@implements(np.repeat)
def repeat(a: ArrayLike, repeats: ArrayLike, axis: int | None = None) -> Array:
    """Implements np.repeat: a repeated dimension stays sharded if that divides the size."""
    x: Any = as_array("repeat", a, [a, repeats])
    refuse_bool_axis("repeat", axis)
    if axis is None:
        x = np.ravel(x)
        axis = 0
    x = np.atleast_1d(x)  # a number is one element to NumPy
    axis = one_axis("repeat", axis, x.ndim)
    counts = on_host("repeat", repeats, "repeats")
    if counts.dtype.kind in "iu":
        # NumPy lets the product of sizes and counts overflow, and then writes past the end of the result.
        size = sum(map(int, counts.ravel())) * (x.shape[axis] if counts.size == 1 else 1)
        others = math.prod(x.shape[:axis] + x.shape[axis + 1 :])
        if size * max(others, 1) * max(x.dtype.itemsize, 8) >= 2**63:
            raise failure(
                ValueError,
                "repeat",
                f"repeats make {size} elements in dimension {axis} of shape {x.shape}",
                expected="a size whose bytes fit 64 bits",
                fix="repeat less often",
            )
    return part_of("repeat", x, axis, np.repeat(np.arange(x.shape[axis]), counts))


@implements(np.take_along_axis)
def _take_along_axis(arr: ArrayLike, indices: ArrayLike, axis: int | None = -1) -> Array:
    if axis is None:
        raise failure(
            TypeError,
            "take_along_axis",
            "axis None flattens, which Arrays do not",
            expected="a dimension",
            got="None",
            fix="use np.take(x, indices)",
        )
    source, places = operand("take_along_axis", arr), operand("take_along_axis", indices)
    if source.ndim != places.ndim:
        raise failure(
            ValueError,
            "take_along_axis",
            "x and indices have different ranks",
            expected=source.ndim,
            got=places.ndim,
            fix="reshape the indices",
        )
    if places.dtype.kind not in "iu":
        raise IndexError(f"take_along_axis: indices of dtype {places.dtype}; expected integers; use i.astype(int)")
    axis = one_axis("take_along_axis", axis, source.ndim)
    is_local = all(x.is_fully_addressable for x in (source, places) if isinstance(x, Array))
    whole = (axis,) if is_local else range(source.ndim)  # tiles of other processes cannot be read
    source, places = whole_operands("take_along_axis", (source, whole, "x"), (places, whole, "indices"))
    size = source.shape[axis]
    for part in local_arrays("take_along_axis", places) if isinstance(places, Array) else (places,):
        wrong = (part < -size) | (part >= size)
        if wrong.any():
            raise failure(
                IndexError,
                "take_along_axis",
                f"{int(part[wrong].flat[0])} is out of range in dimension {axis} of shape {source.shape}",
                expected=f"{-size} to {size - 1}",
            )
    arrays = [x for x in (source, places) if isinstance(x, Array)]
    devices = common_devices("take_along_axis", arrays)
    shape = list(np.broadcast_shapes(*(x.shape[:axis] + x.shape[axis + 1 :] for x in (source, places))))
    shape.insert(axis, places.shape[axis])
    spec: list[tuple[Hashable, ...]] = [()] * len(shape)
    used: set[Hashable] = set()
    for x in filter(devices.shares_mesh, arrays):
        for d, axes in enumerate(spec_of(x)):
            if not spec[d] and x.shape[d] == shape[d] and used.isdisjoint(axes):
                spec[d] = axes
                used.update(axes)
    sharding = sharding_with(devices.sharding, tuple(spec))
    sources = [Source("take_along_axis", x, sharding) for x in (source, places)]

    def fill(out: NDArray[Any], box: Box, position: int) -> None:
        parts = []
        for x, part in zip((source, places), sources, strict=True):
            wanted = tuple(
                slice(0, n, 1) if (d == axis and x is source) or n != shape[d] else box[d]
                for d, n in enumerate(x.shape)
            )
            parts.append(part.box(wanted, position))
        out[...] = np.take_along_axis(parts[0], parts[1], axis=axis)

    return assemble("take_along_axis", tuple(shape), source.dtype, sharding, committed=devices.committed, fill=fill)


@implements(np.select)
def _select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Operand:
    if len(condlist) != len(choicelist) or not len(condlist):
        raise failure(
            ValueError,
            "select",
            "conditions and choices do not pair",
            expected="equally many, 1 or more",
            got=f"{len(condlist)} and {len(choicelist)}",
        )
    dtype = np.result_type(*choicelist, default)
    result: Any = np.asarray(default, dtype) if not isinstance(default, Array) else default
    for condition, choice in zip(condlist[::-1], choicelist[::-1], strict=True):
        result = np.where(condition, choice, result)
    return np.astype(result, dtype, copy=False)


@implements(np.searchsorted)
def _searchsorted(a: ArrayLike, v: ArrayLike, side: Any = "left", sorter: ArrayLike | None = None) -> Array:
    tables: list[tuple[Any, str]] = [(a, "a"), (sorter, "sorter")]
    a, sorter = whole_operands("searchsorted", *((x, range(np.ndim(x)), name) for x, name in tables))
    keys = on_host("searchsorted", a, "a")
    order = None if sorter is None else on_host("searchsorted", sorter, "sorter")
    values = as_array("searchsorted", v, [a, v, sorter])

    def compute(outputs: Any, parts: Any) -> None:
        outputs[0][...] = np.searchsorted(keys, parts[0], side, order)

    result: Array = map_elements("searchsorted", compute, [values], (np.dtype(np.intp),))[0]
    return result


refuses(
    "how many elements there are is not known before they are read",
    np.extract,
    np.trim_zeros,
)
