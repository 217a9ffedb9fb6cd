# SPDX-License-Identifier: Apache-2.0
"""Attributes of public modules: dir() lists the public names, and names that are missing say what to write instead."""

from __future__ import annotations

import opcode
import sys

from artifex_devices._base.caller import user_frame


def add_public_lookup(module_name: str) -> None:
    """Gives a module `__dir__` and `__getattr__`.

    They are set here rather than written in the module, because a type checker that sees `__getattr__` accepts every
    name.
    """
    module = sys.modules[module_name]

    def list_names() -> list[str]:
        return sorted(module.__all__)

    def explain(name: str) -> None:
        raise missing_name(module_name, name)

    vars(module).update(__dir__=list_names, __getattr__=explain)


def missing_name(module_name: str, name: str) -> AttributeError | ImportError:
    """Returns the error for a name that a public module does not have."""
    if name.startswith("_"):  # Python and its tools ask for many of them
        return AttributeError(f"module {module_name!r} has no attribute {name!r}")
    from artifex_devices._base.absent_names import explained

    return lookup_error(explained(module_name, name, sys.modules[module_name].__all__))


def lookup_error(text: str) -> AttributeError | ImportError:
    """Returns the error that a module's `__getattr__` raises, as a class whose text Python shows to the user.

    It is an AttributeError, so hasattr() is False. `from module import name` replaces an AttributeError by an
    ImportError with a text of its own, but raises our ImportError unchanged. No class can derive from both.
    """
    frame = user_frame(sys._getframe())
    is_import = frame.f_code.co_code[frame.f_lasti] == opcode.opmap["IMPORT_FROM"]
    return ImportError(text) if is_import else AttributeError(text)
