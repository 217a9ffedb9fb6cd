# SPDX-License-Identifier: Apache-2.0
"""Targets of data other than Device and Sharding: PartitionSpec, Format and memory.Space."""

from __future__ import annotations

from typing import Any

import numpy as np

from artifex_devices._base.checks import check_type, wrong_type
from artifex_devices._core import Device, Mesh, PartitionSpec, Sharding
from artifex_devices._placement.mesh_context import sharding_of_spec
from artifex_devices._runtime.memory_kinds import MemorySpace, kind_of_space
from artifex_devices.layout import Format, check_format, requested_layout

PLACES = (type(None), Device, Sharding, PartitionSpec, Format, MemorySpace)
_TARGETS = "take a Device from devices(), or make a NamedSharding"
_EXPECTED = (
    "None, a Device, a Sharding, a Format, a memory.Space, a PartitionSpec under set_mesh, or a tree of these that is "
    "a prefix of x"
)


def resolve_target(device: Any) -> tuple[Any, ...]:
    """Called by the core for a target of `device_put` other than None, a Device or a Sharding.

    Returns the Sharding, or None, and the xla_client.Layout to store values in (None: that of an Array, else
    row-major); for a memory.Space also the memory kind. ValueError for other targets.
    """
    if isinstance(device, MemorySpace):
        return None, None, kind_of_space("device_put", device)
    if isinstance(device, PartitionSpec):
        return sharding_of_spec("device_put", device), None
    if isinstance(device, Format):
        return device.sharding, requested_layout("device_put", device)
    raise wrong_type("device_put", "device", device, _EXPECTED, _target_repair(device), ValueError)


def _target_repair(device: Any) -> str:
    """The target that was meant by a value of another type."""
    if isinstance(device, Mesh):
        return f"{_TARGETS}: ad.NamedSharding(mesh, ad.P({device.axis_names[0]!r}))"
    if isinstance(device, (list, tuple, np.ndarray)):
        return f"{_TARGETS}: ad.NamedSharding(ad.Mesh(devices, ('x',)), ad.P('x'))"
    named = device if isinstance(device, str) else f":{device}" if isinstance(device, int) else ""
    platform, _, number = named.partition(":")
    known = f"'{platform}'" if platform in ("cpu", "gpu", "tpu") else ""
    return f"{_TARGETS}; for one device: ad.devices({known})[{number if number.isdecimal() else 0}]"


def sharding_for(operation: str, argument: str, target: Any, rank: int | None = None) -> Sharding:
    """Returns the Sharding of a Sharding, a Format, or a PartitionSpec under set_mesh; TypeError for other targets.

    ValueError if no mesh is set, or the Format's Layout is not row-major or of another rank (None: not known).
    """
    if isinstance(target, Format):
        layout_rank = check_format(operation, target)
        if rank is not None and layout_rank not in (-1, rank):
            raise ValueError(
                f"{operation}: the Layout orders {layout_rank} dimensions and the array has {rank}; expected a Layout "
                "of its rank; leave the layout out"
            )
        target = target.sharding
    target = sharding_of_spec(operation, target)
    axis = target.axis_names[0] if isinstance(target, Mesh) else "data"
    fix = "SingleDeviceSharding(device)" if isinstance(target, Device) else f"NamedSharding(mesh, P({axis!r}))"
    check_type(operation, argument, target, Sharding, "a Sharding", f"write {fix}")
    return target  # type: ignore[no-any-return]
