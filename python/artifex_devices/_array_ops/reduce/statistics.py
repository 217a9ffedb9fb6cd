# SPDX-License-Identifier: Apache-2.0
"""Means and spreads: every part is averaged by itself, neighbours are joined by their counts (Chan's rule)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from artifex_devices._array_ops.core.arguments import array_operand, normal_axes, refuse_bool_axis
from artifex_devices._array_ops.core.blocks import PIECE_BYTES
from artifex_devices._array_ops.core.dispatch import implements
from artifex_devices._array_ops.core.operands import as_operand, where_mask
from artifex_devices._array_ops.core.out import check_reduction_out, host_target, loop_dtype
from artifex_devices._array_ops.reduce.float16 import fold, folds, widened
from artifex_devices._array_ops.reduce.partials import Part, Rule, State, reduce_parts
from artifex_devices._array_ops.reduce.reductions import wide_dtype
from artifex_devices._base.caller import warn_user
from artifex_devices._base.clearable_cache import remembered
from artifex_devices._core import Array

__all__ = ["mean", "std", "var"]

_UNSET: Any = np._NoValue
_SMALL_INTEGERS = ("int2", "int4", "uint2", "uint4")


@remembered(maxsize=256)
def _dtype_of(function: Any, kind: Any, dtype: Any) -> Any:
    """What NumPy answers."""
    return function(np.ones(2, kind), dtype=dtype).dtype


def _work_dtype(kind: Any, dtype: Any) -> Any:
    if dtype is not None:
        return wide_dtype(np.dtype(dtype))
    return np.dtype(np.float64) if np.dtype(kind).kind in "biu" else wide_dtype(kind)


def _dtype_with_out(
    function: Any, x: Array, axes: tuple[int, ...], dtype: Any, work: Any, into: Any, keepdims: Any
) -> Any:
    """The dtype to compute in where there is an `out`, which may be wider than the operand."""
    check_reduction_out(function, x.dtype, x.ndim, axes, bool(keepdims), into.dtype, (("dtype", dtype),))
    if dtype is not None or x.dtype.kind in "biu":
        return work
    wide = loop_dtype(np.add, x.dtype, into.dtype)
    return work if np.can_cast(wide, work) else wide


def _skips(operation: str, x: Array) -> bool:
    """Whether NaN is skipped; of integers NumPy's nanmean and its kind are mean and its kind."""
    return operation.startswith("nan") and x.dtype.kind not in "biu"


def _checked_dtype(operation: str, x: Array, dtype: Any) -> Any:
    """`dtype` as a dtype, or None.

    Raises:
        TypeError: NaN is skipped and the dtype has none.
    """
    kind = None if dtype is None else np.dtype(dtype)
    if kind is not None and _skips(operation, x) and x.dtype.isbuiltin == 1 and kind.kind in "biu":
        raise TypeError(
            f"{operation}: dtype {kind} has no NaN while {x.dtype} has; expected a dtype of floats, got {kind}; leave "
            "it out, or convert the result"
        )
    return kind


def _mask(operation: str, where: Any) -> tuple[Any, ...]:
    return () if where is True else (where_mask(operation, where),)


def _selected(part: Part, skips: bool, masked: bool) -> Any:
    """Which elements count, True for all."""
    selected: Any = True
    if masked:
        selected = np.broadcast_to(part.extras[-1], part.block.shape)
    if skips and part.block.dtype.kind not in "biu":
        present = np.logical_not(np.isnan(part.block))
        selected = present if selected is True else selected & present
    return selected


def _count(part: Part, axes: tuple[int, ...], selected: Any) -> Any:
    if selected is True:
        return math.prod(part.block.shape[d] for d in axes)
    return np.add.reduce(selected, axis=axes, dtype=np.intp, keepdims=True)


@implements(np.mean)
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """np.mean: floats of 16 bits are added up in float32, integers in float64."""
    return _mean("mean", a, axis, dtype, out, keepdims, where, False)


@implements(np.nanmean)
def _nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    return _mean("nanmean", a, axis, dtype, out, keepdims, where, True)


def _mean(operation: str, a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, where: Any, skips: bool) -> Any:
    x = array_operand(operation, a)
    refuse_bool_axis(operation, axis)
    axes = normal_axes(axis, x.ndim, scalar_has_axis=_skips(operation, x) or where is not True)
    into = host_target(operation, out)
    dtype = _checked_dtype(operation, x, dtype)
    result = _dtype_of(np.mean, x.dtype, dtype)
    work = _work_dtype(x.dtype, dtype)
    if into is not None:
        work = result = _dtype_with_out(getattr(np, operation), x, axes, dtype, work, into, keepdims)
    extras = _mask(operation, where)

    def local(part: Part) -> State:
        selected = _selected(part, skips, bool(extras))
        if selected is True and folds(np.add, x.dtype, work):
            total = fold(np.add, part.block, axes)
        else:
            total = np.add.reduce(part.block, axis=axes, dtype=work, keepdims=True, where=selected)
        return total, _count(part, axes, selected)

    def finish(state: State) -> State:
        total, count = state
        if not (count.all() if isinstance(count, np.ndarray) else count):
            warn_user(f"{operation}: Mean of empty slice", RuntimeWarning)
            if result.name in _SMALL_INTEGERS:
                raise ValueError(
                    f"{operation}: the mean of no elements is NaN, which {result} does not have; expected 1 element or "
                    f"more, got 0; give a dtype of floats: np.{operation}(x, dtype='float32')"
                )
        return (np.true_divide(total, count).astype(result, copy=False),)

    rule = Rule(local, lambda one, two: (one[0] + two[0], one[1] + two[1]), finish)
    return reduce_parts(operation, x, axes, (result,), rule, keepdims=keepdims, extras=extras, into=into)[0]


@implements(np.var)
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = _UNSET,
    correction: Any = _UNSET,
) -> Any:
    """np.var: one pass over memory."""
    return _spread("var", a, axis, dtype, out, ddof, keepdims, where, mean, correction)


@implements(np.std)
def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = _UNSET,
    correction: Any = _UNSET,
) -> Any:
    """np.std: one pass over memory."""
    return _spread("std", a, axis, dtype, out, ddof, keepdims, where, mean, correction)


@implements(np.nanvar)
def _nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = _UNSET,
    correction: Any = _UNSET,
) -> Any:
    return _spread("nanvar", a, axis, dtype, out, ddof, keepdims, where, mean, correction)


@implements(np.nanstd)
def _nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = _UNSET,
    correction: Any = _UNSET,
) -> Any:
    return _spread("nanstd", a, axis, dtype, out, ddof, keepdims, where, mean, correction)


def _spread(
    operation: str,
    a: Any,
    axis: Any,
    dtype: Any,
    out: Any,
    ddof: Any,
    keepdims: Any,
    where: Any,
    given_mean: Any,
    correction: Any,
) -> Any:
    x = array_operand(operation, a)
    if correction is not _UNSET and correction is not None:
        if ddof != 0:
            raise ValueError(
                f"{operation}: ddof and correction are two names of one thing; expected one of them, got ddof={ddof} "
                f"and correction={correction}; leave ddof away"
            )
        ddof = correction
    refuse_bool_axis(operation, axis)
    axes = normal_axes(axis, x.ndim, scalar_has_axis=_skips(operation, x) or where is not True)
    into = host_target(operation, out)
    dtype = _checked_dtype(operation, x, dtype)
    result = _dtype_of(np.var, x.dtype, dtype)
    work = _work_dtype(x.dtype, dtype)
    if into is not None:
        work = _dtype_with_out(getattr(np, operation), x, axes, dtype, work, into, keepdims)
        result = np.ones(1, work).real.dtype
    if given_mean is not _UNSET:
        as_operand(operation, given_mean)
        work = np.result_type(work, given_mean.dtype if hasattr(given_mean, "dtype") else given_mean)
        result = work if work.itemsize > result.itemsize and dtype is None and work.kind == "f" else result
    if dtype is not None and work.kind in "biu":
        raise TypeError(
            f"{operation}: a mean and squares need fractions; expected a dtype of floats, got {dtype}; convert the "
            f"result: np.{operation}(x).astype('{dtype}')"
        )
    if work.name in _SMALL_INTEGERS:
        raise TypeError(
            f"{operation}: squares of {work} overflow; expected floats or integers of 8 bits and more, got {x.dtype}; "
            f"give a dtype of floats: np.{operation}(x, dtype='float32')"
        )
    masks = _mask(operation, where)
    means = () if given_mean is _UNSET else (given_mean if isinstance(given_mean, Array) else np.asarray(given_mean),)
    is_half = folds(np.add, x.dtype, work)

    def local(part: Part) -> State:
        selected = _selected(part, operation.startswith("nan"), bool(masks))
        count = _count(part, axes, selected)
        block = widened(part.block) if is_half else part.block
        if means:
            middle = part.extras[0]
        else:
            middle = np.add.reduce(block, axis=axes, dtype=work, keepdims=True, where=selected)
            middle = np.divide(middle, np.maximum(count, 1), dtype=work)
        return (
            count,
            middle,
            _square_sum(
                np.subtract(block, middle, dtype=work, out=None if block is part.block else block), axes, selected
            ),
        )

    def combine(one: State, two: State) -> State:
        (n, a_mean, a_squares), (m, b_mean, b_squares) = one, two
        if means:
            return n + m, a_mean, a_squares + b_squares
        share = m / np.maximum(n + m, 1).astype(b_squares.dtype)
        apart = b_mean - a_mean
        squares = apart.real**2 + apart.imag**2 if apart.dtype.kind == "c" else apart * apart
        return n + m, a_mean + apart * share, a_squares + b_squares + squares * (n * share)

    def finish(state: State) -> State:
        count, _, squares = state
        freedom = np.maximum(count - ddof, 0)
        if np.any(freedom == 0):
            warn_user(f"{operation}: Degrees of freedom <= 0 for slice", RuntimeWarning)
        value = np.true_divide(squares, freedom)
        if _skips(operation, x):
            value = np.where(np.equal(freedom, 0), np.asarray(np.nan, value.dtype), value)  # as NumPy: never inf
        if operation.endswith("std"):
            value = np.sqrt(value)
        return (value.astype(result, copy=False),)

    rule = Rule(local, combine, finish, piece_bytes=PIECE_BYTES // 4 if is_half else PIECE_BYTES)
    return reduce_parts(operation, x, axes, (result,), rule, keepdims=keepdims, extras=means + masks, into=into)[0]


def _square_sum(apart: Any, axes: tuple[int, ...], selected: Any) -> Any:
    """Sums of squared absolute values; overwrites its argument."""
    if apart.dtype.kind == "c":
        squares = apart.real**2 + apart.imag**2
    else:
        squares = np.multiply(apart, apart, out=apart if apart.ndim else None)
    return np.add.reduce(squares, axis=axes, keepdims=True, where=selected)
