# SPDX-License-Identifier: Apache-2.0
"""Exact sums of blocks: states that add up as integers, and their values rounded once.

A state is an int64 ndarray with the shape of the result and one more dimension of `internal.EXACT_WORDS`. Complex
sums have one state for the real parts and one for the imaginary parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices._array_ops.reduce.partials import Part, Rule, State
from artifex_devices._base.clearable_cache import clearable_cache
from artifex_devices._core import internal
from artifex_devices._runtime.gpu_block import host_copy, is_gpu_block

STATE_BYTES = internal.EXACT_WORDS * 8


@clearable_cache(maxsize=256)
def is_rounded(dtype: np.dtype[Any]) -> bool:
    """Returns whether sums of a dtype are rounded: whether it is of floating-point or complex numbers."""
    return dtype.name.startswith(("float", "bfloat", "complex"))


def value_states(block: Any, axes: tuple[int, ...]) -> State:
    """Returns the states of the sums over `axes`, which keep size 1."""
    block = host_copy(block)
    if block.dtype.kind in "iu" and block.dtype.itemsize == 8:  # as two exact doubles
        state = _state(block, axes)
        _add(state, (block >> 32).astype(np.float64) * 2.0**32, axes)
        _add(state, (block & 0xFFFFFFFF).astype(np.float64), axes)
        return (state,)
    states = []
    for part in _parts(block):
        states.append(_state(block, axes))
        _add(states[-1], part, axes)
    return tuple(states)


def square_states(block: Any, axes: tuple[int, ...]) -> State:
    """Returns the state of the sums of squared absolute values. Squares of float64 are rounded."""
    block = host_copy(block)
    state = _state(block, axes)
    for part in _parts(block):
        part = _summable(part)
        internal.exact_add("square", part, part, axes, state)
    return (state,)


def absolute_states(block: Any, axes: tuple[int, ...]) -> State:
    """Returns the state of the sums of the absolute values of real numbers."""
    block = _summable(host_copy(block))
    state = _state(block, axes)
    internal.exact_add("absolute", block, block, axes, state)
    return (state,)


def deviation_states(block: Any, middle: Any, axes: tuple[int, ...]) -> State:
    """Returns the state of the sums of |block - middle|**2. Differences and squares are computed in float64.

    `middle` broadcasts to the block.
    """
    block, middle = host_copy(block), np.asarray(middle)
    state = _state(block, axes)
    pairs = [(block, middle)]
    if "c" in (block.dtype.kind, middle.dtype.kind):
        pairs = [(block.real, middle.real), (block.imag, middle.imag)]
    for part, center in pairs:
        internal.exact_add("deviation", *_deviation_operands(part, center), axes, state)
    return (state,)


def _deviation_operands(part: NDArray[Any], center: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    part = _summable(part)
    last = max((d for d, size in enumerate(part.shape) if size > 1), default=None)
    if last is not None and part.strides[last] != part.itemsize:
        part = np.ascontiguousarray(part)
    center = np.ascontiguousarray(center, np.float64).reshape(np.shape(center))
    return part, np.broadcast_to(center, part.shape)


def exact_results(
    term: str, parts: Sequence[Part], axes: tuple[int, ...], dtype: np.dtype[Any], count: int = 1
) -> NDArray[Any] | None:
    """Returns the sums of the terms of all parts, divided by `count` and rounded once to a dtype.

    Reads each part once and needs no states. None for blocks on GPUs, without elements or of other dtypes than float32
    and float64. The first extra of parts of the term "deviation" is what is subtracted.
    """
    shape = [1 if d in axes else size for d, size in enumerate(parts[0].block.shape)]
    pairs = []
    for part in parts:
        block = part.block
        if is_gpu_block(block) or block.dtype not in (np.float32, np.float64) or not block.size:
            return None
        is_deviation = term == "deviation"
        if is_deviation and (is_gpu_block(part.extras[0]) or part.extras[0].dtype.kind == "c"):
            return None
        pairs.append(_deviation_operands(block, part.extras[0]) if is_deviation else (_summable(block),) * 2)
    found = np.empty(shape)
    internal.exact_reduce(term, [a for a, _ in pairs], [b for _, b in pairs], axes, dtype, count, found)
    return _converted(found, dtype)


def product_states(a: Any, b: Any, axes: tuple[int, ...]) -> State:
    """Returns the states of the sums of a * b, which have one shape. Products of float64 are rounded."""
    a, b = host_copy(a), host_copy(b)
    common = np.result_type(a.dtype, b.dtype)
    a_parts, b_parts = (_parts(x.astype(common, copy=False)) for x in (a, b))
    pairs = [[(a_parts[0], b_parts[0])]]
    if len(a_parts) == 2:
        pairs = [
            [(a_parts[0], b_parts[0]), (np.negative(a_parts[1]), b_parts[1])],
            [(a_parts[0], b_parts[1]), (a_parts[1], b_parts[0])],
        ]
    states = []
    for terms in pairs:
        states.append(_state(a, axes))
        for one, two in terms:
            one, two = _summable(one), _summable(two)
            if one.strides != two.strides:
                one, two = np.ascontiguousarray(one), np.ascontiguousarray(two)
            internal.exact_add("product", one, two, axes, states[-1])
    return tuple(states)


def rounded(states: State, dtype: np.dtype[Any], count: Any = 1) -> Any:
    """Returns the sums divided by an int or an ndarray of ints, rounded once to a dtype; NaN for a count of 0."""
    if dtype.kind == "c":
        value: NDArray[Any] = np.empty(states[0].shape[:-1], dtype)
        for part, state in zip((value.real, value.imag), states, strict=True):
            part[...] = rounded((state,), part.dtype, count)
        return value
    counts = np.broadcast_to(np.asarray(count, np.int64), states[0].shape[:-1])
    found = np.empty(counts.shape)
    internal.exact_round(states[0], dtype, np.ascontiguousarray(np.maximum(counts, 1)), found)
    if not counts.all():
        found[counts == 0] = np.nan
    return _converted(found, dtype)


def _converted(found: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    with np.errstate(over="ignore"):  # the sum of finite numbers may be infinite, as NumPy's
        return found.astype(dtype, copy=False)


def combined(one: State, two: State) -> State:
    """Returns the states of two parts together; also the counts that may follow states."""
    return tuple(a + b for a, b in zip(one, two, strict=True))


def exact_rule(local: Any, finish: Any, piece_bytes: int, whole: Any = None) -> Rule:
    """Returns the rule of a reduction whose states are exact."""
    return Rule(local, combined, finish, piece_bytes=piece_bytes, state_bytes=STATE_BYTES, whole=whole)


def _state(block: NDArray[Any], axes: tuple[int, ...]) -> NDArray[Any]:
    shape = (1 if d in axes else size for d, size in enumerate(block.shape))
    return np.zeros((*shape, internal.EXACT_WORDS), np.int64)


def _parts(block: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    return (block.real, block.imag) if block.dtype.kind == "c" else (block,)


def _add(state: NDArray[Any], part: NDArray[Any], axes: tuple[int, ...]) -> None:
    part = _summable(part)
    internal.exact_add("value", part, part, axes, state)


def _summable(part: NDArray[Any]) -> NDArray[Any]:
    """Returns the elements as float32 or float64, consecutive along a dimension."""
    if part.dtype not in (np.float32, np.float64):
        is_wide = part.dtype.kind in "iu" and part.dtype.itemsize > 2
        return part.astype(np.float64 if is_wide else np.float32, order="C")
    strides = [stride for size, stride in zip(part.shape, part.strides, strict=True) if size > 1]
    return part if not strides or min(strides) == part.itemsize else np.ascontiguousarray(part)
