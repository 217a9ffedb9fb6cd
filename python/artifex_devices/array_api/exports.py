# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions as attributes of the namespaces of the Array API: those that support Arrays.

Code written for all array libraries cannot call reshard. So where a sharding over Auto axes prevents a function, these
functions replicate the Array, as in JAX; NumPy's own functions raise.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from artifex_devices._array_ops.core import dispatch
from artifex_devices._array_ops.core.operand_sharding import any_explicit, sharding_with, spec_of
from artifex_devices._base.caller import warn_user
from artifex_devices._core import Array, internal
from artifex_devices.errors import ShardingTypeError


def find(module: str, source: ModuleType, name: str) -> Any:
    """Finds the function `name` of NumPy's module `source`, and makes it an attribute of the namespace `module`.

    Functions that are not ufuncs replicate Arrays whose sharding they do not support.

    Raises:
        AttributeError: There is no such function, or it does not support Arrays; the text says how to gather first.
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
    """Returns the names of all functions of NumPy's module `source` that support Arrays."""
    return [name for name, value in list(vars(source).items()) if not name.startswith("_") and _supports(value)]


def _supports(function: object) -> bool:
    # Functions that NumPy dispatches have an attribute `_implementation`.
    return (hasattr(function, "_implementation") or isinstance(function, np.ufunc)) and dispatch.supports(function)


_F = TypeVar("_F", bound=Callable[..., Any])


def moving(function: _F) -> _F:
    """Wraps a function so that it replicates its Arrays and runs again if their sharding is not supported.

    A UserWarning gives the number of bytes.

    Raises:
        ShardingTypeError: An Array is sharded over Explicit axes, or copy=False (a ValueError).
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except ShardingTypeError as error:
            moved: list[Array] = []
            replicated = [_replicated(x, moved) for x in (*args, *kwargs.values())]
            if not moved or kwargs.get("copy") is False:
                raise
            warn_user(
                f"array_api: {sum(x.nbytes for x in moved)} bytes in {len(moved)} Arrays are replicated on each device "
                f"of their mesh, because their sharding is not supported: {error}"
            )
        return function(*replicated[: len(args)], **dict(zip(kwargs, replicated[len(args) :], strict=True)))

    return call  # type: ignore[return-value]


def _replicated(x: Any, moved: list[Array]) -> Any:
    """Replicates the Arrays of an argument; those that were sharded over Auto axes are appended to `moved`."""
    if type(x) in (list, tuple):
        return type(x)(_replicated(part, moved) for part in x)
    if not isinstance(x, Array):
        return x
    spec = spec_of(x)
    if x.is_fully_replicated or any(any_explicit(x.sharding, axes) for axes in spec):
        return x
    moved.append(x)
    return internal.moved(x, sharding_with(x.sharding, ()), x.committed)
