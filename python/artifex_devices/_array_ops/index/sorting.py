# SPDX-License-Identifier: Apache-2.0
"""Order along whole dimensions: sort, partition, median and quantiles; differences of neighbours and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from artifex_devices._array_ops.core.arguments import (
    array_operand,
    as_operand,
    axis_tuple,
    check_reduction_out,
    host_target,
    normal_axes,
    on_host,
    refuse_bool_axis,
)
from artifex_devices._array_ops.core.auto_axes import whole_along, whole_operands
from artifex_devices._array_ops.core.per_block import apply_along
from artifex_devices._array_ops.core.registry import implements, implements_each
from artifex_devices._array_ops.shape.reshaping import ravel
from artifex_devices._base.argument_types import Axes, Operand, Out
from artifex_devices._base.checks import failure
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array


def _sorted(function: Callable[..., Any], a: ArrayLike, axis: int | None, order: str | None, **options: Any) -> Any:
    """Makes a function along one unsharded dimension, whose result has as many positions or elements."""
    operation = function.__name__
    x: Any = array_operand(operation, a)
    if order is not None:
        raise failure(
            TypeError,
            operation,
            "order names fields, which the elements of Arrays do not have",
            expected="None",
            got=safe_repr(order),
            fix="leave it away",
        )
    positions = function in (np.argsort, np.argpartition)
    if positions:
        x = np.atleast_1d(x)  # as NumPy does here, but not in sort and partition
        refuse_bool_axis(operation, axis)
    if axis is None:
        x, axis = ravel(whole_along(operation, x, range(x.ndim))), 0
    d = int(np.lib.array_utils.normalize_axis_index(axis, x.ndim))
    dtype = np.intp if positions else x.dtype
    return apply_along(operation, x, {d: x.shape[d]}, lambda block: function(block, axis=d, **options), dtype)


@implements_each(np.sort, np.argsort)
def _sort(
    function: Callable[..., Any],
    a: ArrayLike,
    axis: int | None = -1,
    kind: str | None = None,
    order: str | None = None,
    *,
    stable: bool | None = None,
) -> Any:
    return _sorted(function, a, axis, order, kind=kind, stable=stable)


@implements_each(np.partition, np.argpartition)
def _partition(
    function: Callable[..., Any],
    a: ArrayLike,
    kth: ArrayLike,
    axis: int | None = -1,
    kind: str = "introselect",
    order: str | None = None,
) -> Any:
    return _sorted(function, a, axis, order, kth=kth, kind=kind)


@implements_each(np.median, np.nanmedian)
def _median(
    function: Callable[..., Any],
    a: ArrayLike,
    axis: Axes = None,
    out: Out = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Operand:
    operation = function.__name__
    x = array_operand(operation, a)
    axes = normal_axes(axis, x.ndim)
    if not x.ndim and axis not in (None, ()):  # sums accept it, medians do not
        raise np.exceptions.AxisError(np.atleast_1d(axis)[0], 0, operation)
    dtype = function(np.ones(1, x.dtype)).dtype
    sizes = dict.fromkeys(axes, 1 if keepdims else None)
    into = host_target(operation, out)
    within: Any = axes if x.ndim else None
    if into is None:
        return apply_along(operation, x, sizes, lambda b: function(b, axis=within, keepdims=bool(keepdims)), dtype)
    check_reduction_out(function, x.dtype, x.ndim, axes, bool(keepdims), into.dtype)
    kind = into.dtype

    def with_out(block: NDArray[Any]) -> Any:  # the elements in the middle are averaged in the dtype of out
        shape = [sizes.get(d, size) for d, size in enumerate(block.shape)]
        out = np.empty([size for size in shape if size is not None], kind)
        return function(block, axis=within, keepdims=bool(keepdims), out=out)

    return apply_along(operation, x, sizes, with_out, dtype, into=into)


@implements_each(np.quantile, np.percentile, np.nanquantile, np.nanpercentile)
def _quantiles(
    function: Callable[..., Any],
    a: ArrayLike,
    q: float | ArrayLike,
    axis: Axes = None,
    out: Out = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Operand:
    name = function.__name__
    x = array_operand(name, a)
    if weights is not None:
        raise failure(
            TypeError,
            name,
            "weights are not supported on Arrays",
            expected="None",
            got=type(weights).__name__,
            fix=f"gather first: np.{name}(np.asarray(x), ...)",
        )
    q = q if isinstance(q, (int, float)) else on_host(name, q, "q")  # a Python number does not widen the dtype
    axes = normal_axes(axis, x.ndim, scalar_has_axis=False)
    dtype = function(np.ones(1, x.dtype), q, method=method).dtype
    sizes = dict.fromkeys(axes, 1 if keepdims else None)
    into = host_target(name, out)
    if into is not None:  # raises what NumPy raises
        sample = np.ones((1,) * (x.ndim or 1), x.dtype)
        function(sample, q, out=np.empty(np.shape(q), into.dtype), method=method)
    within: Any = axes if x.ndim else None

    def compute(block: NDArray[Any]) -> Any:
        return function(block, q, axis=within, method=method, keepdims=bool(keepdims))

    return apply_along(name, x, sizes, compute, dtype, leading=np.shape(q), into=into)


@implements(np.diff)
def _diff(a: ArrayLike, n: int = 1, axis: int = -1, prepend: Any = np._NoValue, append: Any = np._NoValue) -> Any:
    """Implements np.diff; prepended and appended values are joined as by np.concatenate."""
    if n < 0:
        raise ValueError(f"diff: order must be non-negative; expected n >= 0, got {n}; give the number of subtractions")
    x: Any = as_operand("diff", a)
    if n == 0:
        return x
    d = int(np.lib.array_utils.normalize_axis_index(axis, x.ndim))
    ends = [None if end is np._NoValue else as_operand("diff", end) for end in (prepend, append)]
    row = (*x.shape[:d], 1, *x.shape[d + 1 :])
    first, last = (end if end is None or end.ndim else np.broadcast_to(end, row) for end in ends)
    parts = [part for part in (first, x, last) if part is not None]
    joined = array_operand("diff", np.concatenate(parts, d) if len(parts) > 1 else x)
    dtype = np.diff(np.ones(2, joined.dtype)).dtype
    return apply_along("diff", joined, {d: max(joined.shape[d] - n, 0)}, lambda b: np.diff(b, n, axis=d), dtype)


@implements(np.gradient)
def _gradient(f: ArrayLike, *varargs: ArrayLike, axis: Axes = None, edge_order: Any = 1) -> Any:
    x = array_operand("gradient", f)
    axes = range(x.ndim) if axis is None else axis_tuple("gradient", axis, x.ndim)
    spacings = [on_host("gradient", spacing, "spacing") for spacing in varargs]
    np.gradient(np.ones((3,) * x.ndim), *(s if s.ndim == 0 else np.arange(3.0) for s in spacings), axis=axis)
    if len(spacings) < 2:
        spacings = (spacings or [np.asarray(1.0)]) * len(axes)
    dtype = np.gradient(np.ones(3, x.dtype)).dtype
    parts = whole_operands("gradient", *((x, (d,), "x") for d in axes))

    def along(part: Array, d: int, spacing: NDArray[Any]) -> Array:
        compute = lambda block: np.gradient(block, spacing, axis=d, edge_order=edge_order)  # noqa: E731
        return apply_along("gradient", part, {d: x.shape[d]}, compute, dtype)

    results = tuple(map(along, parts, axes, spacings))
    return results[0] if len(results) == 1 else results


@implements(np.trapezoid)
def _trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: float = 1.0, axis: int = -1) -> Operand:
    values = array_operand("trapezoid", y)
    if isinstance(x, Array):
        raise failure(
            TypeError,
            "trapezoid",
            "sample points must be on the host",
            expected="an ndarray or None",
            got="an Array",
            fix="pass np.asarray(x)",
        )
    d = int(np.lib.array_utils.normalize_axis_index(axis, values.ndim))
    points = None if x is None else np.asarray(x)
    if points is not None and points.ndim != 1:
        raise failure(
            ValueError,
            "trapezoid",
            f"sample points of shape {points.shape} differ between shards",
            expected="one dimension",
            fix="pass one row of points, or gather: np.asarray(y)",
        )
    dtype = np.trapezoid(np.ones(2, values.dtype), None if points is None else np.ones(2, points.dtype), dx).dtype
    return apply_along("trapezoid", values, {d: None}, lambda b: np.trapezoid(b, points, dx, axis=d), dtype)
