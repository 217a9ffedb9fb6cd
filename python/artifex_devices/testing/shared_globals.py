# SPDX-License-Identifier: Apache-2.0
"""Finds global variables that several simulated processes change: real processes would each have their own."""

from __future__ import annotations

import functools
import inspect
import site
import sys
import sysconfig
from collections.abc import Callable
from typing import Any

from artifex_devices._base.caller import PACKAGE_FOLDER
from artifex_devices._core import internal

_MAX_ELEMENTS = 100  # of a list, dict or set; the elements of bigger ones are not compared


class SharedGlobals:
    """The global variables of the program's own modules, compared each time a process has run.

    A variable is changed where it is bound to another object, or where it is a list, dict or set with other elements.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        """Finds the modules: the function's module, and modules that are not part of installed packages."""
        own = inspect.getmodule(inspect.unwrap(function))
        modules = _program_modules()
        if own is not None and own not in modules:
            modules = (*modules, own)
        self._snapshots = [_Snapshot(module.__name__, vars(module)) for module in modules]
        self._writers: dict[str, set[int]] = {}
        self._watch()

    def _watch(self) -> None:
        watched = [each for snapshot in self._snapshots for each in snapshot.watched()]
        self._containers = [container for container, _ in watched]
        self._elements = [elements for _, elements in watched]

    def note(self, process: int) -> None:
        """Notes the variables that have changed since the last call, by this process."""
        if internal.have_elements(self._containers, self._elements):
            return
        for snapshot in self._snapshots:
            for name in snapshot.changes():
                self._writers.setdefault(name, set()).add(process)
        self._watch()

    def names(self) -> tuple[str, ...]:
        """Returns the variables that more than one process has changed, sorted."""
        return tuple(sorted(name for name, writers in self._writers.items() if len(writers) > 1))


class _Snapshot:
    """The variables of one module before the run."""

    def __init__(self, module: str, variables: dict[str, Any]) -> None:
        self._module = module
        self._variables = variables
        self._take()

    def _take(self) -> None:
        self._values = dict(self._variables)
        self._elements = {name: _elements(value) for name, value in self._values.items() if _has_elements(value)}

    def watched(self) -> list[tuple[Any, tuple[Any, ...]]]:
        """Returns the containers that change where a variable changes, and their elements; they stay alive."""
        values = self._values
        return [(self._variables, _elements(values)), *((values[name], each) for name, each in self._elements.items())]

    def changes(self) -> list[str]:
        """Returns the variables that have changed since the last call, as "module.name"."""
        before, now, missing = self._values, dict(self._variables), object()
        changed = [name for name, elements in self._elements.items() if not _are_same(before[name], elements)]
        changed += [name for name in {**before, **now} if before.get(name, missing) is not now.get(name, missing)]
        self._take()
        return [f"{self._module}.{name}" for name in changed]


_loaded: tuple[Any, ...] = ()  # the modules of the last job, and the program's modules among them
_found: tuple[Any, ...] = ()


def _program_modules() -> tuple[Any, ...]:
    """Returns the loaded modules that are not installed packages; searches again where other modules are loaded."""
    global _loaded, _found
    loaded = list(sys.modules.values())
    if not internal.have_elements([loaded], [_loaded]):
        _loaded, _found = tuple(loaded), tuple(module for module in loaded if _is_of_program(module))
    return _found


def _is_of_program(module: object) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and _is_program_file(file)


@functools.lru_cache(maxsize=10_000)
def _is_program_file(file: str) -> bool:
    return not file.startswith(_installed_folders())


@functools.cache
def _installed_folders() -> tuple[str, ...]:
    standard = (sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"))
    return (PACKAGE_FOLDER, *standard, *site.getsitepackages(), site.getusersitepackages())


def _has_elements(value: Any) -> bool:
    return type(value) in (list, dict, set) and len(value) <= _MAX_ELEMENTS


def _elements(value: Any) -> tuple[Any, ...]:
    """Returns the elements as `_core.internal.have_elements` compares them."""
    return (*value, *value.values()) if type(value) is dict else tuple(value)


def _are_same(container: object, elements: tuple[Any, ...]) -> bool:
    return bool(internal.have_elements([container], [elements]))
