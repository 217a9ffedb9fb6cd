# SPDX-License-Identifier: Apache-2.0
"""What was worked out once: kept in bounds, forgotten by `clear_caches`, as it keeps meshes and worlds alive."""

from __future__ import annotations

import functools
from collections.abc import Callable, MutableMapping
from typing import Any, TypeVar

__all__ = ["forget_all", "forgettable", "remembered"]

_Result = TypeVar("_Result")
_Mapping = TypeVar("_Mapping", bound=MutableMapping[Any, Any])

_forget: list[Callable[[], None]] = []


def remembered(maxsize: int) -> Callable[[Callable[..., _Result]], functools._lru_cache_wrapper[_Result]]:
    """A functools.lru_cache that clear_caches empties."""

    def decorate(function: Callable[..., _Result]) -> functools._lru_cache_wrapper[_Result]:
        cached = functools.lru_cache(maxsize=maxsize)(function)
        _forget.append(cached.cache_clear)
        return cached

    return decorate


def forgettable(mapping: _Mapping) -> _Mapping:
    """The mapping itself, which clear_caches empties from now on; its owner bounds it."""
    _forget.append(mapping.clear)
    return mapping


def forget_all() -> None:
    """Empties all of them."""
    for forget in _forget:
        forget()
