# SPDX-License-Identifier: Apache-2.0
"""NumPy's element-wise functions that are not ufuncs: where, clip, round, astype, allclose and others; ufunc.outer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy._core import umath
from numpy.typing import ArrayLike, DTypeLike, NDArray

from artifex_devices._array_ops.core.arguments import check_order, deliver, host_target, operand, replicated_array
from artifex_devices._array_ops.core.operand_sharding import OperandDevices, any_explicit, common_devices, spec_of
from artifex_devices._array_ops.core.reading import SCALARS
from artifex_devices._array_ops.core.registry import implements, implements_each, implements_ufunc
from artifex_devices._array_ops.elementwise.ufuncs import elementwise, map_elements
from artifex_devices._array_ops.index.searching import nonzero
from artifex_devices._array_ops.shape.reshaping import expand_dims
from artifex_devices._base.argument_types import Operand, Out
from artifex_devices._base.checks import failure
from artifex_devices._core import Array, internal
from artifex_devices._runtime.gpu_block import is_gpu_block
from artifex_devices.errors import ShardingTypeError

_SELECT_BYTES = 64 << 10  # from this size on the core selects: NumPy's copies under a mask branch at each element
_STREAM_BYTES = 4 << 20  # from this size on results bypass the cache
_UNSET: Any = np._NoValue


def _samples(inputs: Sequence[Any]) -> list[Any]:
    """Returns empty operands of the same dtypes, to find the dtype of the result."""
    return [x if type(x) in SCALARS else np.ones(1, x.dtype)[:0] for x in inputs]


def _map(operation: str, function: Callable[..., Any], *inputs: Any, dtype: DTypeLike | None = None) -> Array:
    """Calls a NumPy function without `out` element by element; without `dtype` NumPy decides on it."""
    inputs = tuple(operand(operation, x) for x in inputs)
    dtype = function(*_samples(inputs)).dtype if dtype is None else np.dtype(dtype)

    def compute(outputs: Sequence[Any], parts: Sequence[Any]) -> None:
        np.copyto(outputs[0], function(*parts))

    result: Array = map_elements(operation, compute, inputs, (dtype,))[0]
    return result


def _dense(part: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Prepares a choice for the core: dense and in the shape of the result, or one number."""
    return part if part.ndim == 0 else np.require(np.broadcast_to(part, shape), requirements=("C", "A"))


@implements(np.where)
def where(condition: ArrayLike, *choices: Any) -> Any:
    """Implements np.where with three operands, sharded as an element-wise result; with one operand it is np.nonzero."""
    if not choices:
        return nonzero(condition)
    if len(choices) != 2:
        raise ValueError("where: either both or neither of x and y should be given; expected 1 or 3 operands, got 2")
    inputs = [operand("where", x) for x in (condition, *choices)]
    dtype = np.where(*_samples(inputs)).dtype
    inputs[1:] = [np.asarray(x).astype(dtype) if type(x) is int else x for x in inputs[1:]]  # wraps around, as in NumPy
    stream = sum(x.nbytes for x in inputs if isinstance(x, Array)) >= _STREAM_BYTES

    def compute(outputs: Sequence[Any], parts: Sequence[Any]) -> None:
        out = outputs[0]
        if is_gpu_block(out):
            out[...] = np.where(*(np.asarray(part) if type(part) in SCALARS else part for part in parts))
            return
        chosen = np.broadcast_to(np.asarray(parts[0], bool), out.shape)
        if out.nbytes < _SELECT_BYTES or not out.flags.c_contiguous:
            np.copyto(out, parts[2])
            np.copyto(out, parts[1], where=chosen)
            return
        one, other = (_dense(np.asarray(part, dtype), out.shape) for part in parts[1:])
        internal.select(out, np.require(chosen, requirements=("C", "A")), one, other, stream)

    result: Array = map_elements("where", compute, inputs, (dtype,))[0]
    return result


@implements(np.clip)
def clip(
    a: ArrayLike,
    a_min: Any = _UNSET,
    a_max: Any = _UNSET,
    out: Out = None,
    *,
    min: Any = _UNSET,
    max: Any = _UNSET,
    **options: Any,
) -> Any:
    """Implements np.clip, also with min= and max=: one call of NumPy's ufunc, which decides on the dtype."""
    if a_min is _UNSET and a_max is _UNSET:
        a_min, a_max = (None if bound is _UNSET else bound for bound in (min, max))
    elif a_min is _UNSET or a_max is _UNSET:
        missing = "a_min" if a_min is _UNSET else "a_max"
        raise TypeError(f"clip: {missing} is missing; expected both bounds or neither; give {missing}=None for none")
    elif min is not _UNSET or max is not _UNSET:
        raise failure(
            ValueError,
            "clip",
            "there are two pairs of bounds",
            expected="a_min and a_max, or min and max",
            fix="leave one pair out",
        )
    x = a if isinstance(a, (Array, np.ndarray)) else np.asarray(a)
    if x.dtype.isbuiltin == 2 and a_min is not None and a_max is not None:  # of ml_dtypes: NumPy widens them to float32
        return np.minimum(np.maximum(x, a_min, **options), a_max, out=out, **options)
    if x.dtype.kind in "iu":  # as NumPy: Python ints that limit nothing are left out, others must fit the dtype
        range_of = np.iinfo(x.dtype)
        a_min = None if type(a_min) is int and a_min <= range_of.min else a_min
        a_max = None if type(a_max) is int and a_max >= range_of.max else a_max
    if a_min is None:
        return np.positive(x, out=out, **options) if a_max is None else np.minimum(x, a_max, out=out, **options)
    if a_max is None:
        return np.maximum(x, a_min, out=out, **options)
    return umath.clip(x, a_min, a_max, out=out, **options)  # type: ignore[attr-defined]


@implements(np.round, np.around)
def round_(a: ArrayLike, decimals: int = 0, out: Out = None) -> Operand:
    """Implements np.round."""
    target = host_target("round", out)
    if target is None:
        return _map("round", lambda part: np.round(part, decimals), a)
    x = operand("round", a)
    np.round(np.ones(1, x.dtype)[:0], decimals, out=np.empty(0, target.dtype))  # raises what NumPy raises

    def compute(outputs: Sequence[Any], parts: Sequence[Any]) -> None:  # the dtype of out matters
        np.round(parts[0], decimals, out=outputs[0])

    return map_elements("round", compute, [x], (target.dtype,), into=(target,))[0]


@implements_each(np.real, np.imag, np.isreal, np.iscomplex, np.isposinf, np.isneginf)
def _unary(function: Callable[..., Any], *args: Any, out: Out = None, **named: Any) -> Operand:
    x, *rest = (*args, *named.values())  # NumPy calls the operand x, val or something else
    operation = function.__name__
    return deliver(operation, _map(operation, function, x), rest[0] if rest else out)


@implements(np.angle)
def _angle(z: ArrayLike, deg: bool = False) -> Array:
    return _map("angle", lambda part: np.angle(part, deg), z)


@implements(np.nan_to_num)
def _nan_to_num(
    x: ArrayLike, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Array:
    return _map("nan_to_num", lambda part: np.nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf), x)


@implements(np.isclose)
def _isclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    return _map("isclose", lambda x, y: np.isclose(x, y, rtol, atol, equal_nan), a, b, dtype=bool)


@implements(np.copy)
def _copy(a: ArrayLike, order: str = "K", subok: bool = False) -> Array:
    check_order("copy", order)
    return _map("copy", np.copy, a)


def _cast(outputs: Sequence[Any], parts: Sequence[Any]) -> None:
    outputs[0][...] = parts[0]


@implements(np.astype)
def astype(x: Array, dtype: DTypeLike | None, /, *, copy: bool = True, device: Any = None) -> Array:
    """Implements np.astype: each device converts its own shard; then the result is moved to `device`, unless None."""
    target = np.dtype(dtype)
    same = not copy and target == x.dtype
    result = x if same else map_elements("astype", _cast, [x], (target,))[0]
    if device is None:
        return result
    moved: Array = result.to_device(device)  # raises for other types
    return moved


@implements(np.allclose)
def _allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Any:
    return np.all(np.isclose(a, b, rtol, atol, equal_nan))


@implements(np.array_equal)
def _array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Any:
    one, two = operand("array_equal", a1), operand("array_equal", a2)
    if np.shape(one) != np.shape(two):
        return _false("array_equal", one, two)
    return _all_equal("array_equal", one, two, equal_nan)


@implements(np.array_equiv)
def _array_equiv(a1: ArrayLike, a2: ArrayLike) -> Any:
    one, two = operand("array_equiv", a1), operand("array_equiv", a2)
    try:
        np.broadcast_shapes(np.shape(one), np.shape(two))
    except ValueError:
        return _false("array_equiv", one, two)
    return _all_equal("array_equiv", one, two, False)


def _all_equal(operation: str, one: Any, two: Any, equal_nan: bool) -> Any:
    equal = np.equal(one, two)
    if equal_nan:
        equal = np.logical_or(equal, np.logical_and(np.not_equal(one, one), np.not_equal(two, two)))
    return np.all(equal)


def _false(operation: str, one: Any, two: Any) -> Array:
    devices = common_devices(operation, [x for x in (one, two) if isinstance(x, Array)])
    return replicated_array(operation, np.asarray(False), devices)


@implements_ufunc("outer")
def _outer(ufunc: np.ufunc, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Implements ufunc.outer; the result is sharded as both operands are."""
    operation = f"{ufunc.__name__}.outer"
    if "out" in options or "where" in options:
        raise failure(
            TypeError,
            operation,
            "out and where are not supported on Arrays",
            expected="neither",
            got=sorted(options),
            fix="use the result",
        )
    operands = [x if isinstance(x, Array) else np.asarray(x) for x in inputs]
    ufunc.outer(*(np.ones(0, x.dtype) for x in operands), **options)  # raises what NumPy raises
    one, two = operands
    if isinstance(one, Array) and isinstance(two, Array) and OperandDevices(one.sharding, True).shares_mesh(two):
        used = {name for names in spec_of(one) for name in names}
        for names in spec_of(two):
            if used.intersection(names) and any_explicit(two.sharding, names):
                raise failure(
                    ShardingTypeError,
                    operation,
                    f"both operands are sharded over {names}, which can shard only one dimension of the result",
                    expected="different Explicit axes",
                    got=f"shapes {one.shape} and {two.shape}",
                    fix="move one first: ad.reshard(y, ad.NamedSharding(y.sharding.mesh, ad.P()))",
                )
    wider = expand_dims(one, tuple(range(one.ndim, one.ndim + two.ndim)))
    return elementwise(ufunc, (wider, two), options)
