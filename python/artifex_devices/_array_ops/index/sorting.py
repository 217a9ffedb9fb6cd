# SPDX-License-Identifier: Apache-2.0
"""Order along whole dimensions: sort, argsort, partition, median and quantiles; differences of neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices._array_ops.core.arguments import (
    array_operand,
    as_operand,
    check_reduction_out,
    host_target,
    normal_axes,
    refuse_bool_axis,
    require_unsharded,
)
from artifex_devices._array_ops.core.dispatch import implements
from artifex_devices._array_ops.core.per_block import apply_along
from artifex_devices._array_ops.shape.reshaping import ravel
from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Array


def _one_axis(operation: str, x: Array, axis: Any) -> tuple[Array, int]:
    """The Array and the dimension to work along; for axis None the flattened Array.

    Raises:
        AxisError: It is out of bounds (a ValueError and an IndexError).
        ShardingTypeError: axis is None and a dimension is sharded (a ValueError).
    """
    if axis is None:
        require_unsharded(operation, x, range(x.ndim))
        return ravel(x), 0
    return x, int(np.lib.array_utils.normalize_axis_index(axis, x.ndim))


def _no_order(operation: str, order: Any) -> None:
    if order is not None:
        raise TypeError(
            f"{operation}: order names fields, which the elements of Arrays do not have; expected None, got "
            f"{shown(order)}; leave it away"
        )


@implements(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """np.sort along a dimension that is not cut."""
    x = array_operand("sort", a)
    _no_order("sort", order)
    x, d = _one_axis("sort", x, axis)
    return apply_along("sort", x, {d: x.shape[d]}, lambda b: np.sort(b, axis=d, kind=kind, stable=stable), x.dtype)


@implements(np.argsort)
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """np.argsort along a dimension that is not cut."""
    x: Any = np.atleast_1d(array_operand("argsort", a))  # as NumPy does here, but not in sort
    _no_order("argsort", order)
    refuse_bool_axis("argsort", axis)
    x, d = _one_axis("argsort", x, axis)
    return apply_along(
        "argsort", x, {d: x.shape[d]}, lambda b: np.argsort(b, axis=d, kind=kind, stable=stable), np.intp
    )


@implements(np.partition)
def _partition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    x = array_operand("partition", a)
    _no_order("partition", order)
    x, d = _one_axis("partition", x, axis)
    return apply_along("partition", x, {d: x.shape[d]}, lambda b: np.partition(b, kth, axis=d, kind=kind), x.dtype)


@implements(np.argpartition)
def _argpartition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    x: Any = np.atleast_1d(array_operand("argpartition", a))  # as NumPy does here, but not in partition
    _no_order("argpartition", order)
    refuse_bool_axis("argpartition", axis)
    x, d = _one_axis("argpartition", x, axis)
    return apply_along(
        "argpartition", x, {d: x.shape[d]}, lambda b: np.argpartition(b, kth, axis=d, kind=kind), np.intp
    )


@implements(np.median)
def _median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
    return _middle("median", np.median, a, axis, out, keepdims)


@implements(np.nanmedian)
def _nanmedian(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
    return _middle("nanmedian", np.nanmedian, a, axis, out, keepdims)


def _middle(operation: str, function: Any, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    x = array_operand(operation, a)
    axes = normal_axes(axis, x.ndim)
    if not x.ndim and axis not in (None, ()):  # which sums take, but medians do not
        raise np.exceptions.AxisError(np.atleast_1d(axis)[0], 0, operation)
    dtype = function(np.ones(1, x.dtype)).dtype
    sizes = dict.fromkeys(axes, 1 if keepdims else None)
    into = host_target(operation, out)
    within: Any = axes if x.ndim else None
    if into is None:
        return apply_along(operation, x, sizes, lambda b: function(b, axis=within, keepdims=bool(keepdims)), dtype)
    check_reduction_out(function, x.dtype, x.ndim, axes, bool(keepdims), into.dtype)
    kind = into.dtype

    def with_out(block: NDArray[Any]) -> Any:  # middle elements are averaged in the dtype of out
        shape = [sizes.get(d, size) for d, size in enumerate(block.shape)]
        out = np.empty([size for size in shape if size is not None], kind)
        return function(block, axis=within, keepdims=bool(keepdims), out=out)

    return apply_along(operation, x, sizes, with_out, dtype, into=into)


def _register_quantiles(name: str, function: Any) -> None:
    def quantiles(
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: Any = False,
        *,
        weights: Any = None,
    ) -> Any:
        x = array_operand(name, a)
        if weights is not None:
            raise TypeError(
                f"{name}: weights are not supported on Arrays; expected None, got {type(weights).__name__}; gather "
                f"first: np.{name}(np.asarray(x), ...)"
            )
        q = q if isinstance(q, (int, float)) else np.asarray(q)  # a Python number does not widen the dtype
        axes = normal_axes(axis, x.ndim, scalar_has_axis=False)
        dtype = function(np.ones(1, x.dtype), q, method=method).dtype
        sizes = dict.fromkeys(axes, 1 if keepdims else None)
        into = host_target(name, out)
        if into is not None:  # raises what NumPy raises
            sample = np.ones((1,) * (x.ndim or 1), x.dtype)
            function(sample, q, out=np.empty(np.shape(q), into.dtype), method=method)
        within: Any = axes if x.ndim else None
        return apply_along(
            name,
            x,
            sizes,
            lambda b: function(b, q, axis=within, method=method, keepdims=bool(keepdims)),
            dtype,
            leading=np.shape(q),
            into=into,
        )

    implements(function)(quantiles)


for _name in ("quantile", "percentile", "nanquantile", "nanpercentile"):
    _register_quantiles(_name, getattr(np, _name))


@implements(np.diff)
def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = np._NoValue, append: Any = np._NoValue) -> Any:
    """np.diff; what is prepended or appended is joined as by np.concatenate."""
    if n < 0:
        raise ValueError(f"diff: order must be non-negative; expected n >= 0, got {n}; say how often to subtract")
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


@implements(np.trapezoid)
def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    values = array_operand("trapezoid", y)
    if isinstance(x, Array):
        raise TypeError(
            "trapezoid: sample points are needed whole beside each shard; expected an ndarray or None, got an Array; "
            "pass np.asarray(x)"
        )
    d = int(np.lib.array_utils.normalize_axis_index(axis, values.ndim))
    points = None if x is None else np.asarray(x)
    if points is not None and points.ndim != 1:
        raise ValueError(
            f"trapezoid: sample points of shape {points.shape} differ between shards; expected one dimension; pass one "
            "row of them, or gather: np.asarray(y)"
        )
    dtype = np.trapezoid(np.ones(2, values.dtype), None if points is None else np.ones(2, points.dtype), dx).dtype
    return apply_along("trapezoid", values, {d: None}, lambda b: np.trapezoid(b, points, dx, axis=d), dtype)
