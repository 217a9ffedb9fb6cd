# SPDX-License-Identifier: Apache-2.0
"""A call of a NumPy function on gathered Arrays, as text for a message."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array


def gathered_call(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Returns the call with np.asarray around each Array; arrays are called x, y, z, and functions by their names.

    Example:
        >>> gathered_call("apply_along_axis", (np.sum, 0, np.ones(9)), {})
        'np.apply_along_axis(np.sum, 0, x)'
    """
    names: dict[int, str] = {}
    letters = itertools.chain("xyz", map("x{}".format, itertools.count(2)))
    texts = [_text(value, names, letters) for value in args]
    texts += [f"{key}={_text(value, names, letters)}" for key, value in kwargs.items()]
    return f"np.{name}({', '.join(texts)})"


def _text(value: Any, names: dict[int, str], letters: Iterator[str]) -> str:
    if isinstance(value, (Array, np.ndarray)):
        if id(value) not in names:
            names[id(value)] = next(letters)
        return f"np.asarray({names[id(value)]})" if isinstance(value, Array) else names[id(value)]
    if type(value) in (list, tuple):
        parts = [_text(each, names, letters) for each in value]
        return f"[{', '.join(parts)}]" if type(value) is list else f"({', '.join(parts)}{',' * (len(parts) == 1)})"
    if isinstance(value, type):
        return value.__name__ if value.__module__ == "builtins" else f"np.{value.__name__}"
    if callable(value):
        label = str(getattr(value, "__name__", "f"))
        return f"np.{label}" if getattr(np, label, None) is value else label if label.isidentifier() else "f"
    return "file" if hasattr(value, "write") else safe_repr(value)
