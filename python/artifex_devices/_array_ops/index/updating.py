# SPDX-License-Identifier: Apache-2.0
"""x.at[index]: updated copies of Arrays. Each device updates its own shard."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from artifex_devices._array_ops.core.arguments import as_operand
from artifex_devices._array_ops.core.blocks import (
    Box,
    allocate,
    copy_views,
    local_arrays,
    moved_to,
    run_all,
    shift,
    tiling,
)
from artifex_devices._array_ops.core.operand_sharding import common_devices, placed_as, sharding_with
from artifex_devices._array_ops.core.reading import SCALARS, Source, pieces_of_box
from artifex_devices._array_ops.index.indexing import _window
from artifex_devices._array_ops.index.selection import Selection, parse
from artifex_devices._base.argument_types import Index
from artifex_devices._base.checks import failure
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array, PartitionSpec, Sharding, internal

_METHODS = ("set", "add", "subtract", "multiply", "mul", "divide", "power", "min", "max", "get")


class At:
    """The type of `x.at`, which takes an index."""

    __slots__ = ("_array",)

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, index: Index) -> AtIndex:
        return AtIndex(self._array, index)

    def __call__(self, *_: Any, **__: Any) -> None:
        """Raises TypeError: an index is written in brackets."""
        raise TypeError("at: it is not a function; expected an index in brackets, got a call; write x.at[i].set(v)")

    def __getattr__(self, name: str) -> object:
        if name in _METHODS:
            raise AttributeError(f"at: no index; expected x.at[i].{name}, got x.at.{name}; write x.at[...].{name}(v)")
        raise AttributeError(f"at: it has no attribute {name!r}; expected an index in brackets; write x.at[i].set(v)")

    def __repr__(self) -> str:
        return f"<at of an Array of shape {self._array.shape}>"


def _method(name: str, ufunc: np.ufunc | None, doc: str) -> Callable[..., Array]:
    def update(self: AtIndex, values: ArrayLike, **options: Any) -> Array:
        out_sharding = _out_sharding(name, options)
        return self._placed(_updated(f"at[...].{name}", self._array, self._index, ufunc, values), out_sharding)

    update.__name__, update.__qualname__, update.__doc__ = name, f"AtIndex.{name}", doc
    return update


class AtIndex:
    """The type of `x.at[index]`, whose methods return copies of x with the elements of x[index] updated."""

    __slots__ = ("_array", "_index")

    set = _method("set", None, "A copy of x with x[index] = values.")
    add = _method(
        "add", np.add, "A copy of x with values added to x[index]; an index that is listed twice is added to twice."
    )
    subtract = _method("subtract", np.subtract, "A copy of x with values subtracted from x[index].")
    multiply = mul = _method("multiply", np.multiply, "A copy of x with x[index] multiplied by values.")
    divide = _method("divide", np.true_divide, "A copy of x with x[index] divided by values.")
    power = _method("power", np.power, "A copy of x with x[index] raised to the power of values.")
    min = _method("min", np.minimum, "A copy of x with the smaller of x[index] and values.")
    max = _method("max", np.maximum, "A copy of x with the larger of x[index] and values.")

    def __init__(self, array: Array, index: Index) -> None:
        self._array = array
        self._index = index

    def __getattr__(self, name: str) -> object:
        raise failure(
            AttributeError,
            "at[...]",
            f"it has no method {name!r}",
            expected=f"one of {', '.join(_METHODS)}",
            fix=f"check the spelling{did_you_mean(name, _METHODS)}",
        )

    def __repr__(self) -> str:
        return f"<at[{safe_repr(self._index)}] of an Array of shape {self._array.shape}>"

    def get(self, **options: Any) -> Array:
        """Reads x[index]."""
        return self._placed(self._array[self._index], _out_sharding("get", options))

    def _placed(self, result: Array, out_sharding: Sharding | PartitionSpec | None) -> Array:
        return result if out_sharding is None else placed_as(result, self._array, out_sharding)


def _out_sharding(name: str, options: dict[str, Any]) -> Any:
    """Returns the out_sharding of the call, after a check of JAX's other options."""
    supported = ("indices_are_sorted", "unique_indices", "mode", "fill_value", "wrap_negative_indices", "out_sharding")
    unknown = sorted(set(options) - set(supported))
    if unknown:
        raise failure(
            TypeError,
            f"at[...].{name}",
            f"unknown arguments {', '.join(unknown)}",
            expected=", ".join(supported),
            fix="check the spelling",
        )
    mode = options.get("mode")
    if mode not in (None, "promise_in_bounds") or options.get("wrap_negative_indices", True) is not True:
        raise failure(
            ValueError,
            f"at[...].{name}",
            "indices beyond the shape are an IndexError",
            expected="mode None",
            got=f"mode {safe_repr(mode)}",
            fix="clip the indices by np.clip(i, 0, n - 1), or select those below n, first",
        )
    return options.get("out_sharding")


def _updated(operation: str, x: Array, index: Any, ufunc: np.ufunc | None, values: ArrayLike) -> Array:
    """Returns a copy of x with ufunc(x[index], values) in place of x[index], or with the values if `ufunc` is None."""
    value = values if type(values) in SCALARS else as_operand(operation, values)
    if isinstance(value, np.ndarray):
        _check_numbers(operation, value)
    if type(value) is int and x.dtype.kind in "iu":
        _check_range(operation, x, value)
    _check_result(operation, x, ufunc, value)
    if isinstance(value, Array):
        devices = common_devices(operation, [x, value])
        if not x.sharding._same_devices(devices.sharding):
            x = moved_to(operation, x, devices, sharding_with(devices.sharding, ((),) * x.ndim))
    is_mask = isinstance(index, Array) and index.dtype == bool and index.shape == x.shape
    if is_mask and (not isinstance(value, (Array, np.ndarray)) or value.ndim == 0):
        changed = value if ufunc is None else ufunc(x, value)
        masked: Any = np.where(index, changed, x)
        result: Array = masked.astype(x.dtype)
        return result
    update = _Update(operation, x, parse(x, index), ufunc, value)
    copy, buffers = allocate(operation, x.shape, x.dtype, x.sharding, committed=x.committed)
    copy_views(buffers, local_arrays(operation, x, False, True))
    places = tiling(x.sharding, x.shape, operation)
    tasks = [
        functools.partial(update.write, out[shift(piece, box)], piece, position)
        for out, box, position in zip(buffers, places.boxes, places.positions, strict=True)
        if out.size
        for piece in update.pieces(box, out)
    ]
    run_all(tasks, 2 * x.nbytes)
    return copy


def _check_numbers(operation: str, value: NDArray[Any]) -> None:
    """Raises TypeError for values of a dtype that devices do not support."""
    try:
        internal.host_empty((0,), value.dtype)
    except TypeError as error:
        raise TypeError(f"{operation}: the values: {str(error).removeprefix('host_empty: ')}") from None


def _check_range(operation: str, x: Array, value: int) -> None:
    """Raises OverflowError for an int that the dtype of x does not hold."""
    limits = np.iinfo(x.dtype)
    if not limits.min <= value <= limits.max:
        wider = "np.int64" if -(1 << 63) <= value < 1 << 63 and x.dtype != np.int64 else "float"
        size = f", of {value.bit_length()} bits" if value.bit_length() > 64 else ""
        raise failure(
            OverflowError,
            operation,
            f"a Python int does not fit the {x.dtype} of the Array",
            expected=f"{limits.min} to {limits.max}",
            got=f"{safe_repr(value)}{size}",
            fix=f"convert the Array first: x = x.astype({wider})",
        )


def _check_result(operation: str, x: Array, ufunc: np.ufunc | None, value: Any) -> None:
    """Raises TypeError if NumPy would for x[index] op= value."""
    if ufunc is None:
        if type(value) is complex and x.dtype.kind != "c":
            raise failure(
                TypeError,
                operation,
                f"a complex number does not fit the {x.dtype} of the Array",
                expected="a real number",
                got=value,
                fix="convert the Array first: x = x.astype(complex)",
            )
        return
    sample = value if type(value) in SCALARS else np.empty(0, value.dtype)
    with np.errstate(all="ignore"):
        result = ufunc(np.ones(0, x.dtype), sample).dtype
    if not np.can_cast(result, x.dtype, "same_kind"):
        raise failure(
            TypeError,
            operation,
            f"the result is of dtype {result}",
            expected=f"a dtype that converts to the {x.dtype} of the Array",
            got=f"values of {getattr(value, 'dtype', type(value).__name__)}",
            fix=f"convert first: x.astype({str(result)!r})",
        )


class _Update:
    """Updates boxes of the copy."""

    def __init__(self, operation: str, x: Array, chosen: Selection, ufunc: np.ufunc | None, value: Any) -> None:
        self._chosen = chosen
        self._ufunc = ufunc
        self._scalar = None
        if type(value) in SCALARS:
            # In the dtype of x, as for x + value; ufunc.at would add it in a wider dtype, several times as slowly.
            self._scalar = value if ufunc is None else np.asarray(value, x.dtype)[()]
        self._source: Source | None = None
        if self._scalar is None:
            self._check_shape(operation, value.shape)
            self._shape: tuple[int, ...] = value.shape
            self._source = Source(operation, value, x.sharding)
        of_range = {r.dim: r for r in chosen.ranges}
        self._picked = range(chosen.at, chosen.at + chosen.rank)
        # New dimensions of size 1.
        self._new = [d for d in range(len(chosen.shape)) if d not in of_range and d not in self._picked]

    def _check_shape(self, operation: str, shape: tuple[int, ...]) -> None:
        wanted = self._chosen.shape
        extra = len(shape) - len(wanted)
        kept = shape[extra:] if extra > 0 else shape
        fits = all(size in (1, full) for size, full in zip(kept[::-1], wanted[::-1], strict=False))
        if not fits or any(size != 1 for size in shape[: max(extra, 0)]):
            raise failure(
                ValueError,
                operation,
                "the values do not broadcast",
                expected=f"shape {wanted} or a shape that broadcasts to it",
                got=shape,
                fix="reshape the values",
            )

    def pieces(self, box: Box, block: Any) -> list[Box]:
        """Divides a box into the parts of separate tasks; index arrays are searched once for each part."""
        return [box] if self._chosen.rank else pieces_of_box(box, block)

    def write(self, out: NDArray[Any], box: Box, position: int) -> None:
        """Updates one non-empty box."""
        chosen = self._chosen
        key: list[Any] = [slice(None)] * out.ndim
        wanted = [slice(0, size, 1) for size in chosen.shape]  # of the values
        for r in chosen.ranges:
            window = _window(r, slice(0, chosen.shape[r.dim]), box[r.source])
            if window is None:
                return
            key[r.source], part = window
            wanted[r.dim] = slice(part.start, part.stop, 1)
        inside = [pick.places - box[pick.source].start for pick in chosen.picks]
        mask = np.ones(chosen.shape[chosen.at : chosen.at + chosen.rank], bool)
        for pick, place in zip(chosen.picks, inside, strict=True):
            mask &= (place >= 0) & (place < box[pick.source].stop - box[pick.source].start)
        if not mask.any():
            return
        value = self._value_of(wanted, position)
        if not chosen.rank:
            for pick, place in zip(chosen.picks, inside, strict=True):
                key[pick.source] = int(place)
            self._write(out[(*key, ...)], value)
            return
        sources = [pick.source for pick in chosen.picks]
        local = np.moveaxis(out[(*key, ...)], sources, range(len(sources)))  # with ..., a view of a number too
        if self._scalar is None:
            value = value[mask]
        if not inside:
            self._write(local, value if self._scalar is not None else value[0])
            return
        places = tuple(place[mask] for place in inside)
        if self._ufunc is None:
            local[places] = value
        else:
            self._ufunc.at(local, places, value)

    def _write(self, target: NDArray[Any], value: Any) -> None:
        if self._ufunc is None:
            target[...] = value
        else:
            self._ufunc(target, value, out=target, casting="same_kind")

    def _value_of(self, wanted: list[slice], position: int) -> Any:
        """Returns a part of the values, broadcast: the picked dimensions first, then the ranges."""
        if self._source is None:
            return self._scalar
        offset = len(self._shape) - len(wanted)
        own: Box = tuple(
            wanted[d - offset] if d >= offset and size == self._chosen.shape[d - offset] else slice(0, size, 1)
            for d, size in enumerate(self._shape)
        )
        part = self._source.box(own, position)
        if offset > 0:
            part = part.reshape(part.shape[offset:])
        part = np.broadcast_to(part, [each.stop - each.start for each in wanted])
        new: list[Any] = [slice(None)] * len(wanted)
        part = np.moveaxis(part, self._picked, range(len(self._picked)))
        rest = [d for d in range(len(wanted)) if d not in self._picked]
        for at, d in enumerate(rest):
            if d in self._new:
                new[len(self._picked) + at] = 0
        return part[(*new, ...)]
