# SPDX-License-Identifier: Apache-2.0
"""Changes of exceptions that the user's code may have raised. Each must reach the caller, even if its class misbehaves.

A class may refuse attributes, as a frozen dataclass does. The functions here bypass the class to set attributes and to
add notes, and never raise: an exception that cannot be changed stays unchanged.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Generic, ParamSpec, TypeVar

_Value = TypeVar("_Value")
_Parameters = ParamSpec("_Parameters")


def set_attribute(error: BaseException, name: str, value: object) -> None:
    """Sets an attribute such as args."""
    with contextlib.suppress(Exception):
        BaseException.__setattr__(error, name, value)


def copy_of(error: BaseException) -> BaseException:
    """Returns a copy of an exception for one of several threads that raise it, or the exception if it has no copies.

    An exception stores where it was raised last. Threads that raise the same one at once can crash the free-threaded
    build of Python 3.13.
    """
    names = ["__traceback__", "__cause__", "__context__", "__suppress_context__"]  # copy.copy leaves these out
    try:
        names += ["strerror"] if isinstance(error, OSError) else []
        copied = copy.copy(error)
        for name in names:
            set_attribute(copied, name, BaseException.__getattribute__(error, name))
        return copied if type(copied) is type(error) and str(copied) == str(error) else error
    except Exception:
        return error


def add_note(error: BaseException, note: str) -> None:
    """Adds a note after the exception's existing notes."""
    with contextlib.suppress(Exception):
        notes = getattr(error, "__notes__", ())
        BaseException.__setattr__(error, "__notes__", [*notes, note])


def context_manager(
    function: Callable[_Parameters, Generator[_Value, None, None]],
) -> Callable[_Parameters, ContextOf[_Value]]:
    """Does what contextlib.contextmanager does, but does not set __traceback__ of exceptions that pass through."""

    @functools.wraps(function)
    def create(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> ContextOf[_Value]:
        return ContextOf(function(*args, **kwargs))

    return create


class ContextOf(Generic[_Value]):
    """The context of a generator that yields once; exceptions are raised where it yields."""

    def __init__(self, generator: Generator[_Value, None, None]) -> None:
        self._generator = generator

    def __enter__(self) -> _Value:
        return next(self._generator)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            next(self._generator, None)
            return
        try:
            self._generator.throw(error)
        except BaseException as raised:
            if raised is not error and raised.__cause__ is not error:  # the cause: a StopIteration in a generator
                raise
