# SPDX-License-Identifier: Apache-2.0
"""Public paths of classes: `__module__` names the module that users import a class from, and so do pickles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Named = TypeVar("_Named", bound="type | Callable[..., Any]")
_Function = TypeVar("_Function", bound=Callable[..., Any])


def public(module: str) -> Callable[[_Named], _Named]:
    """Returns a decorator of a class or function that sets `__module__`.

    It is the outermost decorator, as dataclasses read the defining module.
    """

    def set_path(named: _Named) -> _Named:
        named.__module__ = module
        return named

    return set_path


def unpickles(name: str) -> Callable[[_Function], _Function]:
    """Returns a decorator of a function that pickles name, as `artifex_devices.unpickle.<name>`."""

    def set_path(function: _Function) -> _Function:
        function.__module__, function.__name__, function.__qualname__ = "artifex_devices.unpickle", name, name
        return function

    return set_path
