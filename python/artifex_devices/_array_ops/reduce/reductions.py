# SPDX-License-Identifier: Apache-2.0
"""Sums, products, extremes and counts: ufunc.reduce and the functions built on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._array_ops.core.arguments import (
    array_operand,
    check_reduction_out,
    host_target,
    loop_dtype,
    normal_axes,
    refuse_bool_axis,
    where_mask,
)
from artifex_devices._array_ops.core.blocks import PIECE_BYTES
from artifex_devices._array_ops.core.dispatch import implements, implements_method
from artifex_devices._array_ops.reduce.partials import READ_BYTES, Part, Rule, State, reduce_parts
from artifex_devices._base.clearable_cache import remembered
from artifex_devices._core import Array

_KINDS: dict[Any, str] = {np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min"}


@remembered(maxsize=256)
def folds(ufunc: np.ufunc, dtype: np.dtype[Any], work: np.dtype[Any] | None) -> bool:
    """Whether the core reduces this dtype by `ufunc`; `work` is the dtype to compute in, None for its own."""
    if ufunc not in _KINDS or dtype.name not in ("float16", "bfloat16"):
        return False
    exact = ufunc in (np.maximum, np.minimum)  # in float32 as in the dtype itself
    return work == np.float32 or (exact and work in (None, dtype))


def fold(ufunc: np.ufunc, block: NDArray[Any], axes: tuple[int, ...]) -> Any:
    """ufunc.reduce(block, axis=axes, keepdims=True) in float32, where `folds` says so.

    Blocks that are not row-major, or that have nothing to reduce, take NumPy's way.
    """
    if not axes or not block.size or not block.flags.c_contiguous:
        return ufunc.reduce(block, axis=axes, dtype=np.float32, keepdims=True)
    first = last = axes[-1]
    while first - 1 in axes:
        first -= 1
    folded: Any = np.empty([1 if first <= d <= last else size for d, size in enumerate(block.shape)], np.float32)
    _core._fold(_KINDS[ufunc], block, first, last + 1, folded)
    rest = tuple(axis for axis in axes if axis < first)
    return ufunc.reduce(folded, axis=rest, keepdims=True) if rest else folded


def widened(block: NDArray[Any]) -> NDArray[Any]:
    """Floats of 16 bits as new float32; other blocks, and those that are not row-major, as they are."""
    if block.dtype.name not in ("float16", "bfloat16") or not block.flags.c_contiguous:
        return block
    wide = np.empty(block.shape, np.float32)
    _core._widen(block, wide)
    return wide


_UNSET: Any = np._NoValue

# Partial results of these can be joined; the others must see a whole dimension.
ASSOCIATIVE = frozenset(
    {
        np.add,
        np.multiply,
        np.maximum,
        np.minimum,
        np.fmax,
        np.fmin,
        np.logical_and,
        np.logical_or,
        np.logical_xor,
        np.bitwise_and,
        np.bitwise_or,
        np.bitwise_xor,
        np.gcd,
        np.lcm,
        np.hypot,
        np.logaddexp,
        np.logaddexp2,
    }
)


@remembered(maxsize=256)
def wide_dtype(dtype: Any) -> Any:
    """The dtype to add up in: float32 for floats of 16 bits and less, else the same."""
    kind = np.dtype(dtype)
    return np.dtype(np.float32) if kind.name.startswith(("float", "bfloat")) and kind.itemsize < 4 else kind


@remembered(maxsize=1024)
def _reduced_dtype(ufunc: np.ufunc, kind: Any, dtype: Any, ndim: int, axes: tuple[int, ...]) -> Any:
    """What NumPy answers; it raises what NumPy raises for dtypes or axes that it does not reduce."""
    with np.errstate(all="ignore"):
        sample: Any = ufunc.reduce(np.ones((1,) * ndim, kind), axis=axes, dtype=dtype)
    return sample.dtype


@implements_method("reduce")
def _reduce_method(ufunc: np.ufunc, inputs: Any, options: dict[str, Any]) -> Any:
    return reduce_ufunc(ufunc, inputs[0], **{"axis": 0, **options})


def reduce_ufunc(
    ufunc: np.ufunc,
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = _UNSET,
    where: Any = True,
    name: str = "",
    *,
    prepare: Callable[[Any], Any] | None = None,
    check: Callable[[Any], None] | None = None,
) -> Any:
    """ufunc.reduce: cut dimensions that are reduced become whole.

    Args:
        ufunc: With two operands and one result.
        x: The operand.
        axis: A dimension, several, or None for all.
        dtype: To compute in and of the result; None is NumPy's choice, in which `out` takes part.
        out: An ndarray to bring the result to.
        keepdims: Whether reduced dimensions stay with size 1.
        initial: What to begin with.
        where: A mask that broadcasts to x.
        name: For errors.
        prepare: What is done to each part first; it keeps shape and dtype.
        check: Sees each part of the result.

    Raises:
        ShardingTypeError: The ufunc is not associative and the dimension is cut (a ValueError).
        ValueError: Nothing to reduce and no identity; axes as NumPy says.
        TypeError: NumPy has no loop; out is no ndarray.
    """
    operation = name or f"{ufunc.__name__}.reduce"
    x = array_operand(operation, x)
    if axis is not None:
        refuse_bool_axis(operation, axis)
    axes = normal_axes(axis, x.ndim)
    into = None if out is None else host_target(operation, out)
    dtype = None if dtype is None else np.dtype(dtype)
    if into is not None:
        check_reduction_out(ufunc.reduce, x.dtype, x.ndim, axes, bool(keepdims), into.dtype, (("dtype", dtype),))
        dtype = loop_dtype(ufunc, x.dtype, into.dtype) if dtype is None else dtype
    result = _reduced_dtype(ufunc, x.dtype, dtype, x.ndim, axes)
    work = wide_dtype(result) if ufunc in (np.add, np.multiply) else dtype
    masked = where is not True
    extras = (where_mask(operation, where),) if masked else ()
    given = initial is not _UNSET and initial is not None
    if given:
        kind = result if work is None else work
        initial = np.asarray(initial, kind if isinstance(initial, (bool, int, float, complex)) else None).astype(kind)
    has_identity = ufunc.identity is not None and initial is not None
    if not has_identity and not given:
        _check_not_empty(operation, ufunc, x, axes, masked)
    options: dict[str, Any] = {"axis": axes, "dtype": work, "keepdims": True}
    if given and not has_identity:
        options["initial"] = initial  # harmless more than once: these are idempotent or see it all at once

    of_x = x.dtype
    is_folded = of_x.itemsize == 2 and not masked and "initial" not in options and folds(ufunc, of_x, work)

    def local(part: Part) -> State:
        block = part.block if prepare is None else prepare(part.block)
        if is_folded:
            return (fold(ufunc, block, axes),)
        if masked:
            return (ufunc.reduce(block, where=part.extras[0], **options),)
        return (ufunc.reduce(block, **options),)

    def combine(a: State, b: State) -> State:
        return (ufunc(a[0], b[0]),)

    def finish(state: State) -> State:
        value = ufunc(initial, state[0]) if given and has_identity else state[0]
        if check is not None:
            check(value)
        return (value.astype(result, copy=False),)

    piece_bytes = READ_BYTES if prepare is None and not masked else PIECE_BYTES
    rule = Rule(local, combine, finish, ufunc in ASSOCIATIVE, piece_bytes=piece_bytes)
    return reduce_parts(operation, x, axes, (result,), rule, keepdims=keepdims, extras=extras, into=into)[0]


def _check_not_empty(operation: str, ufunc: np.ufunc, x: Array, axes: tuple[int, ...], masked: bool) -> None:
    if masked:
        raise ValueError(
            f"{operation}: reduction operation '{ufunc.__name__}' does not have an identity; expected initial= beside "
            "where=; give a value for what is masked"
        )
    reduced = [x.shape[d] for d in axes]
    if 0 in reduced:
        raise ValueError(
            f"{operation}: zero-size array to reduction operation {ufunc.__name__} which has no identity; expected "
            f"elements along dimensions {axes}, got shape {x.shape}; give initial="
        )


@implements(np.sum)
def sum_(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = _UNSET,
    where: Any = True,
) -> Any:
    """np.sum: floats of 16 bits are added up in float32."""
    return reduce_ufunc(np.add, a, axis, dtype, out, keepdims, initial, where, "sum")


@implements(np.prod)
def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = _UNSET,
    where: Any = True,
) -> Any:
    """np.prod: floats of 16 bits are multiplied in float32."""
    return reduce_ufunc(np.multiply, a, axis, dtype, out, keepdims, initial, where, "prod")


@implements(np.max, np.amax)
def max_(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = _UNSET, where: Any = True
) -> Any:
    """np.max: NaN wins."""
    return reduce_ufunc(np.maximum, a, axis, None, out, keepdims, initial, where, "max")


@implements(np.min, np.amin)
def min_(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = _UNSET, where: Any = True
) -> Any:
    """np.min: NaN wins."""
    return reduce_ufunc(np.minimum, a, axis, None, out, keepdims, initial, where, "min")


@implements(np.any)
def any_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    """np.any."""
    return reduce_ufunc(np.logical_or, a, axis, None if out is None else bool, out, keepdims, _UNSET, where, "any")


@implements(np.all)
def all_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    """np.all."""
    return reduce_ufunc(np.logical_and, a, axis, None if out is None else bool, out, keepdims, _UNSET, where, "all")


@implements(np.count_nonzero)
def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    x = array_operand("count_nonzero", a)
    refuse_bool_axis("count_nonzero", axis)
    axes = normal_axes(axis, x.ndim)
    rule = Rule(
        lambda part: (np.asarray(np.count_nonzero(part.block, axis=axes, keepdims=True)),),
        lambda a, b: (a[0] + b[0],),
        lambda state: state,
    )
    return reduce_parts("count_nonzero", x, axes, (np.intp,), rule, keepdims=keepdims)[0]


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    """np.ptp: both extremes in one pass."""
    x = array_operand("ptp", a)
    refuse_bool_axis("ptp", axis)
    axes = normal_axes(axis, x.ndim)
    _check_not_empty("ptp", np.maximum, x, axes, False)
    dtype = np.ptp(np.ones(1, x.dtype)).dtype

    def local(part: Part) -> State:
        if folds(np.maximum, x.dtype, None):
            return tuple(fold(extreme, part.block, axes) for extreme in (np.maximum, np.minimum))
        return tuple(extreme.reduce(part.block, axis=axes, keepdims=True) for extreme in (np.maximum, np.minimum))

    rule = Rule(
        local,
        lambda a, b: (np.maximum(a[0], b[0]), np.minimum(a[1], b[1])),
        lambda state: (np.subtract(*(extreme.astype(x.dtype, copy=False) for extreme in state)),),
    )
    into = host_target("ptp", out)
    if into is not None:
        check_reduction_out(np.ptp, x.dtype, x.ndim, axes, bool(keepdims), into.dtype)
    return reduce_parts("ptp", x, axes, (dtype,), rule, keepdims=keepdims, into=into)[0]
