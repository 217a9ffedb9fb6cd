# SPDX-License-Identifier: Apache-2.0
"""Weighted averages, and sums and extremes that skip NaN."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from artifex_devices._array_ops.core.arguments import array_operand, normal_axes, whole_array
from artifex_devices._array_ops.core.dispatch import implements
from artifex_devices._array_ops.reduce.partials import Part, Rule, State, reduce_parts
from artifex_devices._array_ops.reduce.reductions import reduce_ufunc, wide_dtype
from artifex_devices._array_ops.reduce.statistics import mean
from artifex_devices._base.caller import warn_user
from artifex_devices._core import Array

__all__: list[str] = []

_UNSET: Any = np._NoValue


@implements(np.average)
def _average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    x = array_operand("average", a)
    axes = normal_axes(axis, x.ndim, scalar_has_axis=False)
    if weights is None:
        averaged = mean(x, axes, keepdims=keepdims)
        if not returned:
            return averaged
        size = math.prod(x.shape[d] for d in axes)
        return averaged, whole_array("average", averaged.shape, size, averaged.dtype, averaged)
    weights = weights if isinstance(weights, Array) else np.asarray(weights)
    if weights.shape != x.shape:
        named = axes if axis is not None else ()
        if axis is None or weights.shape != tuple(x.shape[d] for d in named):
            raise (TypeError if axis is None else ValueError)(
                f"average: weights have another shape than what they weigh; expected {x.shape}"
                f"{'' if axis is None else f' or {tuple(x.shape[d] for d in named)}'}, got {weights.shape}; give axis="
            )
        weights = np.reshape(weights, tuple(x.shape[d] if d in named else 1 for d in range(x.ndim)))
    kinds = [x.dtype, weights.dtype] + ([np.dtype(np.float64)] if x.dtype.kind in "biu" else [])
    result = np.result_type(*kinds)
    work = wide_dtype(result)

    def local(part: Part) -> State:
        load = np.broadcast_to(part.extras[0], part.block.shape)
        return (
            np.add.reduce(np.multiply(part.block, load, dtype=work), axis=axes, keepdims=True),
            np.add.reduce(load, axis=axes, dtype=work, keepdims=True),
        )

    def finish(state: State) -> State:
        if np.any(state[1] == 0):
            raise ZeroDivisionError(
                "average: weights sum to zero, can't be normalized; expected another sum, got 0; look at weights.sum()"
            )
        return (state[0] / state[1]).astype(result, copy=False), state[1].astype(result, copy=False)

    rule = Rule(local, lambda one, two: (one[0] + two[0], one[1] + two[1]), finish)
    averaged, total = reduce_parts("average", x, axes, (result, result), rule, keepdims=keepdims, extras=(weights,))
    return (averaged, total) if returned else averaged


def _filled(value: float) -> Any:
    """Puts a number where NaN is."""

    def fill(block: Any) -> Any:
        if block.dtype.kind in "biu":
            return block
        missing = np.isnan(block)
        return np.where(missing, np.asarray(value, block.dtype), block) if missing.any() else block

    return fill


@implements(np.nansum)
def _nansum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = _UNSET,
    where: Any = True,
) -> Any:
    return reduce_ufunc(np.add, a, axis, dtype, out, keepdims, initial, where, "nansum", prepare=_filled(0))


@implements(np.nanprod)
def _nanprod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = _UNSET,
    where: Any = True,
) -> Any:
    return reduce_ufunc(np.multiply, a, axis, dtype, out, keepdims, initial, where, "nanprod", prepare=_filled(1))


def _warn_of_nan(operation: str) -> Any:
    def look(value: Any) -> None:
        if value.dtype.kind not in "biu" and np.isnan(value).any():
            warn_user(f"{operation}: All-NaN slice encountered", RuntimeWarning)

    return look


@implements(np.nanmax)
def _nanmax(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = _UNSET, where: Any = True
) -> Any:
    check = _warn_of_nan("nanmax")
    return reduce_ufunc(np.fmax, a, axis, None, out, keepdims, initial, where, "nanmax", check=check)


@implements(np.nanmin)
def _nanmin(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = _UNSET, where: Any = True
) -> Any:
    check = _warn_of_nan("nanmin")
    return reduce_ufunc(np.fmin, a, axis, None, out, keepdims, initial, where, "nanmin", check=check)
