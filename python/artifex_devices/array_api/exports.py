# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions as attributes of the namespaces of the Array API: those that take Arrays, and no others."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np

from artifex_devices._array_ops.core import dispatch
from artifex_devices.array_api.moving import moving

__all__ = ["find", "names"]


def find(module: str, source: ModuleType, name: str) -> Any:
    """The function `name` of NumPy's module `source`, which stays in the namespace `module` afterwards.

    Functions that are not ufuncs move Arrays whose sharding is in the way.

    Raises:
        AttributeError: There is no such function, or it does not take Arrays; the text gives the explicit way.
    """
    function: Any = vars(source).get(name)
    if _supports(function):
        found = function if isinstance(function, np.ufunc) else moving(function)
        setattr(sys.modules[module], name, found)
        return found
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
    """The names of all functions of NumPy's module `source` that take Arrays."""
    return [name for name, value in list(vars(source).items()) if not name.startswith("_") and _supports(value)]


def _supports(function: Any) -> bool:
    # What takes part in NumPy's dispatch has its undispatched form as `_implementation`.
    return (hasattr(function, "_implementation") or isinstance(function, np.ufunc)) and dispatch.supports(function)
