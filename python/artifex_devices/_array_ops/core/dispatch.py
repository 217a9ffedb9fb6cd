# SPDX-License-Identifier: Apache-2.0
"""Dispatch of NumPy's ufuncs and functions on Arrays: from the implementations that the families register."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from artifex_devices._array_ops.core.arguments import masked_array_error, operand
from artifex_devices._array_ops.core.auto_axes import call_on_host
from artifex_devices._array_ops.core.gathered_call import (
    call_on_copy,
    call_without_out,
    gathered_call,
    updated_copy,
)
from artifex_devices._array_ops.core.registry import FUNCTIONS, REFUSALS, UFUNCS
from artifex_devices._array_ops.elementwise.ufuncs import elementwise, elementwise_into
from artifex_devices._base.checks import failure
from artifex_devices._core import Array

# The functions that change an argument, and its name; all others return their result.
_CHANGED = {
    np.copyto: "dst",
    np.fill_diagonal: "a",
    np.place: "arr",
    np.put: "a",
    np.put_along_axis: "arr",
    np.putmask: "a",
}
_NONE_COUNTS = ("axis", "initial")  # options of a ufunc's methods for which None is not the default


def call_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Does the work of `Array.__array_ufunc__`."""
    name = ufunc.__name__
    if method == "at":
        if isinstance(inputs[0], Array):
            raise _change_error(f"{name}.at", updated_copy(ufunc, inputs))
        return call_on_host(f"{name}.at", ufunc.at, inputs, options, _unsupported(f"{name}.at", inputs, {}))
    if _has_array(options.get("out")):
        _load()
        raise _out_error(name if method == "__call__" else f"{name}.{method}", ufunc, inputs, options)
    inputs = [operand(name, x) for x in inputs]
    options = {key: value for key, value in options.items() if value is not None or key in _NONE_COUNTS}
    if options.get("order", "K") not in ("K", "C") or "subok" in options:
        raise failure(
            TypeError,
            name,
            "order and subok have no meaning on Arrays",
            expected="order 'K' or 'C'",
            got=options,
            fix="leave them out",
        )
    options.pop("order", None)
    _load()
    if method != "__call__":
        if method not in UFUNCS:
            full_name = f"{name}.{method}"
            refusal = _unsupported(full_name, inputs, options)
            return call_on_host(full_name, getattr(ufunc, method), inputs, options, refusal)
        return UFUNCS[method](ufunc, inputs, options)
    if ufunc.signature is not None:
        if ufunc not in UFUNCS:
            return call_on_host(name, ufunc, inputs, options, _unsupported(name, inputs, options))
        return UFUNCS[ufunc](ufunc, inputs, options)
    if "out" in options or "where" in options:
        return elementwise_into(ufunc, inputs, options)
    return elementwise(ufunc, inputs, options)


def call_function(function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
    """Does the work of `Array.__array_function__`."""
    _load()
    if function in _CHANGED:
        target = args[0] if args else kwargs.get(_CHANGED[function])
        if isinstance(target, Array):
            raise _change_error(_name_of(function), call_on_copy(_name_of(function), target, args, kwargs))
    if _has_array(kwargs.get("out")):
        raise _out_error(_name_of(function), function, args, kwargs)
    for kind in types:
        if kind is not Array and kind is not np.ndarray and issubclass(kind, np.ma.MaskedArray):
            raise masked_array_error(_name_of(function), "an argument")
    if function not in FUNCTIONS:
        name = _name_of(function)
        refusal = _unsupported(name, args, kwargs, REFUSALS.get(function, _UNSUPPORTED))
        return call_on_host(name, function, args, kwargs, refusal)
    return FUNCTIONS[function](*args, **kwargs)


def supports(function: object) -> bool:
    """Returns whether a NumPy function or ufunc supports Arrays."""
    _load()
    if isinstance(function, np.ufunc):
        return function.signature is None or function in UFUNCS
    return function in FUNCTIONS


_UNSUPPORTED = "this NumPy function does not support Arrays"


def _unsupported(name: str, args: Sequence[Any], kwargs: dict[str, Any], because: str = _UNSUPPORTED) -> TypeError:
    return TypeError(f"{name}: {because}; expected NumPy arrays; gather first: {gathered_call(name, args, kwargs)}")


def _has_array(out: object) -> bool:
    """Returns whether the argument out= is an Array, or a tuple with one."""
    return any(isinstance(each, Array) for each in (out if isinstance(out, tuple) else (out,)))


def _out_error(name: str, function: object, args: Sequence[Any], kwargs: dict[str, Any]) -> TypeError:
    """Returns the error for out= with an Array."""
    is_elementwise = isinstance(function, np.ufunc) and "." not in name and function.signature is None
    repair = call_without_out(name, args, kwargs, is_supported=supports(function), is_elementwise=is_elementwise)
    is_alone = not isinstance(function, np.ufunc) and not any(isinstance(x, Array) for x in args)
    subject = "the operand is not an Array, and out" if is_alone else "out"
    return TypeError(
        f"{name}: {subject} is not an ndarray; Arrays are immutable: expected an ndarray to write the result to, "
        f"got an Array; use the result: {repair}"
    )


def _change_error(name: str, repair: str) -> TypeError:
    """Returns the error for a function that would change an Array."""
    return failure(
        TypeError,
        name,
        "not supported on Arrays, which are immutable",
        expected="an ndarray",
        got="an Array",
        fix=f"change a copy: {repair}",
    )


def _name_of(function: Callable[..., Any]) -> str:
    """Formats the name of a function, such as `linalg.inv`."""
    module = getattr(function, "__module__", None) or ""
    return f"{module.removeprefix('numpy').lstrip('.')}.{function.__name__}".lstrip(".")


_FAMILIES = {
    "core": ("introspection",),
    "elementwise": ("functions", "lookups"),
    "index": ("insertion", "searching", "sorting", "taking"),
    "linalg": ("einsum", "factorizations", "fourier", "matrix_products"),
    "reduce": ("norms", "positions", "reductions", "scans", "statistics"),
    "shape": ("creation", "diagonals", "joining", "rearranging", "reshaping"),
}


@functools.cache
def _load() -> None:
    """Imports the families; each registers its implementations."""
    for folder, families in _FAMILIES.items():
        for family in families:
            importlib.import_module(f"artifex_devices._array_ops.{folder}.{family}")
