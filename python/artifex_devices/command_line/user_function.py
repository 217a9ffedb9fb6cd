# SPDX-License-Identifier: Apache-2.0
"""Functions of the user's own, named on the command line: `module:function` or `file.py:function`.

Names that lead to no function are UsageErrors.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from artifex_devices.command_line.console import UsageError

_FORM = "write module:function or path/to/file.py:function"


def split_name(text: str) -> tuple[str, str]:
    """Returns the part before the last colon and the part behind it."""
    place, _, name = text.rpartition(":")
    if not place or not name:
        raise UsageError(f"{text!r} names no function; {_FORM}")
    return place, name


def load_function(place: str, name: str) -> Callable[..., Any]:
    """Imports a module, or runs a file as one, and takes a function out of it.

    Modules are found on Python's path, without the current folder; to run a file of it, pass the file's path. The
    file's own imports are searched in its folder first, as when Python runs it. Exceptions of the module's import are
    raised unchanged. Dots in the name lead into classes and objects.
    """
    module = _run_file(place) if place.endswith(".py") else _import_module(place)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            there = sorted(each for each, value in vars(module).items() if callable(value) and not each.startswith("_"))
            listed = f"it has {', '.join(there[:20])}" if there else "it has no functions"
            raise UsageError(f"{place!r} has no {name!r}; {listed}")
        found = getattr(found, part)
    if not callable(found):
        raise UsageError(f"{place}:{name} is of type {type(found).__name__} and cannot be called; name a function")
    return found  # type: ignore[no-any-return]


def _import_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # A module that the user's own one misses is an error of that one.
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise
        raise UsageError(
            f"there is no module {error.name!r} where Python looks for modules; {_FORM}, or set PYTHONPATH"
        ) from None
    except (TypeError, ValueError) as error:  # "", ".name"
        raise UsageError(f"{name!r} is not a module's name ({error}); {_FORM}") from None


@functools.cache
def _run_file(place: str) -> ModuleType:
    path = Path(place).absolute()
    if not path.is_file():
        raise UsageError(f"there is no file {place!r}; {_FORM}")
    try:
        path.open("rb").close()
    except OSError as error:
        raise UsageError(f"{place!r} cannot be read ({error.strerror or error}); name a file that can be") from None
    # A module name that is not taken: a file train.py must not stand for an installed module train.
    name = path.stem if path.stem not in sys.modules else f"_{path.stem}_of_the_command_line"
    spec: Any = importlib.util.spec_from_file_location(name, path)  # never None for a name that ends in .py
    module = importlib.util.module_from_spec(spec)
    # Before it runs: dataclasses and pickles look their module up.
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, SystemExit):
            raise UsageError(
                f"{place!r} ended the program while it was imported; put the code of the program under "
                'if __name__ == "__main__":'
            ) from None
        raise
    return module
