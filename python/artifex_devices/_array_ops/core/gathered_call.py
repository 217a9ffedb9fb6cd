# SPDX-License-Identifier: Apache-2.0
"""Calls of NumPy functions as text, for the end of a message: code with the effect of the refused call.

Arrays and ndarrays are called x, y, z in these texts, and functions by their names.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array

# The ufuncs whose method `at` has the same meaning as a method of x.at[index].
_UPDATES = {
    np.add: "add",
    np.subtract: "subtract",
    np.multiply: "multiply",
    np.true_divide: "divide",
    np.power: "power",
    np.minimum: "min",
    np.maximum: "max",
}


def gathered_call(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Returns the call with np.asarray around each Array.

    Example:
        >>> gathered_call("apply_along_axis", (np.sum, 0, np.ones(9)), {})
        'np.apply_along_axis(np.sum, 0, x)'
    """
    return _Names(gathers=True).call(name, args, kwargs)


def call_on_copy(name: str, target: Array, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Returns statements that call a function on a copy of `target`, the argument that it changes, and place the copy.

    Example:
        >>> import artifex_devices as ad
        >>> x = ad.device_put(np.ones(3))
        >>> call_on_copy("put", x, (x, 0, 5.0), {})
        'h = np.array(x); np.put(h, 0, 5.0); x = ad.device_put(h, x.sharding)'
    """
    names = _Names(gathers=True, copied=target)
    return f"h = np.array(x); {names.call(name, args, kwargs)}; x = ad.device_put(h, x.sharding)"


def updated_copy(ufunc: np.ufunc, inputs: Sequence[Any]) -> str:
    """Returns a statement that replaces ufunc.at(x, indices, values).

    Example:
        >>> import artifex_devices as ad
        >>> updated_copy(np.add, (ad.device_put(np.ones(3)), [0, 1], 2.0))
        'x = x.at[[0, 1]].add(2.0)'
    """
    if ufunc not in _UPDATES:
        return call_on_copy(f"{ufunc.__name__}.at", inputs[0], inputs, {})
    names = _Names(gathers=False)
    x, index, *values = map(names.text, inputs)
    return f"{x} = {x}.at[{index}].{_UPDATES[ufunc]}({', '.join(values)})"


def call_without_out(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, is_supported: bool, is_elementwise: bool
) -> str:
    """Returns a statement that assigns the result of the call instead of writing it to its argument `out`.

    An element-wise call with where= does not change the other elements of `out`.
    """
    left_out = ("out", "where") if is_elementwise else ("out",)
    names = _Names(gathers=not is_supported)
    call = names.call(name, args, {key: value for key, value in kwargs.items() if key not in left_out})
    outs = kwargs["out"] if isinstance(kwargs["out"], tuple) else (kwargs["out"],)
    targets = [names.name(out) for out in outs]
    if is_elementwise and kwargs.get("where", True) is not True and len(targets) == 1:
        return f"{targets[0]} = np.where({names.text(kwargs['where'])}, {call}, {targets[0]})"
    if not is_supported or not names.has_arrays:  # the result is an ndarray
        call = f"ad.device_put({call}, {targets[0]}.sharding)"
    return f"{', '.join(targets)} = {call}"


class _Names:
    """Names of the arrays in one text."""

    def __init__(self, *, gathers: bool, copied: Array | None = None) -> None:
        """`gathers` puts np.asarray around Arrays; the Array `copied` is called h, as its copy."""
        self._gathers = gathers
        self._copied = copied
        self._names: dict[int, str] = {}
        self._letters = itertools.chain("xyz", map("x{}".format, itertools.count(2)))
        self.has_arrays = False  # whether the text has an Array
        if copied is not None:
            self.name(copied)  # x

    def name(self, array: object) -> str:
        """Returns the letter of an array."""
        if id(array) not in self._names:
            self._names[id(array)] = next(self._letters)
        return self._names[id(array)]

    def call(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """Formats a call of np.name."""
        texts = [self.text(value) for value in args]
        texts += [f"{key}={self.text(value)}" for key, value in kwargs.items()]
        return f"np.{name}({', '.join(texts)})"

    def text(self, value: Any) -> str:
        """Formats an argument."""
        if isinstance(value, Array):
            self.has_arrays = True
            if value is self._copied:
                return "h"
            return f"np.asarray({self.name(value)})" if self._gathers else self.name(value)
        if isinstance(value, np.ndarray):
            return self.name(value)
        if type(value) in (list, tuple):
            parts = ", ".join(map(self.text, value))
            return f"[{parts}]" if type(value) is list else f"({parts}{',' * (len(value) == 1)})"
        if isinstance(value, float) and not math.isfinite(value):
            return f"float({str(value)!r})"
        if isinstance(value, np.dtype):
            return repr(str(value))
        if isinstance(value, type):
            return value.__name__ if value.__module__ == "builtins" else f"np.{value.__name__}"
        if callable(value):
            label = str(getattr(value, "__name__", "f"))
            return f"np.{label}" if getattr(np, label, None) is value else label if label.isidentifier() else "f"
        return "file" if hasattr(value, "write") else safe_repr(value)
