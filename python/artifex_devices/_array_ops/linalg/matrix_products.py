# SPDX-License-Identifier: Apache-2.0
"""matmul, dot, vdot, inner, outer and tensordot: products of labelled blocks by matmul, written into the result."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from artifex_devices._array_ops.core.arguments import as_operand, deliver, host_target
from artifex_devices._array_ops.core.registry import implements, implements_ufunc
from artifex_devices._array_ops.linalg.contraction import Labels, contract
from artifex_devices._array_ops.linalg.exact_dot import exact_dot
from artifex_devices._array_ops.reduce.reproducible import is_reproducible
from artifex_devices._array_ops.shape.reshaping import expand_dims, ravel
from artifex_devices._base.argument_types import Operand, Out
from artifex_devices._base.checks import failure
from artifex_devices._base.clearable_cache import clearable_cache
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array


class PairPlan(NamedTuple):
    """The product of two arrays as a (stacked) matrix product."""

    left: tuple[int, ...]  # order of its dimensions: stacked, rows, summed
    right: tuple[int, ...]  # order of its dimensions: stacked, summed, columns
    stacked: int
    rows: int
    columns: int
    swapped: bool  # whether the second operand is the left one
    order: tuple[int, ...] | None  # of the result's dimensions, if they are not stacked, rows, columns


@clearable_cache(maxsize=1024)
def plan_pair(a: Labels, b: Labels, out: Labels) -> PairPlan | None:
    """Returns the plan, or None if the product is not a matrix product and needs einsum."""
    if len(set(a)) < len(a) or len(set(b)) < len(b):
        return None
    summed = tuple(label for label in a if label not in out)
    if not summed or set(summed) != {label for label in b if label not in out}:
        return None
    stacked = tuple(label for label in out if label in a and label in b)
    rows = tuple(label for label in out if label in a and label not in b)
    columns = tuple(label for label in out if label in b and label not in a)
    if stacked and not (rows and columns):
        return None
    swapped = out == (*stacked, *columns, *rows) != (*stacked, *rows, *columns)
    if swapped:
        a, b, rows, columns = b, a, columns, rows
    natural = (*stacked, *rows, *columns)
    return PairPlan(
        left=tuple(map(a.index, (*stacked, *rows, *summed))),
        right=tuple(map(b.index, (*stacked, *summed, *columns))),
        stacked=len(stacked),
        rows=len(rows),
        columns=len(columns),
        swapped=swapped,
        order=None if out == natural else tuple(map(natural.index, out)),
    )


def multiply_pair(
    plan: PairPlan, output: NDArray[Any], parts: Sequence[NDArray[Any]], wide: bool, **options: Any
) -> None:
    """Writes the product of two arrays to a dense row-major ndarray; if `wide`, in its dtype instead of NumPy's choice.

    `options` are casting and dtype of np.matmul.
    """
    a, b = (parts[1], parts[0]) if plan.swapped else parts
    a = a.transpose(plan.left)
    b = b.transpose(plan.right)
    s, r, c = plan.stacked, plan.rows, plan.columns
    rows, columns = a.shape[s : s + r], b.shape[b.ndim - c :]
    depth = math.prod(a.shape[s + r :])
    a = a.reshape(*a.shape[:s], math.prod(rows), depth)
    b = b.reshape(*b.shape[:s], depth, math.prod(columns))
    stack = np.broadcast_shapes(a.shape[:s], b.shape[:s])
    if wide:
        options["dtype"] = output.dtype
    if plan.order is None:
        np.matmul(a, b, out=output.reshape(*stack, math.prod(rows), math.prod(columns), copy=False), **options)
        return
    product = np.empty_like(output, order="C", shape=(*stack, math.prod(rows), math.prod(columns)))
    np.matmul(a, b, out=product, **options)
    np.copyto(output, product.reshape(*stack, *rows, *columns).transpose(plan.order))


_ARRAY_UFUNCS = [np.matmul, np.vecdot, *(getattr(np, name) for name in ("matvec", "vecmat") if hasattr(np, name))]


@clearable_cache(maxsize=1024)
def _product_dtype(
    function: Callable[..., Any], kinds: tuple[tuple[Any, int], ...], options: tuple[tuple[str, Any], ...]
) -> Any:
    """Returns NumPy's dtype for operands of these dtypes and ranks."""
    return function(*(np.ones((1,) * ndim, dtype) for dtype, ndim in kinds), **dict(options)).dtype


@implements_ufunc(*_ARRAY_UFUNCS)
def _call_core(ufunc: np.ufunc, inputs: Sequence[Any], options: dict[str, Any]) -> Operand:
    """Calls matmul, vecdot, matvec or vecmat, whose core dimensions are the labels."""
    options = dict(options)
    name = ufunc.__name__
    out = options.pop("out", None)
    axes = options.pop("axes", None)
    axis = options.pop("axis", None)
    refused = sorted(options.keys() - {"dtype", "casting"})
    if refused or axes is not None or (axis is not None and ufunc is not np.vecdot):
        details = ", ".join(
            (*refused, *(["axes"] if axes is not None else []), *(["axis"] if axis is not None else []))
        )
        raise failure(
            TypeError,
            name,
            f"{details} has no meaning on Arrays",
            expected="dtype, casting or out",
            fix="move dimensions first: np.moveaxis(x, source, -1)",
        )
    operands: list[Any] = [as_operand(name, x) for x in inputs]
    if axis is not None:
        operands = [np.moveaxis(x, axis, -1) for x in operands]
    labels, out_labels = _core_labels(ufunc, operands)
    dtype = _product_dtype(ufunc, tuple((x.dtype, x.ndim) for x in operands), tuple(sorted(options.items())))
    if not out_labels and not options and is_reproducible():
        a, b = operands
        exact = exact_dot(name, np.conjugate(a) if ufunc is np.vecdot and a.dtype.kind == "c" else a, b, dtype)
        if exact is not None:
            return deliver(name, exact, out)
    plan = plan_pair(labels[0], labels[1], out_labels) if ufunc is np.matmul else None

    def multiply(output: NDArray[Any], parts: Sequence[NDArray[Any]], wide: bool) -> None:
        if plan is not None:
            multiply_pair(plan, output, parts, wide, **options)
        elif wide:
            ufunc(*parts, out=output, **{**options, "dtype": output.dtype})
        else:
            ufunc(*parts, out=output, **options)

    batch = lambda label: isinstance(label, int)  # noqa: E731 - core dimensions do not stretch
    return deliver(name, contract(name, operands, labels, out_labels, dtype, multiply, broadcast=batch), out)


def _core_labels(ufunc: np.ufunc, operands: Sequence[Any]) -> tuple[list[Labels], Labels]:
    """Labels by the signature, such as "(n?,k),(k,m?)->(n?,m?)"; other dimensions are numbered from the right."""
    assert ufunc.signature is not None
    inputs, wanted = ufunc.signature.replace(" ", "").split("->")
    absent = set()
    labels: list[Labels] = []
    longest: Labels = ()
    for i, (text, x) in enumerate(zip(inputs[1:-1].split("),("), operands, strict=True)):
        core = text.split(",")
        while len(core) > x.ndim and any(name.endswith("?") for name in core):
            optional = next(name for name in core if name.endswith("?"))
            core.remove(optional)
            absent.add(optional)
        if len(core) > x.ndim:
            raise failure(
                ValueError,
                ufunc.__name__,
                f"operand {i} has too few dimensions",
                expected=f"at least {len(core)}",
                got=f"shape {tuple(x.shape)}",
                fix="use np.multiply for numbers",
            )
        outer = tuple(range(len(core) - x.ndim, 0))
        longest = outer if len(outer) > len(longest) else longest
        labels.append((*outer, *(name.rstrip("?") for name in core)))
    core_out = [name.rstrip("?") for name in wanted[1:-1].split(",") if name and name not in absent]
    return labels, (*longest, *core_out)


def tensordot_over(operation: str, a: Operand, b: Operand, a_axes: Sequence[int], b_axes: Sequence[int]) -> Array:
    """Returns the sum of products over pairs of dimensions; the other dimensions follow, first of `a`, then of `b`."""
    a_labels: list[Hashable] = [("a", d) for d in range(a.ndim)]
    b_labels: list[Hashable] = [("b", d) for d in range(b.ndim)]
    for pair, (i, j) in enumerate(zip(a_axes, b_axes, strict=True)):
        a_labels[i] = b_labels[j] = ("summed", pair)
    out = tuple(label for d, label in enumerate(a_labels) if d not in a_axes)
    out += tuple(label for d, label in enumerate(b_labels) if d not in b_axes)
    labels = tuple(a_labels), tuple(b_labels)
    plan = plan_pair(*labels, out)
    assert plan is not None
    dtype = _product_dtype(np.dot, ((a.dtype, 1), (b.dtype, 1)), ())
    if not out and a_labels == b_labels and operation in ("dot", "inner", "vdot"):
        exact = exact_dot(operation, a, b, dtype)
        if exact is not None:
            return exact
    return contract(operation, (a, b), labels, out, dtype, functools.partial(multiply_pair, plan))


@implements(np.dot)
def dot(a: ArrayLike, b: ArrayLike, out: Out = None) -> Operand:
    """Implements np.dot: sums over the last dimension of a and the last but one of b."""
    x, y = as_operand("dot", a), as_operand("dot", b)
    if x.ndim == 0 or y.ndim == 0:
        result: Any = np.multiply(x, y)
    else:
        result = tensordot_over("dot", x, y, (x.ndim - 1,), (max(y.ndim - 2, 0),))
    into = host_target("dot", out)
    fits = into is None or into.shape != result.shape or (into.dtype == result.dtype and into.flags.c_contiguous)
    if into is not None and not fits:  # as NumPy
        raise failure(
            ValueError,
            "dot",
            "out is not acceptable",
            expected=f"a dense row-major ndarray of {result.dtype}",
            got=f"dtype {into.dtype} and strides {into.strides}",
            fix=f"create it by np.empty({result.shape}, np.{result.dtype})",
        )
    return deliver("dot", result, into)


@implements(np.inner)
def _inner(a: ArrayLike, b: ArrayLike) -> Operand:
    x, y = as_operand("inner", a), as_operand("inner", b)
    if x.ndim == 0 or y.ndim == 0:
        return np.multiply(x, y)
    return tensordot_over("inner", x, y, (x.ndim - 1,), (y.ndim - 1,))


@implements(np.vdot)
def _vdot(a: ArrayLike, b: ArrayLike) -> Array:
    x, y = as_operand("vdot", a), as_operand("vdot", b)
    if x.size != y.size:
        raise failure(
            ValueError,
            "vdot",
            "the operands differ in their number of elements",
            expected="equal ones",
            got=f"shapes {tuple(x.shape)} and {tuple(y.shape)}",
            fix="slice or reshape one of them",
        )
    if x.shape != y.shape or not x.ndim:
        x, y = ravel(x), ravel(y)
    x = np.conjugate(x) if x.dtype.kind == "c" else x
    return tensordot_over("vdot", x, y, range(x.ndim), range(x.ndim))


@implements(np.outer)
def _outer(a: ArrayLike, b: ArrayLike, out: Out = None) -> Operand:
    a, b = ravel(as_operand("outer", a)), ravel(as_operand("outer", b))
    return deliver("outer", np.multiply(expand_dims(a, 1), expand_dims(b, 0)), out)


@implements(np.linalg.outer)
def _linalg_outer(x1: ArrayLike, x2: ArrayLike, /) -> Operand:
    for i, x in enumerate(as_operand("linalg.outer", x) for x in (x1, x2)):
        if x.ndim != 1:
            raise failure(
                ValueError,
                "linalg.outer",
                f"operand {i} is not a vector",
                expected="one dimension",
                got=f"shape {x.shape}",
                fix="use np.outer",
            )
    return _outer(x1, x2)


@implements(np.tensordot)
def tensordot(a: ArrayLike, b: ArrayLike, axes: Any = 2) -> Array:
    """Implements np.tensordot."""
    x, y = as_operand("tensordot", a), as_operand("tensordot", b)
    try:
        a_axes, b_axes = (tuple(map(operator.index, np.atleast_1d(part).tolist())) for part in axes)
    except TypeError:
        count = operator.index(axes)
        a_axes, b_axes = tuple(range(-count, 0)), tuple(range(count))
    if len(a_axes) != len(b_axes) or len(a_axes) > min(x.ndim, y.ndim):
        raise failure(
            ValueError,
            "tensordot",
            "axes does not fit the operands",
            expected="the same number of dimensions of each",
            got=f"{safe_repr(axes)} for shapes {tuple(x.shape)} and {tuple(y.shape)}",
        )
    a_axes = np.lib.array_utils.normalize_axis_tuple(a_axes, x.ndim, "axes[0]")
    b_axes = np.lib.array_utils.normalize_axis_tuple(b_axes, y.ndim, "axes[1]")
    if not a_axes:
        tall, wide = expand_dims(x, tuple(range(x.ndim, x.ndim + y.ndim))), expand_dims(y, tuple(range(x.ndim)))
        return np.multiply(tall, wide)  # type: ignore[no-any-return]
    return tensordot_over("tensordot", x, y, a_axes, b_axes)
