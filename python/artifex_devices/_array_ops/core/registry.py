# SPDX-License-Identifier: Apache-2.0
"""The implementations of NumPy's ufuncs and functions on Arrays, which the families register."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
REFUSALS: dict[Any, str] = {}
UFUNCS: dict[Any, Callable[..., Any]] = {}  # by ufunc with core dimensions, or by the name of a method of all ufuncs


def implements(*functions: Any) -> Callable[[_F], _F]:
    """Registers the implementation of NumPy functions, which takes their arguments."""

    def register(implementation: _F) -> _F:
        FUNCTIONS.update(dict.fromkeys(functions, implementation))
        return implementation

    return register


def implements_each(*functions: Any) -> Callable[[_F], _F]:
    """Registers the implementation of a family of NumPy functions; its first argument is the function."""

    def register(implementation: _F) -> _F:
        for function in functions:
            FUNCTIONS[function] = functools.partial(implementation, function)
        return implementation

    return register


def refuses(because: str, *functions: Any) -> None:
    """Registers the reason why NumPy functions do not support Arrays."""
    REFUSALS.update(dict.fromkeys(functions, because))


def implements_ufunc(*keys: Any) -> Callable[[_F], _F]:
    """Registers f(ufunc, inputs, options) for ufuncs with core dimensions, or for a method such as "reduce" of all."""

    def register(implementation: _F) -> _F:
        UFUNCS.update(dict.fromkeys(keys, implementation))
        return implementation

    return register
