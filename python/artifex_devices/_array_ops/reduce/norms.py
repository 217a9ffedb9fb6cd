# SPDX-License-Identifier: Apache-2.0
"""Norms of vectors and matrices: sums and extremes of absolute values over any dimensions, sharded or not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from artifex_devices._array_ops.core.arguments import array_operand, axis_tuple, normal_axes
from artifex_devices._array_ops.core.blocks import PIECE_BYTES
from artifex_devices._array_ops.core.per_block import apply_along
from artifex_devices._array_ops.core.registry import implements
from artifex_devices._array_ops.reduce.exact_sums import (
    absolute_states,
    exact_results,
    exact_rule,
    is_rounded,
    rounded,
    square_states,
    value_states,
)
from artifex_devices._array_ops.reduce.partials import READ_BYTES, Part, Rule, State, reduce_parts
from artifex_devices._array_ops.reduce.reductions import reduce_ufunc, wide_dtype
from artifex_devices._array_ops.reduce.reproducible import is_reproducible
from artifex_devices._array_ops.reduce.totals import LEAST_BYTES, totals, totals_dtype
from artifex_devices._base.argument_types import Axes
from artifex_devices._base.checks import failure
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array
from artifex_devices._runtime.gpu_block import host_copy


@implements(np.linalg.norm)
def norm(x: ArrayLike, ord: float | str | None = None, axis: Axes = None, keepdims: bool = False) -> Array:
    """Implements np.linalg.norm; matrix norms by singular values (2, -2, nuc) only of unsharded matrices."""
    values = array_operand("norm", x)
    if axis is None and ord is None:
        return _vector("norm", values, 2, tuple(range(values.ndim)), keepdims)
    axes = tuple(range(values.ndim)) if axis is None else axis_tuple("norm", axis, values.ndim)
    if len(axes) == 1:
        return _vector("norm", values, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2:
        rows, columns = axes
        return _matrix("norm", values, "fro" if ord is None else ord, (rows, columns), keepdims)
    raise failure(
        ValueError,
        "norm",
        "Improper number of dimensions to norm",
        expected="one or two",
        got=f"{axes} of shape {values.shape}",
        fix="give axis=",
    )


@implements(np.linalg.vector_norm)
def _vector_norm(x: ArrayLike, /, *, axis: Axes = None, keepdims: bool = False, ord: float | str | None = 2) -> Array:
    values = array_operand("vector_norm", x)
    return _vector("vector_norm", values, ord, normal_axes(axis, values.ndim, scalar_has_axis=False), keepdims)


@implements(np.linalg.matrix_norm)
def _matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> Array:
    values = array_operand("matrix_norm", x)
    rows, columns = axis_tuple("matrix_norm", (-2, -1), values.ndim)
    return _matrix("matrix_norm", values, ord, (rows, columns), keepdims)


def _dtypes(x: Array) -> tuple[Any, Any]:
    """Returns the dtype of the result, and the real one to compute in."""
    result = np.linalg.norm(np.ones(1, x.dtype)).dtype
    return result, wide_dtype(result)


def _vector(operation: str, x: Array, order: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    result, work = _dtypes(x)
    axes = tuple(sorted(axes))
    join: np.ufunc = np.add
    if isinstance(order, str):
        raise failure(
            ValueError,
            operation,
            f"Invalid norm order {safe_repr(order)} for vectors",
            expected="a number",
            got="a name",
            fix="give two dimensions",
        )
    if order in (np.inf, -np.inf):
        join = np.maximum if order > 0 else np.minimum
        if order < 0 and any(x.shape[d] == 0 for d in axes):
            raise failure(
                ValueError,
                operation,
                f"zero-size array to reduction operation {join.__name__} which has no identity",
                expected=f"elements along dimensions {axes}",
                got=f"shape {x.shape}",
                fix="use another order",
            )

    is_exact = join is np.add and is_reproducible()
    work = np.dtype(np.float64) if is_exact else work
    empty: Any = {"initial": 0} if join is np.maximum else {}  # as NumPy
    kind = ("abs" if order == 1 else "squares" if order == 2 else "") if x.nbytes >= LEAST_BYTES else ""
    wide = totals_dtype(kind, x.dtype, work) if kind else None

    def power(block: Any) -> Any:
        if order == 0:
            return (block != 0).astype(work)
        if order == 2:
            if block.dtype.kind == "c":
                return np.square(block.real) + np.square(block.imag)
            return np.square(block.astype(work, copy=False))
        block = np.ascontiguousarray(block) if is_exact else block  # strided loops may round otherwise
        sizes = np.abs(block if block.dtype.kind == "c" else block.astype(work, copy=False))
        return sizes if order in (1, np.inf, -np.inf) else np.power(sizes, order)

    def root(total: Any) -> Any:
        if order == 2:
            return np.sqrt(total)
        return total if order in (0, 1, np.inf, -np.inf) else np.power(total, np.reciprocal(work.type(order)))

    def local(part: Part) -> State:
        block = part.block
        if wide is not None and (total := totals(kind, block, axes, wide)) is not None:
            return (total,)
        if order == 2 and len(axes) == block.ndim and block.dtype == work and block.flags.c_contiguous:
            flat = block.reshape(-1)
            return (np.reshape(np.dot(flat, flat), (1,) * block.ndim),)  # one pass over memory, as NumPy's
        return (join.reduce(power(part.block), axis=axes, keepdims=True, **empty),)

    def exact(part: Part) -> State:
        block = host_copy(part.block)
        if order != 2 and (order != 1 or block.dtype.kind == "c"):
            return value_states(power(block), axes)
        block = block if is_rounded(block.dtype) else block.astype(work)
        return (absolute_states if order == 1 else square_states)(block, axes)

    def finished(total: Any) -> State:
        with np.errstate(over="ignore"):
            return (root(total).astype(result, copy=False),)

    def exact_finish(state: State) -> State:
        return finished(rounded(state, work))

    def whole(parts: list[Part]) -> State | None:
        total = exact_results("absolute" if order == 1 else "square", parts, axes, work)
        return None if total is None else finished(total)

    if is_exact:
        is_direct = order in (1, 2) and x.dtype in (np.float32, np.float64)
        rule = exact_rule(exact, exact_finish, PIECE_BYTES)
        if is_direct:
            rule = exact_rule(exact, exact_finish, READ_BYTES, whole)
        return reduce_parts(operation, x, axes, (result,), rule, keepdims=keepdims)[0]
    rule = Rule(
        local,
        lambda one, two: (join(one[0], two[0]),),
        lambda state: (root(state[0]).astype(result, copy=False),),
        piece_bytes=PIECE_BYTES if wide is None else READ_BYTES,
    )
    return reduce_parts(operation, x, axes, (result,), rule, keepdims=keepdims)[0]


def _matrix(operation: str, x: Array, order: Any, axes: tuple[int, int], keepdims: bool) -> Array:
    if order in ("fro", "f"):
        return _vector(operation, x, 2, axes, keepdims)
    if order in (1, -1, np.inf, -np.inf):
        rows, columns = axes
        sums = _vector(operation, x, 1, (rows if order in (1, -1) else columns,), True)
        extreme = np.maximum if order > 0 else np.minimum
        initial: Any = {"initial": 0} if order > 0 else {}  # as NumPy
        return reduce_ufunc(extreme, sums, axes, keepdims=keepdims, name=operation, **initial)  # type: ignore[no-any-return]
    if order in (2, -2, "nuc"):
        result, _ = _dtypes(x)
        sizes = dict.fromkeys(axes, 1 if keepdims else None)
        return apply_along(
            operation, x, sizes, lambda block: np.linalg.norm(block, order, axis=axes, keepdims=bool(keepdims)), result
        )
    raise failure(
        ValueError,
        operation,
        "Invalid norm order for matrices",
        expected="fro, nuc, 1, -1, 2, -2, inf or -inf",
        got=safe_repr(order),
        fix="give one dimension for a vector norm",
    )
