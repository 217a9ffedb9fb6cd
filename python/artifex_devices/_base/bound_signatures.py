# SPDX-License-Identifier: Apache-2.0
"""Signatures of the classes and functions that pybind11 binds, from the stub of the extension.

pybind11 writes signatures into docstrings, where `inspect.signature` does not find them. The stub has the same
signatures with simpler types. It is read at the first question, not at import.
"""

from __future__ import annotations

import ast
import collections.abc
import functools
import inspect
import typing
from pathlib import Path
from typing import Any

from artifex_devices import _core

_STUB = Path(__file__).parents[1] / "_core.pyi"


def signature_of(path: str) -> inspect.Signature:
    """Returns the signature of a bound function, method or constructor.

    Args:
        path: Name in the extension, such as "live_arrays", "Mesh.update" or "Mesh.__init__". Methods have `self`.

    Raises:
        KeyError: The stub has no such function.
    """
    definition = _definitions()[path]
    namespace = {"typing": typing, "collections": collections, **vars(_core)}
    exec(compile(ast.Module([definition], []), _STUB.name, "exec"), namespace)
    signature = inspect.signature(namespace[definition.name])
    parameters = [_without_any(parameter) for parameter in signature.parameters.values()]
    return signature.replace(parameters=parameters)


def _without_any(parameter: inspect.Parameter) -> inspect.Parameter:
    """The parameter without the annotation Any, which adds nothing."""
    return parameter.replace(annotation=inspect.Parameter.empty) if parameter.annotation == "typing.Any" else parameter


@functools.cache
def _definitions() -> dict[str, ast.FunctionDef]:
    """Functions of the stub by path, ready to be compiled."""
    module = ast.parse(_STUB.read_text(encoding="utf-8"))
    scopes = [("", module.body)]
    scopes += [(f"{part.name}.", part.body) for part in module.body if isinstance(part, ast.ClassDef)]
    found = {}
    for prefix, body in scopes:
        for part in body:
            if isinstance(part, ast.FunctionDef):
                part.decorator_list = []
                found[prefix + part.name] = part
    return found


class _ConstructorSignature:
    """The attribute `__signature__` of a bound class.

    Subclasses, instances and classes that programs cannot construct do not have it.
    """

    def __init__(self, owner: type) -> None:
        self._owner = owner

    def __get__(self, instance: Any, owner: type) -> inspect.Signature:
        path = f"{owner.__name__}.__init__"
        if instance is not None or owner is not self._owner or path not in _definitions():
            raise AttributeError("__signature__")
        signature = signature_of(path)
        parameters = list(signature.parameters.values())[1:]
        return signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)


def _attach() -> None:
    for value in vars(_core).values():
        if isinstance(value, type) and not issubclass(value, BaseException) and "__init__" in vars(value):
            value.__signature__ = _ConstructorSignature(value)  # type: ignore[attr-defined]


_attach()
