# SPDX-License-Identifier: Apache-2.0
"""Memory kinds by their names, and MemorySpace, memory near the device or of the host as a target of device_put."""

from __future__ import annotations

import enum

from artifex_devices._base.checks import check_types, failure
from artifex_devices._base.pickled_enum import PickledEnum
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import DeviceList
from artifex_devices._core.internal import canonical_memory_kind


def check_and_canonicalize_memory_kind(memory_kind: str | None, device_list: DeviceList) -> str | None:
    """Returns the full name of a memory kind that all devices of a list can address; never None.

    Args:
        memory_kind: "device" (also "default"), "pinned_host" (also "pinned"), "unpinned_host", or None for the default
            kind of the devices.
        device_list: A DeviceList.

    Raises:
        ValueError: The devices do not have that kind.
        TypeError: An argument is of another type.

    Example:
        >>> from artifex_devices import xla_client
        >>> devices = xla_client.DeviceList(tuple(xla_client.make_cpu_client(num_devices=2).devices()))
        >>> [xla_client.check_and_canonicalize_memory_kind(kind, devices) for kind in (None, "pinned")]
        ['device', 'pinned_host']
    """
    rows = (
        ("memory_kind", memory_kind, (str, type(None)), "a str or None"),
        ("device_list", device_list, DeviceList, "a DeviceList"),
    )
    check_types("check_and_canonicalize_memory_kind", rows, "write DeviceList(tuple(devices)) for devices")
    if memory_kind is not None:
        memory_kind = memory_kind.encode("utf-8", "backslashreplace").decode()  # the core refuses lone surrogates so
    return canonical_memory_kind(memory_kind, list(device_list))


@public("artifex_devices.memory")
class MemorySpace(PickledEnum):
    """A target such as `device_put(x, memory.Space.Host)`: the devices stay, the kind of memory changes.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(2):
        ...     x = ad.device_put(np.ones(4), ad.memory.Space.Host)
        ...     x.sharding.memory_kind, ad.device_put(x, ad.memory.Space.Device).sharding.memory_kind
        ('pinned_host', 'device')
    """

    Device = enum.auto()  # the memory kind `device`
    Host = enum.auto()  # the memory kind `pinned_host`
    Any = enum.auto()  # unspecified; data cannot be placed there

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"


def kind_of_space(operation: str, space: MemorySpace) -> str:
    """Returns the memory kind of a space on CPU devices; ValueError for Space.Any."""
    if space is MemorySpace.Any:
        raise failure(
            ValueError,
            operation,
            f"device is {safe_repr(space)}, which names no memory",
            expected="MemorySpace.Device or MemorySpace.Host",
            fix="choose one, or leave the device out",
        )
    return "pinned_host" if space is MemorySpace.Host else "device"
