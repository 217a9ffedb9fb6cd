# SPDX-License-Identifier: Apache-2.0
"""Finds global variables that several simulated processes change: real processes would each have their own."""

from __future__ import annotations

import functools
import inspect
import site
import sys
import sysconfig
from collections.abc import Callable, Collection, Iterable
from typing import Any

from artifex_devices._base.caller import PACKAGE_FOLDER

_MAX_ELEMENTS = 100  # of a list, dict or set; the elements of bigger ones are not compared


class SharedGlobals:
    """The global variables of the program's own modules, compared each time a process has run.

    A variable is changed where it is bound to another object, or where it is a list, dict or set with other elements.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        """Finds the modules: those that are not installed packages, and that of the function."""
        own = inspect.getmodule(inspect.unwrap(function))
        modules = [module for module in list(sys.modules.values()) if module is own or _is_of_program(module)]
        self._snapshots = [_Snapshot(module.__name__, vars(module)) for module in modules]
        self._writers: dict[str, set[int]] = {}

    def note(self, process: int) -> None:
        """Notes the variables that have changed since the last call, by this process."""
        for snapshot in self._snapshots:
            for name in snapshot.changes():
                self._writers.setdefault(name, set()).add(process)

    def names(self) -> tuple[str, ...]:
        """The variables that more than one process has changed, sorted."""
        return tuple(sorted(name for name, writers in self._writers.items() if len(writers) > 1))


class _Snapshot:
    """The variables of one module as they were."""

    def __init__(self, module: str, variables: dict[str, Any]) -> None:
        self._module = module
        self._variables = variables
        self._take()

    def _take(self) -> None:
        self._values = dict(self._variables)
        self._ids = _ids(self._values.values())  # unique, as the values stay alive
        self._elements = {name: list(_elements(value)) for name, value in self._values.items() if _has_elements(value)}
        self._element_ids = {name: _ids(elements) for name, elements in self._elements.items()}

    def changes(self) -> list[str]:
        """The variables that have changed since the last call, as "module.name"."""
        before = self._values
        changed = [name for name, ids in self._element_ids.items() if _ids(_elements(before[name])) != ids]
        if _ids(self._variables.values()) != self._ids:
            now, missing = dict(self._variables), object()
            names = {**before, **now}
            changed += [name for name in names if before.get(name, missing) is not now.get(name, missing)]
        if changed:
            self._take()
        return [f"{self._module}.{name}" for name in changed]


def _is_of_program(module: Any) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and not file.startswith(_installed_folders())


@functools.cache
def _installed_folders() -> tuple[str, ...]:
    standard = (sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"))
    return (PACKAGE_FOLDER, *standard, *site.getsitepackages(), site.getusersitepackages())


def _has_elements(value: Any) -> bool:
    return type(value) in (list, dict, set) and len(value) <= _MAX_ELEMENTS


def _elements(value: Any) -> Collection[Any]:
    return [*value, *value.values()] if type(value) is dict else value


def _ids(values: Iterable[Any]) -> tuple[int, ...]:
    return tuple(map(id, values))
