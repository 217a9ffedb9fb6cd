# SPDX-License-Identifier: Apache-2.0
"""Reductions over sharded dimensions: each device reduces its tiles, partial results are combined in tile order.

A reduction is three functions of *states*, tuples of ndarrays in which the reduced dimensions have size 1: `local`
returns the state of one part, `combine` that of two neighbours, and `finish` returns the results for the last state.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from artifex_devices._array_ops.core.auto_axes import whole_along
from artifex_devices._array_ops.core.blocks import (
    PIECE_BYTES,
    local_arrays,
    moved_to,
    outputs_of,
    piece_count,
    run_all,
    tiling,
)
from artifex_devices._array_ops.core.fused_small import from_fused, small_value
from artifex_devices._array_ops.core.operand_sharding import common_devices, sharding_with, spec_of
from artifex_devices._array_ops.core.reading import operand_parts, piece_along
from artifex_devices._base.checks import failure
from artifex_devices._base.clearable_cache import clearable_cache
from artifex_devices._core import Array, Sharding

# Size of the parts of a `local` that reads its part once, without temporaries. Larger parts need fewer transfers of the
# GIL between cores (argmax of 128 MiB on two cores: 5.6 ms, 7.1 with pieces of 2 MiB).
READ_BYTES = 8 << 20

# Bytes of the states of one task, for rules with large states.
_STATES_BYTES = 1 << 20

State = tuple[Any, ...]


class Part(NamedTuple):
    """The argument of `local`: a part of the array, its first index, and the same part of each extra operand."""

    block: NDArray[Any]
    start: tuple[int, ...]
    extras: tuple[Any, ...]


class Rule(NamedTuple):
    """The functions of one reduction."""

    local: Callable[[Part], State]
    combine: Callable[[State, State], State]
    finish: Callable[[State], Sequence[Any]]
    splits: bool = True  # whether neighbours along reduced dimensions can be combined
    join: Callable[[Sequence[State]], State] | None = None  # combines many states at once, faster than `combine`
    piece_bytes: int = PIECE_BYTES  # largest size of a part, if parts can be split
    whole: Callable[[list[Part]], Sequence[Any] | None] | None = None  # returns the results without states, or None
    state_bytes: int = 0  # of a state, for each element of the result, where that is far more than the element


class _ReductionPlan(NamedTuple):
    shape: tuple[int, ...]
    sharding: Sharding
    # For each tile of the result: buffers of the operand, one for each tile in tile order, and buffers of the result.
    groups: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


@clearable_cache(maxsize=2048)
def _plan(
    sharding: Sharding, shape: tuple[int, ...], spec: Any, axes: tuple[int, ...], keepdims: bool
) -> _ReductionPlan:
    kept = [d for d in range(len(shape)) if keepdims or d not in axes]
    result_shape = tuple(1 if d in axes else shape[d] for d in kept)
    result = sharding_with(sharding, tuple(() if d in axes else spec[d] for d in kept))
    mine = tiling(sharding, shape, "reduce")
    its = tiling(result, result_shape, "reduce")
    sources: dict[int, dict[int, int]] = {}
    for buffer, tile in enumerate(mine.tiles):
        place = np.unravel_index(tile, mine.parts) if mine.parts else ()
        number = 0
        for d in kept:
            number = number * (1 if d in axes else mine.parts[d]) + (0 if d in axes else int(place[d]))
        sources.setdefault(number, {}).setdefault(tile, buffer)
    targets: dict[int, list[int]] = {}
    for buffer, tile in enumerate(its.tiles):
        targets.setdefault(tile, []).append(buffer)
    groups = tuple(
        (tuple(sources[tile][t] for t in sorted(sources[tile])), tuple(buffers))
        for tile, buffers in sorted(targets.items())
    )
    return _ReductionPlan(result_shape, result, groups)


@overload
def reduce_parts(
    operation: str,
    x: Array,
    axes: tuple[int, ...],
    dtypes: Sequence[Any],
    rule: Rule,
    *,
    keepdims: bool = ...,
    extras: Sequence[Any] = ...,
    into: None = ...,
) -> list[Array]: ...
@overload
def reduce_parts(
    operation: str,
    x: Array,
    axes: tuple[int, ...],
    dtypes: Sequence[Any],
    rule: Rule,
    *,
    keepdims: bool = ...,
    extras: Sequence[Any] = ...,
    into: NDArray[Any] | None,
) -> list[Array] | list[NDArray[Any]]: ...
def reduce_parts(
    operation: str,
    x: Array,
    axes: tuple[int, ...],
    dtypes: Sequence[Any],
    rule: Rule,
    *,
    keepdims: bool = False,
    extras: Sequence[Any] = (),
    into: NDArray[Any] | None = None,
) -> list[Array] | list[NDArray[Any]]:
    """Reduces an Array over the dimensions `axes`, which are ascending.

    `extras` are more operands that broadcast to x. Returns one Array for each dtype, sharded as x in the dimensions
    that are not reduced, or [into] after writing the only result to this ndarray.
    """
    devices = common_devices(operation, [x, *(extra for extra in extras if isinstance(extra, Array))])
    if not x.sharding._same_devices(devices.sharding):
        x = moved_to(operation, x, devices, sharding_with(devices.sharding, ((),) * x.ndim))
    for extra in extras:
        _check_broadcasts(operation, extra, x)
    if not rule.splits:
        x = whole_along(operation, x, axes)
    plan = _plan(x.sharding, x.shape, spec_of(x), axes, bool(keepdims))
    committed = devices.committed
    is_light = not rule.state_bytes or math.prod(plan.shape) * rule.state_bytes <= _STATES_BYTES
    block = small_value(x) if is_light and not extras and into is None else None
    if block is not None:
        values = rule.finish(rule.local(Part(block, (0,) * block.ndim, ())))
        return [
            from_fused(operation, np.asarray(value).reshape(plan.shape), dtype, plan.sharding, committed=committed)
            for value, dtype in zip(values, dtypes, strict=True)
        ]
    places = tiling(x.sharding, x.shape, operation)
    shaped = [
        operand_parts(operation, extra, devices, x.shape, x.sharding, places.positions, places.boxes)
        for extra in extras
    ]
    # Not to be written, but writable, because NumPy's argmax copies read-only memory.
    blocks = local_arrays(operation, x, True, not rule.splits and into is None)
    results, targets = outputs_of(operation, plan.shape, dtypes, plan.sharding, committed=committed, into=into)
    first: list[Callable[[], Any]] = []
    then: list[Callable[[], Any]] = []
    for sources, numbers in plan.groups:
        parts = [
            Part(
                blocks[source],
                tuple(s.start for s in places.boxes[source]),
                tuple(extra[source] if type(extra) is list else extra for extra in shaped),
            )
            for source in sources
        ]
        outputs = [[buffers[number] for number in (numbers if into is None else numbers[:1])] for buffers in targets]
        if not keepdims:
            outputs = [[np.expand_dims(buffer, axes) for buffer in buffers] for buffers in outputs]
        _add_tasks(first, then, parts, outputs, axes, rule)
    run_all(first, x.nbytes)
    run_all(then, sum(out.nbytes for out in results))
    return results


def _check_broadcasts(operation: str, extra: Any, x: Array) -> None:
    mine = extra.shape
    fits = len(mine) <= x.ndim
    if fits and all(size in (1, whole) for size, whole in zip(mine[::-1], x.shape[::-1], strict=False)):
        return
    raise failure(
        ValueError,
        operation,
        "another operand does not broadcast to the Array",
        expected="equal sizes or 1 in each dimension from the last one on",
        got=f"{mine} and {x.shape}",
        fix="reshape it",
    )


def _add_tasks(
    first: list[Callable[[], Any]],
    then: list[Callable[[], Any]],
    parts: list[Part],
    outputs: list[list[NDArray[Any]]],
    axes: tuple[int, ...],
    rule: Rule,
) -> None:
    """Appends the tasks for one tile of the result: partial states first, then their combination."""
    if not outputs[0][0].size:
        return
    filled = [part for part in parts if all(part.block.shape[d] for d in axes)] or parts[:1]
    largest = max((part.block for part in filled), key=lambda block: block.nbytes)
    excess = -(-outputs[0][0].size * rule.state_bytes // _STATES_BYTES)
    if excess > 1:  # the states of all results at once would need much memory
        for writes, pieces in _chunks(outputs, filled, axes, excess):
            first.append(functools.partial(_reduce_all, rule, pieces, writes))
        return
    axis, step = _cut(largest, axes, rule)
    if axis is None:
        groups = [(outputs, filled)]
    elif axis in axes:
        groups = [(outputs, [piece for part in filled for piece in _split(part, axis, step)])]
    else:
        groups = _along(outputs, filled, axis, step)
    for writes, pieces in groups:
        if len(pieces) == 1:
            first.append(functools.partial(_reduce_one, rule, pieces[0], writes))
            continue
        states: list[Any] = [None] * len(pieces)
        first.extend(functools.partial(_reduce_into, rule, piece, states, i) for i, piece in enumerate(pieces))
        then.append(functools.partial(_join, rule, states, writes))


_Group = tuple[list[list[NDArray[Any]]], list[Part]]  # the results of a task, and the parts that it reduces


def _along(outputs: list[list[NDArray[Any]]], parts: list[Part], axis: int, step: int) -> list[_Group]:
    """Splits results and parts along a dimension that is not reduced."""
    size = parts[0].block.shape[axis]
    indices = [(slice(None),) * axis + (slice(start, min(start + step, size)),) for start in range(0, size, step)]
    return [
        ([[buffer[index] for buffer in row] for row in outputs], [_take(part, axis, index) for part in parts])
        for index in indices
    ]


def _chunks(outputs: list[list[NDArray[Any]]], parts: list[Part], axes: tuple[int, ...], count: int) -> list[_Group]:
    """Splits results and parts into `count` groups or more, along one dimension after another."""
    shape = parts[0].block.shape
    axis = max((d for d in range(len(shape)) if d not in axes), key=lambda d: shape[d])
    size = shape[axis]
    groups = _along(outputs, parts, axis, -(-size // min(size, count)))
    rest = -(-count // size)
    return groups if rest == 1 else [each for group in groups for each in _chunks(*group, axes, rest)]


def _reduce_all(rule: Rule, parts: list[Part], outputs: list[list[NDArray[Any]]]) -> None:
    results = None if rule.whole is None else rule.whole(parts)
    if results is None:
        results = rule.finish(functools.reduce(rule.combine, map(rule.local, parts)))
    _write(results, outputs)


def _reduce_one(rule: Rule, part: Part, outputs: list[list[NDArray[Any]]]) -> None:
    _write(rule.finish(rule.local(part)), outputs)


def _reduce_into(rule: Rule, part: Part, states: list[Any], slot: int) -> None:
    states[slot] = rule.local(part)


def _join(rule: Rule, states: list[Any], outputs: list[list[NDArray[Any]]]) -> None:
    if rule.join is not None:
        states = [rule.join(states)]
    while len(states) > 1:  # neighbours first: rounding errors grow with the logarithm of the number of parts only
        odd = states[len(states) // 2 * 2 :]
        states = [*map(rule.combine, states[:-1:2], states[1::2]), *odd]
    _write(rule.finish(states[0]), outputs)


def _write(values: Sequence[Any], outputs: list[list[NDArray[Any]]]) -> None:
    for value, buffers in zip(values, outputs, strict=True):
        for buffer in buffers:
            np.copyto(buffer, value, casting="unsafe")  # as NumPy with out=


def _cut(block: NDArray[Any], axes: tuple[int, ...], rule: Rule) -> tuple[int | None, int]:
    """Returns the dimension along which a large block is split, and the size of its parts; it keeps states small."""
    count = piece_count(block, rule.piece_bytes)
    if count < 2:
        return None, 0
    states = math.prod(size for d, size in enumerate(block.shape) if d not in axes)
    states *= max(1, rule.state_bytes // max(block.itemsize, 1))
    allowed = [d for d in range(block.ndim) if d not in axes or (rule.splits and states * 16 <= block.size // count)]
    if not allowed:
        return None, 0
    axis = next((d for d in allowed if block.shape[d] >= count), max(allowed, key=lambda d: block.shape[d]))
    return axis, -(-block.shape[axis] // count)


def _split(part: Part, axis: int, step: int) -> list[Part]:
    size = part.block.shape[axis]
    return [
        _take(part, axis, (slice(None),) * axis + (slice(start, min(start + step, size)),))
        for start in range(0, size, step)
    ]


def _take(part: Part, axis: int, index: tuple[slice, ...]) -> Part:
    start = (*part.start[:axis], part.start[axis] + index[axis].start, *part.start[axis + 1 :])
    return Part(
        part.block[index], start, tuple(piece_along(extra, axis, index[axis], part.block) for extra in part.extras)
    )
