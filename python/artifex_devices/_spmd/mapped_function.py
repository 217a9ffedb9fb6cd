# SPDX-License-Identifier: Apache-2.0
"""Types of the functions that shard_map, smap and pmap return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, overload

from artifex_devices._base.leaf_types import K, Leaf, LeafT
from artifex_devices._core import Array

_Result = TypeVar("_Result", covariant=True)
_BodyResult = TypeVar("_BodyResult")


class MappedFunction(Protocol[_Result]):
    """A function of Arrays, mapped from a body that returns _Result: ndarrays become Arrays.

    The mapped function takes Arrays where the body takes ndarrays, so their parameters have different types.
    """

    @overload
    def __call__(self: MappedFunction[Leaf], /, *args: Any, **kwargs: Any) -> Array: ...
    @overload
    def __call__(self: MappedFunction[dict[K, LeafT]], /, *args: Any, **kwargs: Any) -> dict[K, Array]: ...
    @overload
    def __call__(self: MappedFunction[tuple[Leaf, Leaf]], /, *args: Any, **kwargs: Any) -> tuple[Array, Array]: ...
    @overload
    def __call__(self: MappedFunction[tuple[Leaf, ...]], /, *args: Any, **kwargs: Any) -> tuple[Array, ...]: ...
    @overload
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...


class MapDecorator(Protocol):
    """The decorator that shard_map and smap return without a function."""

    def __call__(self, f: Callable[..., _BodyResult], /) -> MappedFunction[_BodyResult]: ...
