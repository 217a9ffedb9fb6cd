# SPDX-License-Identifier: Apache-2.0
"""Array's operators and NumPy protocols; what they do is in `array_ops`, loaded at the first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from artifex_devices._array import indexing as array_parts
from artifex_devices._array import pickling as pickled_arrays
from artifex_devices._array import reductions as _reduction_methods  # noqa: F401 - gives Array sum, mean and their kind
from artifex_devices._array import shapes as array_shapes
from artifex_devices._core import Array

__all__: list[str] = []


def _array_ufunc(self: Array, ufunc: Any, method: str, /, *inputs: Any, **options: Any) -> Any:
    """Ufuncs: each shard is worked on where it lies (guide: NumPy on Arrays)."""
    from artifex_devices._array_ops.core.dispatch import call_ufunc

    return call_ufunc(ufunc, method, inputs, options)


def _array_function(self: Array, function: Any, types: Any, args: Any, kwargs: Any, /) -> Any:
    """NumPy functions: those of the guide's table; others raise TypeError with the explicit way."""
    from artifex_devices._array_ops.core.dispatch import call_function

    return call_function(function, types, args, kwargs)


_OPERAND_TYPES = (Array, np.ndarray, np.generic, int, float, complex, list, tuple)
_quick: Callable[..., Any] | None = None


def _call(ufunc: np.ufunc, *inputs: Any) -> Any:
    global _quick
    if _quick is None:
        from artifex_devices._array_ops.elementwise.ufuncs import elementwise

        _quick = elementwise
    return _quick(ufunc, inputs, {})


def _binary(name: str, ufunc: np.ufunc) -> None:
    elementwise = ufunc.signature is None

    def forward(self: Array, other: Any, /) -> Any:
        kind = type(other)
        if elementwise and (kind is Array or kind is float or kind is int):
            return _call(ufunc, self, other)
        return ufunc(self, other) if isinstance(other, _OPERAND_TYPES) else NotImplemented

    def reflected(self: Array, other: Any, /) -> Any:
        return ufunc(other, self) if isinstance(other, _OPERAND_TYPES) else NotImplemented

    for method, prefix in ((forward, "__"), (reflected, "__r")):
        method.__name__ = f"{prefix}{name}__"
        method.__qualname__ = f"Array.{method.__name__}"
        method.__doc__ = f"np.{ufunc.__name__}, element by element."
        setattr(Array, method.__name__, method)


def _power(self: Array, other: Any, /) -> Any:
    """np.power, element by element; `x ** 2` is np.square and `x ** 0.5` np.sqrt, as for ndarrays."""
    kind = type(other)
    if kind is int and other == 2:
        return _call(np.square, self)
    if kind is float and other == 0.5 and self.dtype.kind in "fc":
        return _call(np.sqrt, self)
    return np.power(self, other) if isinstance(other, _OPERAND_TYPES) else NotImplemented


def _comparison(name: str, ufunc: np.ufunc) -> None:
    def compare(self: Array, other: Any, /) -> Any:
        return ufunc(self, other) if isinstance(other, _OPERAND_TYPES) else NotImplemented

    compare.__name__ = f"__{name}__"
    compare.__qualname__ = f"Array.{compare.__name__}"
    compare.__doc__ = f"np.{ufunc.__name__}, element by element."
    setattr(Array, compare.__name__, compare)


def _unary(name: str, ufunc: np.ufunc) -> None:
    def apply(self: Array, /) -> Any:
        return _call(ufunc, self)

    apply.__name__ = f"__{name}__"
    apply.__qualname__ = f"Array.{apply.__name__}"
    apply.__doc__ = f"np.{ufunc.__name__}, element by element."
    setattr(Array, apply.__name__, apply)


def _attach() -> None:
    for name, ufunc in {
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
        "matmul": np.matmul,
    }.items():
        _binary(name, ufunc)
    _power.__name__ = "__pow__"
    _power.__qualname__ = "Array.__pow__"
    Array.__pow__ = _power  # type: ignore[method-assign]
    for name, ufunc in {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }.items():
        _comparison(name, ufunc)
    for name, ufunc in {"neg": np.negative, "pos": np.positive, "invert": np.invert, "abs": np.absolute}.items():
        _unary(name, ufunc)
    Array.__array_ufunc__ = _array_ufunc  # type: ignore[assignment,method-assign]
    Array.__array_function__ = _array_function  # type: ignore[assignment,method-assign]
    array_parts.attach()
    array_shapes.attach()
    pickled_arrays.attach()


_attach()
