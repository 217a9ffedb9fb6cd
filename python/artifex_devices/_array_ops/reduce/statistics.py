# SPDX-License-Identifier: Apache-2.0
"""Means, variances and weighted averages: each block is averaged by itself, neighbours are combined by their counts.

Chan's rule combines the variances of two blocks, and so a variance reads memory only once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from artifex_devices._array_ops.core.arguments import (
    array_operand,
    as_operand,
    check_reduction_out,
    host_target,
    loop_dtype,
    normal_axes,
    refuse_bool_axis,
    replicated_array,
    where_mask,
)
from artifex_devices._array_ops.core.blocks import PIECE_BYTES
from artifex_devices._array_ops.core.registry import implements, implements_each
from artifex_devices._array_ops.reduce.exact_sums import (
    deviation_states,
    exact_results,
    exact_rule,
    is_rounded,
    rounded,
    square_states,
    value_states,
)
from artifex_devices._array_ops.reduce.partials import READ_BYTES, Part, Rule, State, reduce_parts
from artifex_devices._array_ops.reduce.reductions import fold, folds, wide_dtype, widened
from artifex_devices._array_ops.reduce.reproducible import is_reproducible
from artifex_devices._array_ops.reduce.totals import LEAST_BYTES, moments, totals, totals_dtype
from artifex_devices._base.argument_types import Axes, Out
from artifex_devices._base.caller import warn_user
from artifex_devices._base.checks import failure
from artifex_devices._base.clearable_cache import clearable_cache
from artifex_devices._core import Array
from artifex_devices._runtime.gpu_block import host_copy, host_value

_UNSET: Any = np._NoValue
_SMALL_INTEGERS = ("int2", "int4", "uint2", "uint4")


@clearable_cache(maxsize=256)
def _dtype_of(function: Callable[..., Any], kind: Any, dtype: DTypeLike | None) -> Any:
    """Returns NumPy's dtype of the result."""
    return function(np.ones(2, kind), dtype=dtype).dtype


class _Arguments:
    """The checked arguments that means and variances share.

    `dtype` is the caller's and `work` the dtype to compute in. NaN is skipped if `skips_nan`; NumPy's nanmean of
    integers is its mean. `extras` holds the mask, if it was passed.
    """

    def __init__(
        self,
        operation: str,
        a: ArrayLike,
        axis: Axes,
        dtype: DTypeLike | None,
        out: Out,
        keepdims: bool,
        where: bool | ArrayLike,
    ) -> None:
        self.x = x = array_operand(operation, a)
        self.skips_nan = operation.startswith("nan") and x.dtype.kind not in "biu"
        refuse_bool_axis(operation, axis)
        self.axes = normal_axes(axis, x.ndim, scalar_has_axis=self.skips_nan or where is not True)
        self.into = into = host_target(operation, out)
        self.dtype = kind = None if dtype is None else np.dtype(dtype)
        if kind is not None and self.skips_nan and x.dtype.isbuiltin == 1 and kind.kind in "biu":
            raise failure(
                TypeError,
                operation,
                f"dtype {kind} has no NaN while {x.dtype} has",
                expected="a dtype of floats",
                got=kind,
                fix="leave it out, or convert the result",
            )
        if kind is None and x.dtype.kind in "biu":
            self.work = np.dtype(np.float64)
        else:
            self.work = wide_dtype(x.dtype if kind is None else kind)
        if into is not None:  # it takes part in the choice of the dtype
            options = (("dtype", self.dtype),)
            check_reduction_out(getattr(np, operation), x.dtype, x.ndim, self.axes, bool(keepdims), into.dtype, options)
            if kind is None and x.dtype.kind not in "biu":
                wide = loop_dtype(np.add, x.dtype, into.dtype)
                self.work = self.work if np.can_cast(wide, self.work) else wide
        is_direct = x.dtype in (np.float32, np.float64) and kind in (None, x.dtype) and not self.skips_nan
        self.is_direct = is_direct and where is True
        self.exact_piece_bytes = READ_BYTES if self.is_direct else PIECE_BYTES
        self.extras: tuple[Any, ...] = () if where is True else (where_mask(operation, where),)

    def selected(self, part: Part) -> Any:
        """Returns the mask of the elements that count; True for all."""
        selected: Any = np.broadcast_to(part.extras[-1], part.block.shape) if self.extras else True
        if self.skips_nan:
            present = np.logical_not(np.isnan(part.block))
            selected = present if selected is True else selected & present
        return selected

    def exact_block(self, part: Part, selected: Any) -> Any:
        """Returns the elements on the host, of the caller's dtype if any, with zeros for those that do not count."""
        block = host_copy(part.block)
        if selected is not True:
            block = np.where(host_value(selected), block, np.zeros((), block.dtype))
        return block if self.dtype is None else block.astype(self.dtype, copy=False)

    def exact_means(self, part: Part) -> State:
        """Returns the states of the exact sums, and the number of elements that count."""
        selected = self.selected(part)
        return *value_states(self.exact_block(part, selected), self.axes), host_value(self.count(part, selected))

    def exact_whole(self, parts: list[Part], dtype: np.dtype[Any]) -> State | None:
        """Returns the exact means of all parts, rounded once to a dtype; None where that takes `exact_means`."""
        count = sum(self.count(part, True) for part in parts)
        found = exact_results("value", parts, self.axes, dtype, count) if self.is_direct else None
        return None if found is None else (found,)

    def count(self, part: Part, selected: Any) -> Any:
        """Returns the number of elements that count."""
        if selected is True:
            return math.prod(part.block.shape[d] for d in self.axes)
        return np.add.reduce(selected, axis=self.axes, dtype=np.intp, keepdims=True)


@implements_each(np.mean, np.nanmean)
def _mean(
    function: Callable[..., Any],
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: Out = None,
    keepdims: bool = False,
    *,
    where: bool | ArrayLike = True,
) -> Any:
    """Computes the mean: 16-bit floats are added up in float32, integers in float64."""
    operation = function.__name__
    arguments = _Arguments(operation, a, axis, dtype, out, keepdims, where)
    x, axes, work = arguments.x, arguments.axes, arguments.work
    result = _dtype_of(np.mean, x.dtype, arguments.dtype) if arguments.into is None else work

    is_plain = not arguments.extras and not arguments.skips_nan and x.nbytes >= LEAST_BYTES
    wide = totals_dtype("sum", x.dtype, work) if is_plain else None

    def local(part: Part) -> State:
        selected = arguments.selected(part)
        if wide is not None and (total := totals("sum", part.block, axes, wide)) is not None:
            total = total.astype(np.float64, copy=False)
        elif selected is True and folds(np.add, x.dtype, work):
            total = fold(np.add, part.block, axes)
        else:
            total = np.add.reduce(part.block, axis=axes, dtype=work, keepdims=True, where=selected)
        return total, arguments.count(part, selected)

    def finish(state: State) -> State:
        *totals, count = state
        if not (count.all() if isinstance(count, np.ndarray) else count):
            warn_user(f"{operation}: Mean of empty slice", RuntimeWarning)
            if result.name in _SMALL_INTEGERS:
                raise failure(
                    ValueError,
                    operation,
                    f"the mean of no elements is NaN, which {result} does not have",
                    expected="1 element or more",
                    got="0",
                    fix=f"give a dtype of floats: np.{operation}(x, dtype='float32')",
                )
        if is_exact:
            exact = rounded(tuple(totals), result if is_rounded(result) else work, count)
            return (exact.astype(result, copy=False),)
        return (np.true_divide(totals[0], count).astype(result, copy=False),)

    is_exact = is_reproducible() and is_rounded(work)
    piece_bytes = PIECE_BYTES if wide is None else READ_BYTES
    rule = Rule(local, lambda one, two: (one[0] + two[0], one[1] + two[1]), finish, piece_bytes=piece_bytes)
    if is_exact:
        whole = functools.partial(arguments.exact_whole, dtype=result) if is_rounded(result) else None
        rule = exact_rule(arguments.exact_means, finish, arguments.exact_piece_bytes, whole)
    options: dict[str, Any] = {"keepdims": keepdims, "extras": arguments.extras, "into": arguments.into}
    return reduce_parts(operation, x, axes, (result,), rule, **options)[0]


def _exact_mean(operation: str, arguments: _Arguments, dtype: np.dtype[Any]) -> Array:
    """Returns the exact mean, rounded once to a dtype, with the reduced dimensions."""

    def finish(state: State) -> State:
        *totals, count = state
        return (rounded(tuple(totals), dtype, count),)

    whole = functools.partial(arguments.exact_whole, dtype=dtype)
    rule = exact_rule(arguments.exact_means, finish, arguments.exact_piece_bytes, whole)
    return reduce_parts(operation, arguments.x, arguments.axes, (dtype,), rule, keepdims=True, extras=arguments.extras)[
        0
    ]


@implements_each(np.var, np.std, np.nanvar, np.nanstd)
def _variance(
    function: Callable[..., Any],
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: Out = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: bool | ArrayLike = True,
    mean: Any = _UNSET,
    correction: Any = _UNSET,
) -> Any:
    """Computes the variance or the standard deviation in one pass over memory."""
    operation = function.__name__
    if correction is not _UNSET and correction is not None:
        if ddof != 0:
            raise failure(
                ValueError,
                operation,
                "ddof and correction are two names of one thing",
                expected="one of them",
                got=f"ddof={ddof} and correction={correction}",
                fix="leave ddof away",
            )
        ddof = correction
    arguments = _Arguments(operation, a, axis, dtype, out, keepdims, where)
    x, axes, dtype, work = arguments.x, arguments.axes, arguments.dtype, arguments.work
    result = _dtype_of(np.var, x.dtype, dtype) if arguments.into is None else np.ones(1, work).real.dtype
    if mean is not _UNSET:
        as_operand(operation, mean)
        work = np.result_type(work, mean.dtype if hasattr(mean, "dtype") else mean)
        result = work if work.itemsize > result.itemsize and dtype is None and work.kind == "f" else result
    if dtype is not None and work.kind in "biu":
        raise failure(
            TypeError,
            operation,
            "a mean and squares need fractions",
            expected="a dtype of floats",
            got=dtype,
            fix=f"convert the result: np.{operation}(x).astype('{dtype}')",
        )
    if work.name in _SMALL_INTEGERS:
        raise failure(
            TypeError,
            operation,
            f"squares of {work} overflow",
            expected="floats or integers of 8 bits and more",
            got=x.dtype,
            fix=f"give a dtype of floats: np.{operation}(x, dtype='float32')",
        )
    means: tuple[Any, ...] = () if mean is _UNSET else (mean if isinstance(mean, Array) else np.asarray(mean),)
    is_exact = is_reproducible() and is_rounded(work)
    if is_exact and not means:
        means = (_exact_mean(operation, arguments, np.dtype(np.complex128 if work.kind == "c" else np.float64)),)
    is_half = folds(np.add, x.dtype, work)
    is_plain = not arguments.extras and not arguments.skips_nan and not means and x.nbytes >= LEAST_BYTES
    has_loop = is_plain and (is_half or totals_dtype("sum", x.dtype, work) is not None)
    has_loop = has_loop and work in (np.float32, np.float64)
    is_converted = has_loop and x.dtype.kind in "biu"

    def exact(part: Part) -> State:
        selected = arguments.selected(part)
        block = arguments.exact_block(part, True)
        middle = host_value(part.extras[0])
        if selected is True:
            return host_value(arguments.count(part, selected)), *deviation_states(block, middle, axes)
        wide = np.complex128 if "c" in (block.dtype.kind, middle.dtype.kind) else np.float64
        deviation = np.subtract(block, middle, dtype=wide)
        deviation = np.where(host_value(selected), deviation, 0)
        return host_value(arguments.count(part, selected)), *square_states(deviation, axes)

    def whole(parts: list[Part]) -> State | None:
        squares = exact_results("deviation", parts, axes, np.dtype(np.float64)) if arguments.is_direct else None
        return None if squares is None else finished(sum(arguments.count(part, True) for part in parts), squares)

    def local(part: Part) -> State:
        selected = arguments.selected(part)
        count = arguments.count(part, selected)
        block = widened(part.block) if is_half else part.block.astype(work) if is_converted else part.block
        if has_loop and (found := moments(block, axes)) is not None:
            return (count, *found)
        if means:
            middle = part.extras[0]
        else:
            middle = np.add.reduce(block, axis=axes, dtype=work, keepdims=True, where=selected)
            middle = np.divide(middle, np.maximum(count, 1), dtype=work)
        deviation = np.subtract(block, middle, dtype=work, out=None if block is part.block else block)
        return count, middle, 0.0, _square_sum(deviation, axes, selected)

    def combine(one: State, two: State) -> State:
        (n, a_mean, a_rest, a_squares), (m, b_mean, b_rest, b_squares) = one, two
        if means:
            return n + m, a_mean, a_rest, a_squares + b_squares
        share = m / np.maximum(n + m, 1).astype(b_squares.dtype)
        difference = (b_mean - a_mean) + (b_rest - a_rest)
        step = difference * share + a_rest
        joined = a_mean + step
        added = joined - a_mean
        rest = (a_mean - (joined - added)) + (step - added)  # the rounding error of `joined`
        squares = difference.real**2 + difference.imag**2 if difference.dtype.kind == "c" else difference * difference
        return n + m, joined, rest, a_squares + b_squares + squares * (n * share)

    def finish(state: State) -> State:
        count, *_, squares = state
        if is_exact:
            squares = rounded((squares,), np.dtype(np.float64))
        return finished(count, squares)

    def finished(count: Any, squares: Any) -> State:
        freedom = np.maximum(count - ddof, 0)
        if np.any(freedom == 0):
            warn_user(f"{operation}: Degrees of freedom <= 0 for slice", RuntimeWarning)
        value = np.true_divide(squares, freedom)
        if arguments.skips_nan:
            value = np.where(np.equal(freedom, 0), np.asarray(np.nan, value.dtype), value)  # as NumPy: never inf
        if operation.endswith("std"):
            value = np.sqrt(value)
        return (value.astype(result, copy=False),)

    piece_bytes = PIECE_BYTES // 4 if is_half or is_converted else READ_BYTES if has_loop else PIECE_BYTES
    rule = Rule(local, combine, finish, piece_bytes=piece_bytes)
    if is_exact:
        rule = exact_rule(exact, finish, arguments.exact_piece_bytes, whole)
    options: dict[str, Any] = {"keepdims": keepdims, "extras": means + arguments.extras, "into": arguments.into}
    return reduce_parts(operation, x, axes, (result,), rule, **options)[0]


def _square_sum(deviation: Any, axes: tuple[int, ...], selected: Any) -> Any:
    """Sums of squared absolute values; overwrites its argument."""
    if deviation.dtype.kind == "c":
        squares = deviation.real**2 + deviation.imag**2
    else:
        squares = np.multiply(deviation, deviation, out=deviation if deviation.ndim else None)
    return np.add.reduce(squares, axis=axes, keepdims=True, where=selected)


@implements(np.average)
def _average(
    a: ArrayLike, axis: Axes = None, weights: ArrayLike | None = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    x = array_operand("average", a)
    axes = normal_axes(axis, x.ndim, scalar_has_axis=False)
    if weights is None:
        averaged = _mean(np.mean, x, axes, keepdims=keepdims)
        if not returned:
            return averaged
        size = np.full(averaged.shape, math.prod(x.shape[d] for d in axes), averaged.dtype)
        return averaged, replicated_array("average", size, averaged)
    weights = weights if isinstance(weights, Array) else np.asarray(weights)
    if weights.shape != x.shape:
        named = axes if axis is not None else ()
        if axis is None or weights.shape != tuple(x.shape[d] for d in named):
            raise (TypeError if axis is None else ValueError)(
                f"average: weights have another shape than the averaged elements; expected {x.shape}"
                f"{'' if axis is None else f' or {tuple(x.shape[d] for d in named)}'}, got {weights.shape}; give axis="
            )
        weights = np.reshape(weights, tuple(x.shape[d] if d in named else 1 for d in range(x.ndim)))
    result = np.result_type(x.dtype, weights.dtype, *([np.float64] if x.dtype.kind in "biu" else []))
    work = wide_dtype(result)

    def local(part: Part) -> State:
        load = np.broadcast_to(part.extras[0], part.block.shape)
        return (
            np.add.reduce(np.multiply(part.block, load, dtype=work), axis=axes, keepdims=True),
            np.add.reduce(load, axis=axes, dtype=work, keepdims=True),
        )

    def finish(state: State) -> State:
        if np.any(state[1] == 0):
            raise failure(
                ZeroDivisionError,
                "average",
                "weights sum to zero, can't be normalized",
                expected="another sum",
                got="0",
                fix="look at weights.sum()",
            )
        return (state[0] / state[1]).astype(result, copy=False), state[1].astype(result, copy=False)

    rule = Rule(local, lambda one, two: (one[0] + two[0], one[1] + two[1]), finish)
    averaged, total = reduce_parts("average", x, axes, (result, result), rule, keepdims=keepdims, extras=(weights,))
    return (averaged, total) if returned else averaged
