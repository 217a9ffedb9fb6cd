# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions that support Arrays, as attributes of the namespaces of the Array API."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np

from artifex_devices._array_ops.core import dispatch


def find(module: str, source: ModuleType, name: str) -> Any:
    """Finds the function `name` of NumPy's module `source`, and makes it an attribute of the namespace `module`.

    Raises:
        AttributeError: There is no such function, or it does not support Arrays; the text says how to gather first.
    """
    function: Any = vars(source).get(name)
    if _supports(function):
        setattr(sys.modules[module], name, function)
        return function
    short = f"array_api{source.__name__.removeprefix('numpy')}"
    if not name.startswith("_") and (hasattr(function, "_implementation") or isinstance(function, np.ufunc)):
        full_name = f"{source.__name__}.{name}".replace("numpy", "np")
        raise AttributeError(
            f"{short}.{name}: not supported on Arrays; expected a function of dir({short}), got {name!r}; gather "
            f"first: {full_name}(np.asarray(x))",
            name=name,
        )
    raise AttributeError(f"module {short!r} has no attribute {name!r}", name=name)


def names(source: ModuleType) -> list[str]:
    """Returns the names of all functions of NumPy's module `source` that support Arrays."""
    return [name for name, value in list(vars(source).items()) if not name.startswith("_") and _supports(value)]


def _supports(function: object) -> bool:
    # Functions that NumPy dispatches have an attribute `_implementation`.
    return (hasattr(function, "_implementation") or isinstance(function, np.ufunc)) and dispatch.supports(function)
