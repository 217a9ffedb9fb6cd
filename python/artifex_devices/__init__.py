# SPDX-License-Identifier: Apache-2.0
"""artifex_devices: the device runtime that NumPy never had.

Devices, meshes, shardings and sharded arrays with the names and semantics of JAX's device layer, on a
C++ core, for NumPy.
"""

from __future__ import annotations

from artifex_devices import arrays as _arrays  # noqa: F401 - gives Array its operators
from artifex_devices import debug, dlpack, errors, experimental, lax, layout, render, sharding, tree, tree_util
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
    shutdown,
)
from artifex_devices.assembly import (
    make_array_from_callback,
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from artifex_devices.caches import clear_caches, live_arrays
from artifex_devices.config import config
from artifex_devices.constraints import reshard, with_sharding_constraint
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
    host_count,
    host_id,
    host_ids,
    local_device_count,
    local_devices,
    process_count,
    process_index,
    process_indices,
)
from artifex_devices.host_copy import HostCopy, copy_to_host_async
from artifex_devices.memory import MemoryReport, memory_report
from artifex_devices.mesh import DeviceMeshManager
from artifex_devices.mesh_scope import set_mesh
from artifex_devices.placement import block_until_ready, device_get, device_put
from artifex_devices.scopes import (
    default_device,
    enable_x64,
    transfer_guard,
    transfer_guard_device_to_device,
    transfer_guard_device_to_host,
    transfer_guard_host_to_device,
)
from artifex_devices.shape_dtype_struct import ShapeDtypeStruct
from artifex_devices.sharding import P, make_mesh
from artifex_devices.stacked_placement import device_put_replicated, device_put_sharded
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
    "HostCopy",
    "Machine",
    "MemoryReport",
    "Mesh",
    "NamedSharding",
    "P",
    "PartitionSpec",
    "ShapeDtypeStruct",
    "Shard",
    "Sharding",
    "SingleDeviceSharding",
    "block_until_ready",
    "clear_caches",
    "config",
    "copy_to_host_async",
    "debug",
    "default_backend",
    "default_device",
    "device_count",
    "device_get",
    "device_put",
    "device_put_replicated",
    "device_put_sharded",
    "devices",
    "distribute_batch",
    "dlpack",
    "enable_x64",
    "errors",
    "experimental",
    "get_batch_size_recommendation",
    "host_count",
    "host_id",
    "host_ids",
    "lax",
    "layout",
    "live_arrays",
    "local_device_count",
    "local_devices",
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
    "make_mesh",
    "memory_report",
    "place_on_device",
    "process_count",
    "process_index",
    "process_indices",
    "render",
    "reshard",
    "set_mesh",
    "sharding",
    "shutdown",
    "simulate",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
    "tree",
    "tree_util",
    "with_sharding_constraint",
]
