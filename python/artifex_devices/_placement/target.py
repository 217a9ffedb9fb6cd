# SPDX-License-Identifier: Apache-2.0
"""Targets of data: the values that a public argument for a placement may have."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from artifex_devices import tree_util
from artifex_devices._base.checks import check_type, failure, wrong_type
from artifex_devices._base.leaf_types import Tree
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Device, Mesh, PartitionSpec, Sharding, SingleDeviceSharding, internal
from artifex_devices._core import Layout as XlaLayout
from artifex_devices._core.internal import default_device
from artifex_devices._placement.jax_values import from_jax
from artifex_devices._placement.mesh_context import sharding_of_spec
from artifex_devices._runtime.memory_kinds import MemorySpace, kind_of_space
from artifex_devices.layout import Format, check_format, requested_layout

# A PartitionSpec refers to the mesh of set_mesh, None to the default device.
Target: TypeAlias = Device | Sharding | PartitionSpec | Format | MemorySpace | None

# A target, or a tree of targets that is a prefix of the data.
TargetTree: TypeAlias = Target | Tree

PLACES = (type(None), Device, Sharding, PartitionSpec, Format, MemorySpace)
_TARGETS = "take a Device from devices(), or make a NamedSharding"
_EXPECTED = (
    "None, a Device, a Sharding, a Format, a memory.Space, a PartitionSpec under set_mesh, or a tree of these that is "
    "a prefix of x"
)


def resolve_target(operation: str, target: object, argument: str = "the target") -> Any:
    """Returns a target, or a tree of targets, in a form that device_put takes in any thread.

    PartitionSpecs are bound to the mesh of set_mesh, and a Format without a layout becomes its sharding. The result is
    None, a Device, a Sharding, a Format with a layout, a memory.Space, or a tree of such targets.

    Raises:
        TypeError: A leaf is of another type.
        ValueError: A PartitionSpec, and no mesh is set.
    """

    def resolve(leaf: object) -> Any:
        leaf = leaf if isinstance(leaf, PLACES) else from_jax(operation, leaf)
        if not isinstance(leaf, PLACES):
            raise _wrong_target(operation, argument, leaf, TypeError)
        leaf = leaf.sharding if isinstance(leaf, Format) and leaf.layout is None else leaf
        return sharding_of_spec(operation, leaf)

    if isinstance(target, PLACES):
        return resolve(target)
    return tree_util.tree_map(resolve, target, is_leaf=lambda node: isinstance(node, PLACES))


class ResolvedTarget(NamedTuple):
    """The parts of one target. A part that is None is taken from the value, if that is an Array, or is the default."""

    sharding: Sharding | None
    layout: XlaLayout | None  # in which shards are stored; None: that of an Array, else row-major
    memory_kind: str | None


def placement_of_target(operation: str, target: Any) -> ResolvedTarget:
    """Returns the placement of one resolved target; ValueError for a Layout or a Space that nothing can have."""
    if isinstance(target, MemorySpace):
        return ResolvedTarget(None, None, kind_of_space(operation, target))
    if isinstance(target, Format):
        return ResolvedTarget(target.sharding, requested_layout(operation, target), None)
    return ResolvedTarget(SingleDeviceSharding(target) if isinstance(target, Device) else target, None, None)


def sharding_of_new(operation: str, target: object) -> Sharding:
    """Returns the sharding that device_put gives host data for one resolved target."""
    sharding, _, memory_kind = placement_of_target(operation, target)
    if sharding is None:
        sharding = SingleDeviceSharding(default_device())
    return sharding if memory_kind is None else sharding.with_memory_kind(memory_kind)


def placement_for_device_put(device: object) -> ResolvedTarget:
    """Resolves a target of device_put other than None, a Device or a Sharding for the core; ValueError for others."""
    device = device if isinstance(device, PLACES) else from_jax("device_put", device)
    if not isinstance(device, PLACES):
        raise _wrong_target("device_put", "device", device, ValueError)
    return placement_of_target("device_put", resolve_target("device_put", device))


def _wrong_target(operation: str, argument: str, value: object, error: type[Exception]) -> Exception:
    """Returns the error for a value that is not a target, with the target that was meant."""
    problem = f"{operation}: {argument} is {safe_repr(value)} ({type(value).__name__})"
    if isinstance(value, Mesh):
        axes = repr(value.axis_names[0]) if value.axis_names else ""
        return error(f"{problem}; write ad.NamedSharding(mesh, ad.P({axes}))")
    if isinstance(value, (list, tuple, np.ndarray)):
        return error(f"{problem}; write ad.NamedSharding(ad.Mesh(devices, ('x',)), ad.P('x'))")
    if type(value) is str or type(value) is int:
        return error(f"{problem}; write {_device_named(value)}")
    return wrong_type(operation, argument, value, _EXPECTED, _TARGETS, error)


def _device_named(name: str | int) -> str:
    """Returns the code of the device that a text such as "gpu:1" or a number means, if the world has it."""
    named = name if isinstance(name, str) else f":{name}"
    platform, _, number = named.replace("cuda", "gpu").partition(":")
    is_known = platform in ("cpu", "gpu")
    client = internal.client_of_platform(platform) if is_known else internal.current_client()
    if client is None:
        return "ad.devices()[0]; this world has no GPU; to simulate GPUs: `with ad.simulate(8, platform='gpu'):`"
    index = int(number) if number.isdecimal() and int(number) < client.device_count() else 0
    code = f"ad.devices({repr(platform) if is_known else ''})[{index}]"
    return (
        code if isinstance(name, int) or is_known else f"{code}, or ad.NamedSharding(mesh, ad.P({name!r})) for an axis"
    )


def sharding_for(operation: str, argument: str, target: Any, rank: int | None = None) -> Sharding:
    """Returns the Sharding of a Sharding, a Format, or a PartitionSpec under set_mesh; TypeError for other targets.

    ValueError if no mesh is set, or the Format's Layout is not row-major or of another rank (None: not known).
    """
    if isinstance(target, Format):
        layout_rank = check_format(operation, target)
        if rank is not None and layout_rank not in (-1, rank):
            raise failure(
                ValueError,
                operation,
                f"the Layout orders {layout_rank} dimensions and the array has {rank}",
                expected="a Layout of its rank",
                fix="leave the layout out",
            )
        target = target.sharding
    target = sharding_of_spec(operation, target)
    axis = target.axis_names[0] if isinstance(target, Mesh) else "data"
    fix = "SingleDeviceSharding(device)" if isinstance(target, Device) else f"NamedSharding(mesh, P({axis!r}))"
    check_type(operation, argument, target, Sharding, "a Sharding", f"write {fix}")
    return target  # type: ignore[no-any-return]
