# SPDX-License-Identifier: Apache-2.0
"""The names of `jaxlib.xla_client`: clients, devices, memories, layouts. Its classes are those of the whole package."""

from __future__ import annotations

from artifex_devices._core import Client, Device
from artifex_devices.client import make_cpu_client

__all__ = [
    "Client",
    "Device",
    "make_cpu_client",
]
