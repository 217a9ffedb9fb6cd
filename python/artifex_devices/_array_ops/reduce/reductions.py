# SPDX-License-Identifier: Apache-2.0
"""Sums, products, extremes and counts: ufunc.reduce and the functions built on it.

float16 and bfloat16 are reduced by the core's loops, which add up in float32 at the speed of memory; sums and products
of large blocks of other real numbers as `totals` does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

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
from artifex_devices._array_ops.core.registry import implements, implements_each, implements_ufunc
from artifex_devices._array_ops.reduce.exact_sums import (
    combined,
    exact_results,
    exact_rule,
    is_rounded,
    rounded,
    value_states,
)
from artifex_devices._array_ops.reduce.partials import READ_BYTES, Part, Rule, State, reduce_parts
from artifex_devices._array_ops.reduce.reproducible import is_reproducible
from artifex_devices._array_ops.reduce.totals import LEAST_BYTES, totals, totals_dtype
from artifex_devices._base.argument_types import Axes, Operand, Out
from artifex_devices._base.caller import warn_user
from artifex_devices._base.checks import failure
from artifex_devices._base.clearable_cache import clearable_cache
from artifex_devices._core import Array, internal
from artifex_devices._runtime.gpu_block import host_copy, host_value, is_gpu_block

_UNSET: Any = np._NoValue
_FOLDS: dict[Any, str] = {np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min"}

# Partial results of these functions can be combined; other functions must see a whole dimension. fmt: off
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
# fmt: on


@clearable_cache(maxsize=256)
def folds(ufunc: np.ufunc, dtype: np.dtype[Any], work: np.dtype[Any] | None) -> bool:
    """Returns whether the core reduces this dtype by `ufunc`; `work` is the dtype to compute in, None for its own."""
    if ufunc not in _FOLDS or dtype.name not in ("float16", "bfloat16"):
        return False
    exact = ufunc in (np.maximum, np.minimum)  # in float32 as in the dtype itself
    return work == np.float32 or (exact and work in (None, dtype))


def fold(ufunc: np.ufunc, block: NDArray[Any], axes: tuple[int, ...]) -> Any:
    """Calls ufunc.reduce(block, axis=axes, keepdims=True) in float32, for a ufunc and a dtype that `folds` accepts."""
    if is_gpu_block(block) or not axes or not block.size or not block.flags.c_contiguous:
        return ufunc.reduce(block, axis=axes, dtype=np.float32, keepdims=True)
    first = last = axes[-1]
    while first - 1 in axes:
        first -= 1
    folded: Any = np.empty([1 if first <= d <= last else size for d, size in enumerate(block.shape)], np.float32)
    internal.fold(_FOLDS[ufunc], block, first, last + 1, folded)
    rest = tuple(axis for axis in axes if axis < first)
    return ufunc.reduce(folded, axis=rest, keepdims=True) if rest else folded


def widened(block: NDArray[Any]) -> NDArray[Any]:
    """Returns 16-bit floats as new row-major float32; other blocks unchanged."""
    if block.dtype.name not in ("float16", "bfloat16") or is_gpu_block(block) or not block.flags.c_contiguous:
        return block
    wide = np.empty(block.shape, np.float32)
    internal.widen(block, wide)
    return wide


@clearable_cache(maxsize=256)
def wide_dtype(dtype: DTypeLike | None) -> Any:
    """Returns the dtype to add up in: float32 for floats of 16 bits and less, else the same."""
    kind = np.dtype(dtype)
    return np.dtype(np.float32) if kind.name.startswith(("float", "bfloat")) and kind.itemsize < 4 else kind


@clearable_cache(maxsize=1024)
def _reduced_dtype(ufunc: np.ufunc, kind: Any, dtype: DTypeLike | None, ndim: int, axes: tuple[int, ...]) -> Any:
    """Returns NumPy's dtype of the result; raises NumPy's error for dtypes or axes that it does not reduce."""
    with np.errstate(all="ignore"):
        sample: Any = ufunc.reduce(np.ones((1,) * ndim, kind), axis=axes, dtype=dtype)
    return sample.dtype


@implements_ufunc("reduce")
def _reduce_method(ufunc: np.ufunc, inputs: Any, options: dict[str, Any]) -> Any:
    return reduce_ufunc(ufunc, inputs[0], **{"axis": 0, **options})


def reduce_ufunc(
    ufunc: np.ufunc,
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: Out = None,
    keepdims: bool = False,
    initial: Any = _UNSET,
    where: bool | ArrayLike = True,
    name: str = "",
    *,
    prepare: Callable[[Any], Any] | None = None,
    check: Callable[[Any], None] | None = None,
) -> Any:
    """Implements ufunc.reduce: the result is replicated over the mesh axes of the dimensions that are reduced.

    The arguments are NumPy's; `name` is the operation in errors. `prepare` is applied to each block first and keeps its
    shape and dtype. `check` is called with each block of the result.
    """
    operation = name or f"{ufunc.__name__}.reduce"
    x = array_operand(operation, a)
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
    has_initial = initial is not _UNSET and initial is not None
    if has_initial:
        kind = result if work is None else work
        initial = np.asarray(initial, kind if isinstance(initial, (bool, int, float, complex)) else None).astype(kind)
    has_identity = ufunc.identity is not None and initial is not None
    if not has_identity and not has_initial:
        _check_not_empty(operation, ufunc, x, axes, masked)
    if ufunc is np.add and is_reproducible() and is_rounded(result):
        first = initial if has_initial else None
        rule = _exact_sum(axes, result, dtype, prepare, masked, first)
        return reduce_parts(operation, x, axes, (result,), rule, keepdims=keepdims, extras=extras, into=into)[0]
    options: dict[str, Any] = {"axis": axes, "dtype": work, "keepdims": True}
    if has_initial and not has_identity:
        options["initial"] = initial  # harmless in each block: the functions are idempotent, or the Array has one block

    of_x = x.dtype
    is_plain = not masked and "initial" not in options
    is_folded = is_plain and of_x.itemsize == 2 and folds(ufunc, of_x, work)
    kind = _FOLDS.get(ufunc, "") if is_plain and x.nbytes >= LEAST_BYTES else ""
    wide = totals_dtype(kind, of_x, work) if kind else None

    def local(part: Part) -> State:
        block = part.block if prepare is None else prepare(part.block)
        if is_folded:
            return (fold(ufunc, block, axes),)
        if wide is not None and (total := totals(kind, block, axes, wide)) is not None:
            return (total,)
        if masked:
            return (ufunc.reduce(block, where=part.extras[0], **options),)
        return (ufunc.reduce(block, **options),)

    def combine(a: State, b: State) -> State:
        return (ufunc(a[0], b[0]),)

    def finish(state: State) -> State:
        value = ufunc(initial, state[0]) if has_initial and has_identity else state[0]
        if check is not None:
            check(value)
        return (value.astype(result, copy=False),)

    piece_bytes = READ_BYTES if prepare is None and not masked else PIECE_BYTES
    rule = Rule(local, combine, finish, ufunc in ASSOCIATIVE, piece_bytes=piece_bytes)
    return reduce_parts(operation, x, axes, (result,), rule, keepdims=keepdims, extras=extras, into=into)[0]


def _exact_sum(
    axes: tuple[int, ...], result: Any, dtype: Any, prepare: Callable[[Any], Any] | None, masked: bool, initial: Any
) -> Rule:
    """Returns the rule of an exact sum, rounded once to `result`; elements are converted to `dtype` first, if any."""

    def local(part: Part) -> State:
        block = host_copy(part.block) if prepare is None else prepare(host_copy(part.block))
        if masked:
            block = np.where(host_value(part.extras[0]), block, np.zeros((), block.dtype))
        return value_states(block if dtype is None else block.astype(dtype, copy=False), axes)

    def finish(states: State) -> State:
        if initial is not None:
            states = combined(states, value_states(initial.reshape((1,) * (states[0].ndim - 1)), ()))
        return (rounded(states, result),)

    def whole(parts: list[Part]) -> State | None:
        found = exact_results("value", parts, axes, result)
        return None if found is None else (found,)

    if prepare is not None or masked or dtype is not None:
        return exact_rule(local, finish, PIECE_BYTES)
    return exact_rule(local, finish, READ_BYTES, whole if initial is None else None)


def _check_not_empty(operation: str, ufunc: np.ufunc, x: Array, axes: tuple[int, ...], masked: bool) -> None:
    if masked:
        raise failure(
            ValueError,
            operation,
            f"reduction operation '{ufunc.__name__}' does not have an identity",
            expected="initial= together with where=",
            fix="give a value for masked elements",
        )
    if 0 in [x.shape[d] for d in axes]:
        raise failure(
            ValueError,
            operation,
            f"zero-size array to reduction operation {ufunc.__name__} which has no identity",
            expected=f"elements along dimensions {axes}",
            got=f"shape {x.shape}",
            fix="give initial=",
        )


def _fill_nan(value: float, block: Any) -> Any:
    """Returns the block with a value in place of NaN."""
    if block.dtype.kind in "biu":
        return block
    missing = np.isnan(block)
    return np.where(missing, np.asarray(value, block.dtype), block) if missing.any() else block


def _warn_about_nan(operation: str, value: Any) -> None:
    if value.dtype.kind not in "biu" and np.isnan(value).any():
        warn_user(f"{operation}: All-NaN slice encountered", RuntimeWarning)


for _function, _ufunc, _prepare in (
    (np.sum, np.add, None),
    (np.prod, np.multiply, None),
    (np.nansum, np.add, functools.partial(_fill_nan, 0)),
    (np.nanprod, np.multiply, functools.partial(_fill_nan, 1)),
):
    implements(_function)(functools.partial(reduce_ufunc, _ufunc, name=_function.__name__, prepare=_prepare))


def _extreme(
    ufunc: np.ufunc,
    name: str,
    a: ArrayLike,
    axis: Axes = None,
    out: Out = None,
    keepdims: bool = False,
    initial: Any = _UNSET,
    where: bool | ArrayLike = True,
) -> Any:
    check = functools.partial(_warn_about_nan, name) if name.startswith("nan") else None
    return reduce_ufunc(ufunc, a, axis, None, out, keepdims, initial, where, name, check=check)


implements(np.max, np.amax)(functools.partial(_extreme, np.maximum, "max"))
implements(np.min, np.amin)(functools.partial(_extreme, np.minimum, "min"))
implements(np.nanmax)(functools.partial(_extreme, np.fmax, "nanmax"))
implements(np.nanmin)(functools.partial(_extreme, np.fmin, "nanmin"))


@implements_each(np.any, np.all)
def _test(
    function: Callable[..., Any],
    a: ArrayLike,
    axis: Axes = None,
    out: Out = None,
    keepdims: bool = False,
    *,
    where: bool | ArrayLike = True,
) -> Any:
    ufunc = np.logical_or if function is np.any else np.logical_and
    dtype = None if out is None else bool  # as NumPy, whatever the dtype of out
    return reduce_ufunc(ufunc, a, axis, dtype, out, keepdims, where=where, name=function.__name__)


@implements(np.count_nonzero)
def _count_nonzero(a: ArrayLike, axis: Axes = None, *, keepdims: bool = False) -> Operand:
    x = array_operand("count_nonzero", a)
    refuse_bool_axis("count_nonzero", axis)
    axes = normal_axes(axis, x.ndim)

    def local(part: Part) -> State:
        if is_gpu_block(part.block):  # CuPy has no keepdims here
            return (np.add.reduce(part.block != 0, axis=axes, dtype=np.intp, keepdims=True),)
        return (np.count_nonzero(part.block, axis=axes, keepdims=True),)

    rule = Rule(
        local,
        lambda a, b: (a[0] + b[0],),
        lambda state: state,
    )
    return reduce_parts("count_nonzero", x, axes, (np.intp,), rule, keepdims=keepdims)[0]


@implements(np.ptp)
def _ptp(a: ArrayLike, axis: Axes = None, out: Out = None, keepdims: bool = False) -> Operand:
    """Implements np.ptp: both extremes in one pass."""
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
