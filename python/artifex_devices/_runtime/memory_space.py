# SPDX-License-Identifier: Apache-2.0
"""Space: memory near the device or memory of the host, as a target of device_put."""

from __future__ import annotations

import enum

from artifex_devices._base.pickled_enum import PickledEnum
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import shown

__all__ = ["MemorySpace", "kind_of_space"]


@public("artifex_devices.memory")
class MemorySpace(PickledEnum):
    """What `device_put(x, memory.Space.Host)` names: the devices stay, the kind of memory changes.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(2):
        ...     x = ad.device_put(np.ones(4), ad.memory.Space.Host)
        ...     x.sharding.memory_kind, ad.device_put(x, ad.memory.Space.Device).sharding.memory_kind
        ('pinned_host', 'device')
    """

    Device = enum.auto()  # the memory kind `device`
    Host = enum.auto()  # the memory kind `pinned_host`
    Any = enum.auto()  # says nothing, so that nothing can be placed there

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"


def kind_of_space(operation: str, space: MemorySpace) -> str:
    """The memory kind of a space on CPU devices.

    Raises:
        ValueError: It is Space.Any.
    """
    if space is MemorySpace.Any:
        raise ValueError(
            f"{operation}: device is {shown(space)}, which names no memory; expected MemorySpace.Device or "
            "MemorySpace.Host; choose one, or leave the device out"
        )
    return "pinned_host" if space is MemorySpace.Host else "device"
