# SPDX-License-Identifier: Apache-2.0
"""Placements of results: the devices of the operands, and the spec that follows from theirs.

The arithmetic of specs is in the core, `partition/spec_algebra`. Its results are cached by its arguments.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from artifex_devices._base.checks import failure
from artifex_devices._base.clearable_cache import clearable_cache
from artifex_devices._base.text import shortened_list
from artifex_devices._core import Array, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding, internal
from artifex_devices._placement.mesh_context import mesh_that_is_set
from artifex_devices._placement.reshard import reshard

# The mesh axes that shard each dimension, major to minor; () for a dimension that is not sharded.
Spec = tuple[tuple[Hashable, ...], ...]

spec_in = clearable_cache(maxsize=4096)(internal.spec_in)
sharding_with = clearable_cache(maxsize=4096)(internal.sharding_with)
any_explicit = internal.any_explicit


def spec_of(x: Array) -> Spec:
    """Returns the mesh axes that shard each dimension of x, also axes of size 1: specs do not depend on sizes."""
    return spec_in(x.sharding, x.ndim)


def num_parts(sharding: Any, axes: tuple[Hashable, ...]) -> int:
    """Returns the number of parts of a dimension that is sharded over these axes."""
    return math.prod(sharding.mesh.shape[name] for name in axes)


def is_split(sharding: Any, axes: tuple[Hashable, ...]) -> bool:
    """Returns whether a dimension that is sharded over these axes has several parts; axes of size 1 make one."""
    return bool(axes) and num_parts(sharding, axes) > 1


def can_shard(sharding: NamedSharding, axes: tuple[Hashable, ...], size: int) -> bool:
    """Returns whether a dimension of this size can be sharded over these axes."""
    return sharding.uneven == "last-short" or size % num_parts(sharding, axes) == 0


class OperandDevices(NamedTuple):
    """The devices that an operation runs on: the devices of its committed operands."""

    sharding: Sharding  # has the mesh, the memory kind and the policy for uneven dimensions; its spec is not used
    committed: bool  # whether the result is committed

    def shares_mesh(self, x: Array) -> bool:
        """Returns whether the spec of x applies here: whether x is on the same mesh or the same single device."""
        mine, its = self.sharding, x.sharding
        if mine is its:
            return True
        if isinstance(mine, NamedSharding):
            return isinstance(its, NamedSharding) and its.mesh is mine.mesh
        return isinstance(its, SingleDeviceSharding) and its.device_set == mine.device_set


def common_devices(operation: str, arrays: Sequence[Array]) -> OperandDevices:
    """Returns the devices of the committed Arrays, else of the first one.

    The first sharded operand determines the mesh; replicated operands before it do not matter. Uneven shards are
    allowed if one of the operands that are sharded over that mesh allows them.
    """
    first = arrays[0]
    if len(arrays) == 1:
        return OperandDevices(first.sharding, first.committed)
    committed = [x for x in arrays if x.committed]
    leader = _leading_sharding(committed or arrays, arrays)
    if any(x.sharding is not leader and not x.sharding._same_devices(leader) for x in committed):
        details = "; ".join(
            f"operand {i} of shape {x.shape} on {_devices_text(x.sharding)}"
            for i, x in enumerate(arrays)
            if x.committed
        )
        worlds = [x.sharding._device_assignment[0].client for x in committed]
        if any(world is not worlds[0] for world in worlds):
            raise ValueError(
                f"{operation}: the operands are of different worlds: {details}; move one to the devices of the other: "
                "ad.device_put(x, y.sharding)"
            )
        raise failure(
            ValueError,
            operation,
            "the operands are on incompatible devices",
            expected="the same devices in the same order and one kind of memory",
            got=details,
            fix="move one: ad.device_put(x, y.sharding)",
        )
    return OperandDevices(leader, committed=bool(committed))


def _leading_sharding(candidates: Sequence[Array], arrays: Sequence[Array]) -> Sharding:
    """Returns the sharding of one of the candidates, with the policy for uneven dimensions that suits all Arrays."""
    named = [x for x in candidates if isinstance(x.sharding, NamedSharding)]
    if not named:
        return candidates[0].sharding
    leader = next((x for x in named if any(spec_of(x))), named[0]).sharding
    for x in arrays:
        if any(spec_of(x)):
            leader = allowing_uneven(leader, x.sharding)
    return leader


def allowing_uneven(sharding: Sharding, other: Sharding) -> Sharding:
    """Returns `sharding`, with uneven shards allowed where `other` has the same mesh and allows them."""
    if not isinstance(sharding, NamedSharding) or not isinstance(other, NamedSharding):
        return sharding
    if sharding.uneven is not None or other.uneven is None or sharding.mesh is not other.mesh:
        return sharding
    return NamedSharding(sharding.mesh, sharding.spec, memory_kind=sharding.memory_kind, uneven=other.uneven)


def broadcast_specs(operation: str, devices: OperandDevices, shape: tuple[int, ...], arrays: Sequence[Array]) -> Spec:
    """Returns the spec of an element-wise result: each dimension is sharded as in the first operand that shards it."""
    return internal.broadcast_specs(operation, devices.sharding, shape, arrays)


def ids_text(sharding: Sharding) -> str:
    """Formats the ids of a sharding's devices, the first eight at most, and whether they are of another world."""
    devices = sharding._device_assignment
    other = "" if devices[0].client is internal.current_client() else " of another world"
    return f"[{shortened_list([str(device.id) for device in devices], 8)}]{other}"


def _devices_text(sharding: Sharding) -> str:
    kind = "" if sharding.memory_kind == "device" else f" in {sharding.memory_kind} memory"
    return f"{sharding._device_assignment[0].platform} {ids_text(sharding)}{kind}"


def placed_as(result: Array, x: Array, out_sharding: object) -> Array:
    """Places a result by out_sharding; a PartitionSpec refers to the mesh that is set, else to the mesh of x."""
    if isinstance(out_sharding, PartitionSpec) and mesh_that_is_set() is None and isinstance(x.sharding, NamedSharding):
        out_sharding = NamedSharding(x.sharding.mesh, out_sharding)
    placed: Array = reshard(result, out_sharding)
    return placed
