# SPDX-License-Identifier: Apache-2.0
"""Device objects as the core's mesh functions take them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from artifex_devices import _core
from artifex_devices._base.safe_repr import safe_repr


def mesh_devices(devices: Sequence[Any], text: Callable[[Any], str] = str) -> _core._MeshDevices:
    """Reads platform, kind and places of at least one device; `text` describes a device in error messages."""
    last = devices[-1]
    if not hasattr(last, "platform") or not hasattr(last, "device_kind"):
        raise TypeError(
            f"mesh_utils: {safe_repr(last)} ({type(last).__name__}) is not a device; expected objects with id, "
            "platform "
            "and device_kind; pass devices() or those of a cluster"
        )
    listed = list(devices)
    found = _core._MeshDevices.of_cluster(listed, text)
    if found is not None:
        return found
    for device in listed:
        if not hasattr(device, "id"):
            raise TypeError(
                f"mesh_utils: {safe_repr(device)} ({type(device).__name__}) has no id; expected objects with id, "
                "platform "
                "and device_kind; pass devices() or those of a cluster"
            )
    without_coords = next((i for i, device in enumerate(listed) if not hasattr(device, "coords")), -1)
    rows = [
        (
            device.id,
            *((0, 0, 0) if without_coords >= 0 else (*device.coords, 0, 0)[:3]),
            getattr(device, "core_on_chip", 0) or 0,
            getattr(device, "slice_index", 0) or 0,
        )
        for device in listed
    ]
    return _core._MeshDevices(listed, text, last.platform, last.device_kind, rows, without_coords)
