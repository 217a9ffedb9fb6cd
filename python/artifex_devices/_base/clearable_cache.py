# SPDX-License-Identifier: Apache-2.0
"""Bounded caches that `clear_caches` empties, because their entries keep meshes and worlds alive."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable, MutableMapping
from typing import Any, TypeVar

_Result = TypeVar("_Result")
_Mapping = TypeVar("_Mapping", bound=MutableMapping[Any, Any])

_ENTRIES = 256
_WORLDS = 4

_clear: list[Callable[[], None]] = []


def clearable_cache(maxsize: int) -> Callable[[Callable[..., _Result]], functools._lru_cache_wrapper[_Result]]:
    """Decorates a function with a functools.lru_cache that clear_caches empties."""

    def decorate(function: Callable[..., _Result]) -> functools._lru_cache_wrapper[_Result]:
        cached = functools.lru_cache(maxsize=maxsize)(function)
        _clear.append(cached.cache_clear)
        return cached

    return decorate


def clearable(mapping: _Mapping) -> _Mapping:
    """Registers the mapping for clear_caches, and returns it; the owner limits its size."""
    _clear.append(mapping.clear)
    return mapping


def remember(cache: MutableMapping[Any, _Result], key: object, value: _Result) -> _Result:
    """Stores the value in a cache of at most 256 entries, which is emptied when it is full, and returns the value."""
    if len(cache) >= _ENTRIES:
        cache.clear()
    cache[key] = value
    return value


class WorldCache(dict[Any, _Result]):
    """A cache of values that keep worlds alive: at most 256 entries, of the 4 latest worlds.

    `clear_caches` empties it while it exists. Threads may use it at once: each step on a dict is atomic, and there is
    no lock that a forked child could find taken.
    """

    def __init__(self) -> None:
        super().__init__()
        self._keys_by_world: dict[Hashable, list[Any]] = {}
        number = id(self)
        _world_caches[number] = weakref.ref(self, lambda _: _world_caches.pop(number, None))

    def remember(self, world: Hashable, key: object, value: _Result) -> _Result:
        """Stores the value as an entry of a world, and returns it."""
        if len(self) >= _ENTRIES:
            self.clear()
        if world not in self._keys_by_world:
            for old in list(self._keys_by_world)[: 1 - _WORLDS]:
                for each in self._keys_by_world.pop(old, ()):
                    self.pop(each, None)
        self[key] = value
        self._keys_by_world.setdefault(world, []).append(key)
        return value

    def clear(self) -> None:
        """Removes all entries."""
        self._keys_by_world.clear()
        super().clear()


_world_caches: dict[int, weakref.ref[WorldCache[Any]]] = {}


def clear_all() -> None:
    """Empties all caches."""
    for clear in _clear:
        clear()
    for reference in list(_world_caches.values()):
        cache = reference()
        if cache is not None:
            cache.clear()
