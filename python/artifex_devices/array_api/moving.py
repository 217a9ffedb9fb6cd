# SPDX-License-Identifier: Apache-2.0
"""Functions of the Array API on Arrays whose sharding is in the way: over Auto axes they are moved, as in JAX.

Code written for all arrays cannot call reshard, so the namespace does it. NumPy's own functions refuse instead.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from artifex_devices import _core
from artifex_devices._array_ops.core.layout import any_explicit, cuts_of, sharding_with
from artifex_devices._base.caller import warn_user
from artifex_devices._core import Array
from artifex_devices.errors import ShardingTypeError

__all__ = ["moving"]

_F = TypeVar("_F", bound=Callable[..., Any])


def moving(function: _F) -> _F:
    """The function, which replicates its Arrays on their mesh and runs again where their sharding is in the way.

    A UserWarning says so, with the bytes.

    Raises:
        ShardingTypeError: An Array is sharded over Explicit axes, or copy=False (a ValueError).
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except ShardingTypeError as error:
            moved: list[Array] = []
            whole = [_whole(x, moved) for x in (*args, *kwargs.values())]
            if not moved or kwargs.get("copy") is False:
                raise
            warn_user(
                f"array_api: {sum(x.nbytes for x in moved)} bytes in {len(moved)} Arrays are replicated on each device "
                f"of their mesh, because a sharding is in the way: {error}",
                UserWarning,
            )
        return function(*whole[: len(args)], **dict(zip(kwargs, whole[len(args) :], strict=True)))

    return call  # type: ignore[return-value]


def _whole(x: Any, moved: list[Array]) -> Any:
    """An argument with its Arrays replicated; `moved` gets those that were sharded over Auto axes."""
    if type(x) in (list, tuple):
        return type(x)(_whole(part, moved) for part in x)
    if not isinstance(x, Array):
        return x
    cuts = cuts_of(x)
    if not any(cuts) or any(any_explicit(x.sharding, axes) for axes in cuts):
        return x
    moved.append(x)
    return _core._moved(x, sharding_with(x.sharding, ()), x.committed)
