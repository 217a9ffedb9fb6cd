# SPDX-License-Identifier: Apache-2.0
"""out_sharding= of Array's methods: the placement of a result, where the caller asks for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from artifex_devices._array_ops.core.layout import sharding_with
from artifex_devices._core import Array, NamedSharding, PartitionSpec
from artifex_devices._placement.mesh_context import mesh_that_is_set
from artifex_devices._placement.reshard import reshard
from artifex_devices.errors import ShardingTypeError

__all__ = ["placed_as", "with_out_sharding"]


def with_out_sharding(x: Array, change: Callable[[Array], Array], out_sharding: Any) -> Array:
    """change(x), placed by out_sharding; as it comes where that is None.

    Where the shards of x do not allow the change, x is made whole on its devices first.

    Raises:
        TypeError: out_sharding is not a NamedSharding or a PartitionSpec.
        ValueError: It does not fit the result; and as change.
    """
    if out_sharding is None:
        return change(x)
    try:
        result = change(x)
    except ShardingTypeError:
        result = change(reshard(x, sharding_with(x.sharding, ((),) * x.ndim)))
    return placed_as(result, x, out_sharding)


def placed_as(result: Array, x: Array, out_sharding: Any) -> Array:
    """A result placed by out_sharding; a PartitionSpec is for the mesh that is set, else for that of x."""
    if isinstance(out_sharding, PartitionSpec) and mesh_that_is_set() is None and isinstance(x.sharding, NamedSharding):
        out_sharding = NamedSharding(x.sharding.mesh, out_sharding)
    placed: Array = reshard(result, out_sharding)
    return placed
