# SPDX-License-Identifier: Apache-2.0
"""Array's operators, and the one table of the members that Python code sets on Array."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from artifex_devices._array.methods import ArrayMethods
from artifex_devices._array.pickling import reduce_array
from artifex_devices._base.checks import failure
from artifex_devices._core import Array

_OPERAND_TYPES = (Array, np.ndarray, np.generic, int, float, complex, list, tuple)
_elementwise: Callable[..., Any] | None = None


def _call(ufunc: np.ufunc, *inputs: Any) -> Any:
    """Calls a ufunc without NumPy's dispatch, for operands that need no check."""
    global _elementwise
    if _elementwise is None:
        from artifex_devices._array_ops.elementwise.ufuncs import elementwise

        _elementwise = elementwise
    return _elementwise(ufunc, inputs, {})


def _unsupported(ufunc: np.ufunc, other: object, *, reflected: bool = False) -> Any:
    """Returns NotImplemented; raises TypeError for an array of a library that knows only NumPy's, such as torch."""
    kind = type(other)
    if hasattr(kind, "__dlpack__") and not hasattr(kind, "__array_ufunc__"):
        name = f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"
        operands = "np.asarray(other), x" if reflected else "x, np.asarray(other)"
        raise failure(
            TypeError,
            ufunc.__name__,
            f"the other operand is a {name}",
            expected="an Array, an ndarray or a number",
            fix=f"convert it: np.{ufunc.__name__}({operands})",
        )
    return NotImplemented


def _binary(ufunc: np.ufunc) -> Callable[..., Any]:
    def forward(self: Array, other: object, /) -> Any:
        kind = type(other)
        if kind is Array or kind is float or kind is int:
            return _call(ufunc, self, other)
        return ufunc(self, other) if isinstance(other, _OPERAND_TYPES) else _unsupported(ufunc, other)

    return forward


def _dispatched(ufunc: np.ufunc, *, reflected: bool = False) -> Callable[..., Any]:
    def apply(self: Array, other: object, /) -> Any:
        if not isinstance(other, _OPERAND_TYPES):
            return _unsupported(ufunc, other, reflected=reflected)
        return ufunc(other, self) if reflected else ufunc(self, other)

    return apply


_reflected = functools.partial(_dispatched, reflected=True)


def _unary(ufunc: np.ufunc) -> Callable[..., Any]:
    def apply(self: Array, /) -> Any:
        return _call(ufunc, self)

    return apply


def _power(self: Array, other: object, /) -> Any:
    """Calls np.power, element by element; `x ** 2` is np.square and `x ** 0.5` np.sqrt, as for ndarrays."""
    kind = type(other)
    if kind is int and other == 2:
        return _call(np.square, self)
    if kind is float and other == 0.5 and self.dtype.kind in "fc":
        return _call(np.sqrt, self)
    return np.power(self, other) if isinstance(other, _OPERAND_TYPES) else _unsupported(np.power, other)


_ARITHMETIC = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "divmod": np.divmod,
    "pow": np.power,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
}
_COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNARY = {"neg": np.negative, "pos": np.positive, "invert": np.invert, "abs": np.absolute}


def _operators() -> dict[str, Callable[..., Any]]:
    """Returns the operators by method name."""
    named: dict[str, Callable[..., Any]] = {}
    for prefix, ufuncs, function_of in (
        ("", _ARITHMETIC, _binary),
        ("r", _ARITHMETIC, _reflected),
        ("", _COMPARISONS, _dispatched),
        ("", _UNARY, _unary),
    ):
        for name, ufunc in ufuncs.items():
            named[f"__{prefix}{name}__"] = method = function_of(ufunc)
            method.__doc__ = f"Calls np.{ufunc.__name__}, element by element."
    named.update(__pow__=_power, __matmul__=_dispatched(np.matmul), __rmatmul__=_reflected(np.matmul))
    for name, method in named.items():  # for the type stub
        method.__annotations__["return"] = "tuple[Array, Array]" if "divmod" in name else "Array"
    return named


_MEMBERS: dict[str, Any] = {
    **_operators(),
    "conj": ArrayMethods.conjugate,
    **{name: member for name, member in vars(ArrayMethods).items() if callable(member) or isinstance(member, property)},
    "__reduce__": reduce_array,
}

for _name, _member in _MEMBERS.items():
    if not isinstance(_member, property):
        _member.__name__, _member.__qualname__ = _name, f"Array.{_name}"
    setattr(Array, _name, _member)
