# SPDX-License-Identifier: Apache-2.0
"""check_and_canonicalize_memory_kind: what a memory kind means on a list of devices."""

from __future__ import annotations

from typing import Any

from artifex_devices._base.safe_repr import shown
from artifex_devices._core import DeviceList, _canonical_memory_kind

__all__ = ["check_and_canonicalize_memory_kind"]


def check_and_canonicalize_memory_kind(memory_kind: str | None, device_list: DeviceList) -> str | None:
    """The full name of a memory kind that all devices of a list can address.

    Args:
        memory_kind: "device" (also "default"), "pinned_host" (also "pinned"), "unpinned_host", or None for the default
            kind of the devices.
        device_list: A DeviceList.

    Returns:
        The kind's name; never None, as a DeviceList has devices.

    Raises:
        ValueError: The devices do not have that kind.
        TypeError: An argument is of another type.

    Example:
        >>> from artifex_devices import xla_client
        >>> devices = xla_client.DeviceList(tuple(xla_client.make_cpu_client(num_devices=2).devices()))
        >>> [xla_client.check_and_canonicalize_memory_kind(kind, devices) for kind in (None, "pinned")]
        ['device', 'pinned_host']
    """
    wrong = []
    kind: Any = memory_kind
    given: Any = device_list
    if kind is not None and not isinstance(kind, str):
        wrong.append(f"memory_kind is of type {type(kind).__name__}; expected a str or None, got {shown(kind)}")
    if not isinstance(given, DeviceList):
        wrong.append(f"device_list is of type {type(given).__name__}; expected a DeviceList, got {shown(given)}")
    if wrong:
        raise TypeError(
            f"check_and_canonicalize_memory_kind: {'; '.join(wrong)}; write DeviceList(tuple(devices)) for devices"
        )
    if kind is not None:
        kind = kind.encode("utf-8", "backslashreplace").decode()  # a lone surrogate is a kind that there is not
    return _canonical_memory_kind(kind, list(device_list))
