# SPDX-License-Identifier: Apache-2.0
"""The names of `jaxlib.xla_client`: clients, devices, memories and layouts."""

from __future__ import annotations

from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices._core import (
    Client,
    Device,
    DeviceAssignment,
    DeviceList,
    DeviceTopology,
    Layout,
    Memory,
    PjRtLayout,
    get_topology_for_devices,
)
from artifex_devices._runtime.client import GpuAllocatorConfig, make_cpu_client, make_gpu_client
from artifex_devices._runtime.client_members import HostBufferSemantics
from artifex_devices._runtime.memory_kinds import check_and_canonicalize_memory_kind

__all__ = [
    "Client",
    "Device",
    "DeviceAssignment",
    "DeviceList",
    "DeviceTopology",
    "GpuAllocatorConfig",
    "HostBufferSemantics",
    "Layout",
    "Memory",
    "PjRtLayout",
    "check_and_canonicalize_memory_kind",
    "get_topology_for_devices",
    "make_cpu_client",
    "make_gpu_client",
]
add_public_lookup(__name__)
