# SPDX-License-Identifier: Apache-2.0
"""Signatures of the classes and functions that pybind11 binds, from the stubs of the extensions."""

import ast
import copy
import functools
from pathlib import Path

from type_names import linked

PACKAGE = Path(__file__).resolve().parents[1] / "python" / "artifex_devices"


def signature_of(path):
    """Returns the texts of arguments and result of a bound function, method or constructor.

    The arguments are without `self`.

    Args:
        path: Name in the extension, such as "live_arrays", "Mesh.update" or "Mesh.__init__".

    Raises:
        KeyError: The stubs have no such function.
    """
    definition = definitions()[path]
    arguments = copy.deepcopy(definition.args)
    for argument in ast.walk(arguments):
        if isinstance(argument, ast.arg) and argument.annotation:
            argument.annotation = ast.Name(linked(ast.unparse(argument.annotation), {}))
    arguments.args = [argument for argument in arguments.args if argument.arg not in ("self", "cls")]
    returned = linked(ast.unparse(definition.returns), {}) if definition.returns else None
    return f"({ast.unparse(arguments)})", returned


@functools.cache
def definitions():
    """Functions of the stubs by path."""
    stubs = [
        (PACKAGE / name).read_text(encoding="utf-8")
        for name in ("_core/__init__.pyi", "_core/internal.pyi", "_planner.pyi")
    ]
    body = [part for stub in stubs for part in ast.parse(stub).body]
    scopes = [("", body), *((f"{part.name}.", part.body) for part in body if isinstance(part, ast.ClassDef))]
    return {prefix + part.name: part for prefix, body in scopes for part in body if isinstance(part, ast.FunctionDef)}
