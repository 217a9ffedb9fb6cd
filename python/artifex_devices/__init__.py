# SPDX-License-Identifier: Apache-2.0
"""artifex_devices: the device runtime that NumPy never had.

Devices, meshes, shardings and sharded arrays with the names and semantics of JAX's device layer, on a
C++ core, for NumPy.
"""

from __future__ import annotations

from artifex_devices import arrays as _arrays  # noqa: F401 - gives Array its operators
from artifex_devices import debug, errors, experimental, render, sharding, tree, tree_util
from artifex_devices._core import (
    AbstractMesh,
    Array,
    AxisType,
    Client,
    Device,
    Machine,
    Mesh,
    NamedSharding,
    PartitionSpec,
    Shard,
    Sharding,
    SingleDeviceSharding,
    live_arrays,
    shutdown,
)
from artifex_devices.config import config
from artifex_devices.device_placement import (
    BatchSizeRecommendation,
    DevicePlacement,
    HardwareType,
    distribute_batch,
    get_batch_size_recommendation,
    place_on_device,
)
from artifex_devices.discovery import (
    default_backend,
    device_count,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
)
from artifex_devices.memory import MemoryReport, memory_report
from artifex_devices.mesh import DeviceMeshManager
from artifex_devices.placement import block_until_ready, device_get, device_put
from artifex_devices.scopes import (
    default_device,
    enable_x64,
    transfer_guard,
    transfer_guard_device_to_device,
    transfer_guard_device_to_host,
    transfer_guard_host_to_device,
)
from artifex_devices.sharding import P, make_mesh
from artifex_devices.world import simulate

__version__ = "0.1.0"

__all__ = [
    "AbstractMesh",
    "Array",
    "AxisType",
    "BatchSizeRecommendation",
    "Client",
    "Device",
    "DeviceMeshManager",
    "DevicePlacement",
    "HardwareType",
    "Machine",
    "MemoryReport",
    "Mesh",
    "NamedSharding",
    "P",
    "PartitionSpec",
    "Shard",
    "Sharding",
    "SingleDeviceSharding",
    "block_until_ready",
    "config",
    "debug",
    "default_backend",
    "default_device",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "distribute_batch",
    "enable_x64",
    "errors",
    "experimental",
    "get_batch_size_recommendation",
    "live_arrays",
    "local_device_count",
    "local_devices",
    "make_mesh",
    "memory_report",
    "place_on_device",
    "process_count",
    "process_index",
    "render",
    "sharding",
    "shutdown",
    "simulate",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
    "tree",
    "tree_util",
]
