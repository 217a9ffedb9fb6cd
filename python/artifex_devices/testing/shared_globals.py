# SPDX-License-Identifier: Apache-2.0
"""Finds global variables that several simulated processes change: real processes would each have their own."""

from __future__ import annotations

import inspect
import site
import sys
import sysconfig
from collections.abc import Callable, Iterator
from typing import Any

from artifex_devices._base.caller import PACKAGE_FOLDER

_MAX_ELEMENTS = 1000  # of a list, dict or set that are compared


class SharedGlobals:
    """The global variables of the program's own modules, compared each time a process has run.

    A variable is changed where it is bound to another object, or where it is a list, dict or set with other elements.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        """Finds the modules: those that are not installed packages, and that of the function."""
        own = inspect.getmodule(inspect.unwrap(function))
        found = [module for module in list(sys.modules.values()) if module is own or _is_of_program(module)]
        self._modules = [(module.__name__, vars(module)) for module in found]
        self._before = [_values(variables) for _, variables in self._modules]
        self._writers: dict[str, set[int]] = {}

    def note(self, process: int) -> None:
        """Notes the variables that have changed since the last call, by this process."""
        for number, (module, variables) in enumerate(self._modules):
            before, now = self._before[number], _values(variables)
            if now.keys() == before.keys() and all(map(_is_same, before.values(), now.values())):
                continue
            self._before[number] = now
            for name in {**before, **now}:
                if name not in before or name not in now or not _is_same(before[name], now[name]):
                    self._writers.setdefault(f"{module}.{name}", set()).add(process)

    def names(self) -> tuple[str, ...]:
        """The variables that more than one process has changed, sorted."""
        return tuple(sorted(name for name, writers in self._writers.items() if len(writers) > 1))


def _is_of_program(module: Any) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and not file.startswith(tuple(_installed_folders()))


def _installed_folders() -> Iterator[str]:
    yield PACKAGE_FOLDER
    yield from (sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"))
    yield from (*site.getsitepackages(), site.getusersitepackages())


def _values(variables: dict[str, Any]) -> dict[str, list[Any]]:
    """For each variable its object and, of a container, its elements."""
    return {name: [value, *_elements(value)] for name, value in list(variables.items())}


def _elements(value: Any) -> list[Any]:
    kind = type(value)
    if kind not in (list, dict, set) or len(value) > _MAX_ELEMENTS:
        return []
    return [*value, *value.values()] if kind is dict else list(value)


def _is_same(before: list[Any], now: list[Any]) -> bool:
    return len(before) == len(now) and all(old is new for old, new in zip(before, now, strict=True))
