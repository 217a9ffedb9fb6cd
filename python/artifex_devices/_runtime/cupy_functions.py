# SPDX-License-Identifier: Apache-2.0
"""CuPy's functions for NumPy's, with replacements where CuPy lacks a function or takes other arguments."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

MOVE = 'move the Array: device_put(x, devices("cpu")[0])'
_REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "fmax": "nanmax",
    "fmin": "nanmin",
    "logical_and": "all",
    "logical_or": "any",
}
SCANS = {"add": "cumsum", "multiply": "cumprod"}
# Reduced by halves, because CuPy cannot reduce by these functions. They are associative.
_FOLDED = {"bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "hypot", "lcm", "logaddexp", "logaddexp2", "logical_xor"}
# Functions that CuPy lacks, of its module and their operands.
_COMPOSED: dict[str, Callable[..., Any]] = {
    "vecdot": lambda cupy, a, b: (a.conj() * b).sum(axis=-1),
    "matvec": lambda cupy, a, b: cupy.matmul(a, b[..., None])[..., 0],
    "vecmat": lambda cupy, a, b: cupy.matmul(a.conj()[..., None, :], b)[..., 0, :],
    "svdvals": lambda cupy, a: cupy.linalg.svd(a, compute_uv=False),
}
_SORTS = (np.sort, np.argsort)  # CuPy's are stable for every kind=


@functools.cache
def library(name: str) -> Any:
    """Returns CuPy or a module of it, which was imported when the first array of it was made."""
    return importlib.import_module(name)


def reduce_array(
    ufunc: np.ufunc,
    x: Any,
    *,
    axis: Any = 0,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    initial: Any = np._NoValue,
    where: Any = True,
) -> Any:
    """Implements ufunc.reduce for a CuPy array."""
    cupy = library("cupy")
    combine = function_of(ufunc)
    has_initial = initial is not np._NoValue and initial is not None
    if where is not True:
        kind = ufunc.reduce(np.ones(1, x.dtype), dtype=dtype).dtype
        start = cupy.asarray(initial if has_initial else ufunc.identity, kind)
        x = cupy.where(where, x.astype(kind, copy=False), start)
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    name = _REDUCTIONS.get(ufunc.__name__)
    if not axes:
        made = x.astype(ufunc.reduce(np.ones(1, x.dtype), dtype=dtype).dtype)
    elif not x.size and has_initial:  # CuPy has no `initial`, and extremes of nothing are errors
        made = cupy.full([1 if d in axes else size for d, size in enumerate(x.shape)], initial, dtype or x.dtype)
        made = made if keepdims else made.squeeze(axes)
    elif name is not None:
        takes_dtype = name in ("sum", "prod")
        if dtype is not None and not takes_dtype and name not in ("all", "any"):
            x = x.astype(dtype, copy=False)
        made = getattr(cupy, name)(x, axis=axes, keepdims=keepdims, **({"dtype": dtype} if takes_dtype else {}))
    elif ufunc.__name__ not in _FOLDED:
        raise unsupported(f"{ufunc.__name__}.reduce")
    else:
        made = _fold(combine, x if dtype is None else x.astype(dtype, copy=False), axes, keepdims)
    return combine(made, initial) if has_initial else made


def _fold(combine: Callable[..., Any], x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Combines the halves of each dimension until one element is left."""
    for d in axes:
        before = (slice(None),) * (d % x.ndim)
        while x.shape[d] > 1:
            half = x.shape[d] // 2
            last = x[(*before, slice(2 * half, None))]
            x = combine(x[(*before, slice(half))], x[(*before, slice(half, 2 * half))])
            x = library("cupy").concatenate((x, last), d) if last.size else x
    return x if keepdims else x.squeeze(axes)


def function_of(ufunc: np.ufunc, method: str = "", name: str | None = "") -> Callable[..., Any]:
    """Returns CuPy's function for a ufunc, or for a method of it, for which CuPy has a function of another name."""
    if name is None:
        raise unsupported(f"{ufunc.__name__}.{method}")
    return function_named(name or ufunc.__name__)


def function_named(name: str, module: str = "") -> Callable[..., Any]:
    """Returns CuPy's function with the name of one of NumPy's, in the module of the same name."""
    if name in _COMPOSED:
        return functools.partial(_COMPOSED[name], library("cupy"))
    try:
        folder = functools.reduce(getattr, module.split(".")[1:], library("cupy"))
        function: Callable[..., Any] = getattr(folder, name)
    except AttributeError:
        raise unsupported(name) from None
    return function


def unsupported(name: str) -> TypeError:
    """Returns the error for a function that CuPy does not have."""
    return TypeError(f"{name}: CuPy has no such function; expected a function of CuPy, or host memory; {MOVE}")


def is_left_out(function: object, name: str, value: object) -> bool:
    """Returns whether a named argument is NumPy's default, which CuPy may not know by name, or is handled here."""
    is_handled = name == "out" or (function in _SORTS and name in ("kind", "stable"))
    return is_handled or value is _defaults(function).get(name, inspect.Parameter.empty)


@functools.cache
def _defaults(function: Any) -> dict[str, Any]:
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # of a function in C
        return {}
    return {name: parameter.default for name, parameter in parameters.items()}
