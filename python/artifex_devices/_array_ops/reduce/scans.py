# SPDX-License-Identifier: Apache-2.0
"""Running sums and products: each part by itself, then combined with the total of the parts before it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from artifex_devices._array_ops.core.arguments import (
    array_operand,
    host_target,
    loop_dtype,
    refuse_bool_axis,
)
from artifex_devices._array_ops.core.auto_axes import moved_over_auto, whole_along
from artifex_devices._array_ops.core.blocks import PIECE_BYTES, Tiling, local_arrays, outputs_of, run_all, tiling
from artifex_devices._array_ops.core.fused_small import from_fused, small_value
from artifex_devices._array_ops.core.operand_sharding import any_explicit, is_split, num_parts, sharding_with, spec_of
from artifex_devices._array_ops.core.per_block import apply_along, pieces_along
from artifex_devices._array_ops.core.registry import implements_each, implements_ufunc
from artifex_devices._array_ops.reduce.reductions import ASSOCIATIVE, wide_dtype
from artifex_devices._array_ops.shape.reshaping import ravel
from artifex_devices._base.argument_types import Out
from artifex_devices._base.checks import failure
from artifex_devices._core import Array
from artifex_devices.errors import ShardingTypeError

_Piece = tuple[NDArray[Any], NDArray[Any]]  # a part of the operand, and where its result is written


@implements_ufunc("accumulate")
def _accumulate_method(ufunc: np.ufunc, inputs: Any, options: dict[str, Any]) -> Any:
    operation = f"{ufunc.__name__}.accumulate"
    axis = options.get("axis", 0)
    if not inputs[0].ndim:
        raise TypeError(f"{operation}: cannot accumulate on a scalar; expected a dimension or more, got shape ()")
    if axis is None and inputs[0].ndim == 1:
        axis = 0
    if axis is None:
        raise ValueError(f"{operation}: accumulate does not allow multiple axes; expected one dimension, got None")
    return _scan(operation, ufunc, inputs[0], axis, options.get("dtype"), options.get("out"))


_RUNNING = {  # the ufunc, and the number that replaces NaN
    np.cumsum: (np.add, None),
    np.cumprod: (np.multiply, None),
    np.nancumsum: (np.add, 0),
    np.nancumprod: (np.multiply, 1),
}


@implements_each(*_RUNNING)
def _running(
    function: Callable[..., Any], a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: Out = None
) -> Any:
    ufunc, filler = _RUNNING[function]
    operation = function.__name__
    # A number is one element to NumPy in these functions, but not in `accumulate`.
    return _scan(operation, ufunc, np.atleast_1d(array_operand(operation, a)), axis, dtype, out, filler)


@implements_each(np.cumulative_sum, np.cumulative_prod)
def _cumulative(
    function: Callable[..., Any],
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: Out = None,
    include_initial: bool = False,
) -> Any:
    operation = function.__name__
    ufunc = np.add if function is np.cumulative_sum else np.multiply
    values: Any = np.atleast_1d(array_operand(operation, x))
    if axis is None and values.ndim != 1:
        raise failure(
            ValueError,
            operation,
            "more than one dimension",
            expected=f"axis= for an Array of shape {values.shape}",
            got="None",
            fix="name it",
        )
    if not include_initial:
        return _scan(operation, ufunc, values, axis, dtype, out)
    d = 0 if axis is None else int(np.lib.array_utils.normalize_axis_index(axis, values.ndim))
    into = host_target(operation, out)
    if into is not None and dtype is None:
        # Raises what NumPy raises.
        function(np.ones(1, values.dtype), out=np.empty(2, into.dtype), include_initial=True)
        dtype = loop_dtype(ufunc, values.dtype, into.dtype)
    result = function(np.ones(1, values.dtype), dtype=dtype).dtype

    def compute(block: NDArray[Any]) -> Any:
        return function(block, axis=d, dtype=dtype, include_initial=True)

    return apply_along(operation, values, {d: values.shape[d] + 1}, compute, result, into=into)


def _scan(
    operation: str, ufunc: np.ufunc, x: Any, axis: int | None, dtype: DTypeLike | None, out: Out, filler: Any = None
) -> Any:
    """Implements ufunc.accumulate; `filler` replaces NaN. Without axis the shards must be in flat order."""
    x = array_operand(operation, x)
    into = host_target(operation, out)
    adds = ufunc in (np.add, np.multiply)
    refuse_bool_axis(operation, axis)
    ndim = 1 if axis is None else x.ndim
    with np.errstate(all="ignore"):
        if into is not None:  # raises what NumPy raises
            ufunc.accumulate(np.ones(1, x.dtype), dtype=dtype, out=np.empty(1, into.dtype))
            dtype = loop_dtype(ufunc, x.dtype, into.dtype) if dtype is None else dtype
        result = ufunc.accumulate(np.ones((1,) * ndim, x.dtype), axis=0, dtype=dtype).dtype
    work = wide_dtype(result) if adds else result
    if axis is None:
        x, axis = _flattened(operation, x), 0
    d = int(np.lib.array_utils.normalize_axis_index(axis, x.ndim))
    if ufunc not in ASSOCIATIVE:
        x = whole_along(operation, x, (d,))
    shape, sharding = x.shape, sharding_with(x.sharding, spec_of(x))
    fill = None if filler is None or x.dtype.kind in "biu" else np.asarray(filler, x.dtype)

    def prepare(block: NDArray[Any]) -> NDArray[Any]:
        return block if fill is None else np.where(np.isnan(block), fill, block)

    whole = small_value(x) if into is None else None
    if whole is not None:
        running = ufunc.accumulate(prepare(whole), axis=d, dtype=work if adds else dtype)
        return from_fused(operation, running, result, sharding, committed=x.committed)
    blocks = local_arrays(operation, x, False, ufunc not in ASSOCIATIVE and into is None)
    places = tiling(sharding, shape, operation)
    (value,), (outputs,) = outputs_of(operation, shape, [result], sharding, committed=x.committed, into=into)
    first: list[Callable[[], Any]] = []
    chains: list[list[_Step]] = []
    rows, replicas = _chains(places, d)
    for members in rows:
        for pieces in _split([(blocks[b], outputs[b]) for b in members], d, ufunc in ASSOCIATIVE):
            chain = [_Step(ufunc, piece, d, dtype if not adds else work, prepare) for piece in pieces]
            first.extend(step.alone for step in chain)
            chains.append(chain)
    run_all(first, 2 * x.nbytes)
    then: list[Callable[[], Any]] = []
    for chain in chains:
        before: Any = None
        for step in chain:
            then.append(functools.partial(step.after, before))
            before = step.total if before is None else ufunc(before, step.total)
    run_all(then, 2 * x.nbytes)
    if into is None:
        run_all([functools.partial(np.copyto, outputs[b], outputs[a]) for a, b in replicas], 2 * x.nbytes)
    return value


class _Step:
    """One piece of a running sum: first alone, then combined with the total of all pieces before it."""

    __slots__ = ("_axis", "_dtype", "_piece", "_prepare", "_ufunc", "_values", "total")

    def __init__(self, ufunc: np.ufunc, piece: _Piece, axis: int, dtype: DTypeLike | None, prepare: Any) -> None:
        self._ufunc, self._piece, self._axis, self._dtype, self._prepare = ufunc, piece, axis, dtype, prepare
        self._values: Any = None
        self.total: Any = None

    def alone(self) -> None:
        block, output = self._piece
        out = output if self._dtype is None or output.dtype == self._dtype else None
        self._values = self._ufunc.accumulate(self._prepare(block), axis=self._axis, dtype=self._dtype, out=out)
        self.total = np.take(self._values, [-1], axis=self._axis)

    def after(self, before: Any) -> None:
        if before is not None:
            self._ufunc(before, self._values, out=self._values)
        _, output = self._piece
        if self._values is not output:
            np.copyto(output, self._values, casting="unsafe")


def _flattened(operation: str, x: Array) -> Any:
    """Returns the elements in one dimension, sharded as dimension 0, if the shards follow each other there."""
    spec = spec_of(x)
    lost = [axes for axes in spec[1:] if is_split(x.sharding, axes) or any_explicit(x.sharding, axes)]
    is_even = not x.ndim or not is_split(x.sharding, spec[0]) or x.shape[0] % num_parts(x.sharding, spec[0]) == 0
    if lost or not is_even:
        refusal = failure(
            ShardingTypeError,
            operation,
            "without axis the Array is flattened, and its shards do not follow each other in the flat order",
            expected="only dimension 0 to be sharded, and evenly",
            got=f"{spec} for shape {x.shape}",
            fix=(
                "name an axis, replicate it first: ad.reshard(x, ad.NamedSharding(x.sharding.mesh, ad.P())), or "
                "gather: np.asarray(x)"
            ),
        )
        kept = spec[0] if is_even and x.is_fully_addressable else ()  # sums do not span processes
        target = sharding_with(x.sharding, (kept, *((),) * (x.ndim - 1)))
        (x,) = moved_over_auto([(x, target)], refusal)
    return ravel(x)


def _chains(places: Tiling, axis: int) -> tuple[list[list[int]], list[tuple[int, int]]]:
    """Returns chains of buffers along a dimension (one per position in the rest), and pairs (buffer, replica)."""
    chains: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    first: dict[int, int] = {}
    replicas = []
    for buffer, tile in enumerate(places.tiles):
        if first.setdefault(tile, buffer) != buffer:
            replicas.append((first[tile], buffer))
            continue
        place = tuple(int(i) for i in np.unravel_index(tile, places.parts))
        chains.setdefault(place[:axis] + place[axis + 1 :], []).append((place[axis], buffer))
    return [[buffer for _, buffer in sorted(chain)] for chain in chains.values()], replicas


def _split(pieces: list[_Piece], axis: int, splits: bool) -> list[list[_Piece]]:
    """Splits large pieces: across the other dimensions if one is long enough, else along `axis`."""
    pieces = [piece for piece in pieces if piece[0].size]
    if not pieces:
        return []
    largest = max((block for block, _ in pieces), key=lambda block: block.nbytes)
    count = -(-largest.nbytes // PIECE_BYTES)
    others = [d for d in range(largest.ndim) if d != axis and largest.shape[d] >= count]
    if others:
        return [[(a[index], b[index]) for a, b in pieces] for index in pieces_along(largest, others)]
    if splits:
        return [[(a[index], b[index]) for a, b in pieces for index in pieces_along(a, (axis,))]]
    return [pieces]
