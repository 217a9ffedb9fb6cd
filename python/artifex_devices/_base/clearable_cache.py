# SPDX-License-Identifier: Apache-2.0
"""Bounded caches that `clear_caches` empties, because their entries keep meshes and worlds alive."""

from __future__ import annotations

import functools
from collections.abc import Callable, MutableMapping
from typing import Any, TypeVar

_Result = TypeVar("_Result")
_Mapping = TypeVar("_Mapping", bound=MutableMapping[Any, Any])

_clear: list[Callable[[], None]] = []


def clearable_cache(maxsize: int) -> Callable[[Callable[..., _Result]], functools._lru_cache_wrapper[_Result]]:
    """Decorates a function with a functools.lru_cache that clear_caches empties."""

    def decorate(function: Callable[..., _Result]) -> functools._lru_cache_wrapper[_Result]:
        cached = functools.lru_cache(maxsize=maxsize)(function)
        _clear.append(cached.cache_clear)
        return cached

    return decorate


def clearable(mapping: _Mapping) -> _Mapping:
    """Returns the mapping, which clear_caches empties from now on; its owner bounds it."""
    _clear.append(mapping.clear)
    return mapping


def remember(cache: MutableMapping[Any, _Result], key: Any, value: _Result) -> _Result:
    """Returns the value, which it stores in a cache of at most 256 entries: a full one is emptied first."""
    if len(cache) >= 256:
        cache.clear()
    cache[key] = value
    return value


def clear_all() -> None:
    """Empties all caches."""
    for clear in _clear:
        clear()
