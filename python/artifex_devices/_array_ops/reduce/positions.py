# SPDX-License-Identifier: Apache-2.0
"""Positions of the extremes: argmax, argmin, nanargmax and nanargmin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from artifex_devices._array_ops.core.arguments import array_operand, host_target, refuse_bool_axis
from artifex_devices._array_ops.core.blocks import PIECE_BYTES
from artifex_devices._array_ops.core.registry import implements_each
from artifex_devices._array_ops.reduce.partials import READ_BYTES, Part, Rule, State, reduce_parts
from artifex_devices._base.argument_types import Operand, Out
from artifex_devices._base.checks import failure
from artifex_devices._runtime.gpu_block import host_value


@implements_each(np.argmax, np.argmin, np.nanargmax, np.nanargmin)
def _position(
    function: Callable[..., Any], a: ArrayLike, axis: int | None = None, out: Out = None, *, keepdims: bool = False
) -> Operand:
    """Returns the position of the first of equal extremes, or of the first NaN."""
    operation = function.__name__
    x = array_operand(operation, a)
    axes = tuple(range(x.ndim))
    refuse_bool_axis(operation, axis)
    if axis is not None:
        axes = () if x.ndim == 0 and axis in (0, -1) else (np.lib.array_utils.normalize_axis_index(axis, x.ndim),)
    if any(x.shape[d] == 0 for d in axes):
        raise failure(
            ValueError,
            operation,
            f"attempt to get {operation} of an empty sequence",
            expected=f"elements along dimensions {axes}",
            got=f"shape {x.shape}",
            fix="look at x.size first",
        )
    into = host_target(operation, out)
    if into is not None and not np.can_cast(into.dtype, np.intp, "safe"):  # as NumPy, which reads out as positions
        raise failure(
            TypeError,
            operation,
            f"out of dtype {into.dtype} cannot hold positions",
            expected=np.dtype(np.intp),
            got=into.dtype,
            fix="make it by np.empty(shape, np.intp)",
        )
    skips = operation.startswith("nan")
    largest = operation.endswith("argmax")
    find = np.argmax if largest else np.argmin
    shape = x.shape

    def local(part: Part) -> State:
        block = part.block
        nothing: Any = np.False_
        if skips:
            missing = np.asarray(block != block, like=block)
            if missing.any():
                block = np.where(missing, np.asarray(-np.inf if largest else np.inf, block.dtype), block)
            nothing = np.logical_and.reduce(missing, axis=axes, keepdims=True)
        if axis is None or not axes:
            inside = tuple(int(i) for i in np.unravel_index(host_value(find(block)), block.shape))
            number = 0
            for size, start, i in zip(shape, part.start, inside, strict=True):
                number = number * size + start + i
            ones = (1,) * block.ndim
            return block[inside].reshape(ones), np.array(number, np.intp).reshape(ones), nothing
        where = find(block, axis=axes[0], keepdims=True)
        return np.take_along_axis(block, where, axes[0]), where + part.start[axes[0]], nothing

    def join(states: Sequence[State]) -> State:
        values, numbers, nothing = (np.stack(column) for column in zip(*states, strict=True))
        best = np.take_along_axis(values, find(values, axis=0, keepdims=True), 0)
        alike = (values == best) | ((values != values) & (best != best))
        first = np.min(np.where(alike, numbers, np.iinfo(np.intp).max), axis=0)
        return best[0], first, np.all(nothing, axis=0)

    def finish(state: State) -> State:
        if skips and np.any(state[2]):
            raise failure(
                ValueError,
                operation,
                "All-NaN slice encountered",
                expected="a number in each",
                got="only NaN",
                fix="look with isnan(x).all(axis) first",
            )
        return (state[1],)

    piece_bytes = PIECE_BYTES if skips else READ_BYTES
    rule = Rule(local, lambda one, two: join((one, two)), finish, join=join, piece_bytes=piece_bytes)
    return reduce_parts(operation, x, axes, (np.intp,), rule, keepdims=keepdims, into=into)[0]
