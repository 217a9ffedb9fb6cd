# SPDX-License-Identifier: Apache-2.0
"""Errors for arguments that a function does not take, or needs: they say what to write.

A function that people call with arguments of other libraries declares `**_unknown: NoReturn`, which costs less than a
wrapper, and raises `unknown_argument` where there are any. `@hides_unknown` keeps them out of its signature.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


def hides_unknown(function: _Function) -> _Function:
    """Returns the function, without `**_unknown` in its signature."""
    shown = inspect.signature(function)
    named = [each for each in shown.parameters.values() if each.kind is not each.VAR_KEYWORD]
    function.__signature__ = shown.replace(parameters=named)  # type: ignore[attr-defined]
    return function


def unknown_argument(operation: str, unknown: Mapping[str, object]) -> TypeError:
    """Returns the error of the calling function for keyword arguments that it does not have."""
    from artifex_devices._base.argument_hints import text_for_unknown

    code = sys._getframe(1).f_code
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return TypeError(text_for_unknown(operation, next(iter(unknown)), [name for name in known if name != "self"]))


def missing_argument(operation: str, name: str) -> TypeError:
    """Returns the error for an argument that the caller left out."""
    from artifex_devices._base.argument_hints import text_for_missing

    return TypeError(text_for_missing(operation, name))
