# SPDX-License-Identifier: Apache-2.0
"""JAX's Devices, PartitionSpecs, meshes and NamedShardings, where ours are expected: converted by public attributes."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from artifex_devices import tree_util
from artifex_devices._base.checks import failure
from artifex_devices._base.text import shortened_list
from artifex_devices._core import AbstractMesh, AxisType, Device, Mesh, NamedSharding, PartitionSpec


def from_jax(operation: str, value: Any) -> Any:
    """Returns our counterpart of a value of JAX, and every other value unchanged.

    A device becomes the device of this world with the same id. The memory kind "unpinned_host", JAX's default on
    CPUs, becomes "device".

    Raises:
        ValueError: The world has no device of an id.
    """
    jax: Any = sys.modules.get("jax")
    kinds: Any = getattr(jax, "sharding", None)
    if getattr(kinds, "PartitionSpec", PartitionSpec) is PartitionSpec:  # no JAX, or this package in its place
        return value
    if isinstance(value, kinds.PartitionSpec):
        free = kinds.PartitionSpec.UNCONSTRAINED
        return PartitionSpec(*(PartitionSpec.UNCONSTRAINED if entry is free else entry for entry in value))
    if isinstance(value, jax.Device):
        return _by_id(operation, [value])[value.id]
    if isinstance(value, kinds.Mesh):
        return _mesh(operation, value)
    if isinstance(value, kinds.AbstractMesh):
        return AbstractMesh(value.axis_sizes, value.axis_names, axis_types=_types(value))
    if isinstance(value, kinds.NamedSharding):
        memory = "pinned_host" if value.memory_kind == "pinned_host" else None
        mesh = from_jax(operation, value.mesh)
        return NamedSharding(mesh, from_jax(operation, value.spec), memory_kind=memory)
    return value


def from_jax_tree(operation: str, tree: Any) -> Any:
    """Returns a tree with the values of JAX in it converted."""
    if "jax" not in sys.modules:
        return tree
    return tree_util.tree_map(
        lambda leaf: from_jax(operation, leaf), tree, is_leaf=lambda node: isinstance(node, PartitionSpec)
    )


def _by_id(operation: str, found: Iterable[Any]) -> dict[int, Device]:
    """Returns the devices of this world by id, if it has all devices that JAX names."""
    from artifex_devices._runtime.devices import devices

    by_id = {device.id: device for device in devices()}
    missing = [device.id for device in found if device.id not in by_id]
    if missing:
        raise failure(
            ValueError,
            operation,
            f"JAX names devices that this world does not have: {shortened_list(list(map(str, missing)), 8)}",
            expected=f"ids of the {len(by_id)} devices of this world",
            fix=f"open a larger world: with ad.simulate({max(missing) + 1}):",
        )
    return by_id


def _mesh(operation: str, mesh: Any) -> Mesh:
    by_id = _by_id(operation, mesh.devices.flat)
    placed = np.array([by_id[device.id] for device in mesh.devices.flat], object).reshape(mesh.devices.shape)
    return Mesh(placed, mesh.axis_names, axis_types=_types(mesh))


def _types(mesh: Any) -> tuple[AxisType, ...]:
    return tuple(AxisType[kind.name] for kind in mesh.axis_types)
