# SPDX-License-Identifier: Apache-2.0
"""What can be said where a place for data is asked for, beyond Device and Sharding: PartitionSpec, Format."""

from __future__ import annotations

from typing import Any

from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Device, PartitionSpec, Sharding
from artifex_devices._placement.mesh_context import sharding_of_spec
from artifex_devices._runtime.memory_space import MemorySpace, kind_of_space
from artifex_devices.layout import Format, check_format, requested_layout

__all__ = ["PLACES", "resolve_target", "sharding_for"]

PLACES = (type(None), Device, Sharding, PartitionSpec, Format, MemorySpace)
_TAKEN = "None, a Device, a Sharding, a Format, a memory.Space, a PartitionSpec under set_mesh"


def resolve_target(device: Any) -> tuple[Any, ...]:
    """Called by the core for what is neither None, a Device nor a Sharding.

    Args:
        device: What `device_put` was given.

    Returns:
        The Sharding, or None, and the xla_client.Layout to store values in (None: as it is, else row-major); of a
        memory.Space also the memory kind that values go to where they are.

    Raises:
        ValueError: It is no place for data; no mesh is set for a PartitionSpec; a Layout is no order of dimensions;
            Space.Any.
    """
    if isinstance(device, MemorySpace):
        return None, None, kind_of_space("device_put", device)
    if isinstance(device, PartitionSpec):
        return sharding_of_spec("device_put", device), None
    if isinstance(device, Format):
        return device.sharding, requested_layout("device_put", device)
    raise ValueError(
        f"device_put: device is of type {type(device).__name__}; expected {_TAKEN}, or a tree of these that is a "
        f"prefix of x, got {shown(device)}; take a Device from devices(), or make a NamedSharding"
    )


def sharding_for(operation: str, argument: str, given: Any, rank: int | None = None) -> Sharding:
    """The Sharding that assembled arrays get.

    Args:
        operation: Begins the message.
        argument: The argument's name.
        given: A Sharding, a Format, or a PartitionSpec under set_mesh.
        rank: Of the array, to check a Layout against; None: not known.

    Raises:
        TypeError: It is something else.
        ValueError: No mesh is set for a PartitionSpec; a Layout is not row-major or of another rank.
    """
    if isinstance(given, Format):
        layout_rank = check_format(operation, given)
        if rank is not None and layout_rank not in (-1, rank):
            raise ValueError(
                f"{operation}: the Layout orders {layout_rank} dimensions and the array has {rank}; expected a Layout "
                "of its rank; leave the layout out"
            )
        given = given.sharding
    given = sharding_of_spec(operation, given)
    if not isinstance(given, Sharding):
        hint = "SingleDeviceSharding(device)" if isinstance(given, Device) else "NamedSharding(mesh, P('data'))"
        raise TypeError(
            f"{operation}: {argument} is of type {type(given).__name__}; expected a Sharding, got {shown(given)}; "
            f"write {hint}"
        )
    return given
