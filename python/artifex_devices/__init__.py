# SPDX-License-Identifier: Apache-2.0
"""artifex_devices: the device runtime that NumPy never had.

Devices, meshes, shardings and sharded arrays with the names and semantics of JAX's device layer, on a
C++ core, for NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from artifex_devices import arrays as _arrays  # noqa: F401 - gives Array its operators
from artifex_devices import core_reprs as _core_reprs  # noqa: F401 - lets pprint print the core's objects
from artifex_devices import errors, sharding
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
)
from artifex_devices.caches import clear_caches, live_arrays
from artifex_devices.config import config
from artifex_devices.constraints import reshard, with_sharding_constraint
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
from artifex_devices.lifetime import shutdown
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
from artifex_devices.sharding import P, make_mesh
from artifex_devices.world import simulate

if TYPE_CHECKING:
    from artifex_devices import (
        array_api,
        calibration,
        cluster,
        debug,
        device_manager,
        distributed,
        dlpack,
        experimental,
        lax,
        layout,
        memory,
        mesh_utils,
        models,
        multihost_utils,
        planner,
        profiler,
        render,
        roofline,
        step_model,
        tree,
        tree_util,
        xla_client,
    )
    from artifex_devices.accelerator_report import AcceleratorReport, FoundAccelerator, NvLink, find_accelerators
    from artifex_devices.assembly import (
        make_array_from_callback,
        make_array_from_process_local_data,
        make_array_from_single_device_arrays,
    )
    from artifex_devices.batch_measurement import BatchSizeMeasurement, measure_batch_size
    from artifex_devices.device_manager import (
        CUDADetector,
        DeviceCapabilities,
        DeviceConfiguration,
        DeviceDetector,
        DeviceManager,
        DeviceType,
        JAXDeviceManager,
        MemoryStrategy,
        configure_for_generative_models,
        get_default_device,
        get_device_manager,
        has_gpu,
        print_device_info,
    )
    from artifex_devices.device_placement import (
        BatchSizeRecommendation,
        DevicePlacement,
        HardwareType,
        distribute_batch,
        get_batch_size_recommendation,
        place_on_device,
    )
    from artifex_devices.host_copy import HostCopy, copy_to_host_async
    from artifex_devices.memory import MemoryReport, memory_report
    from artifex_devices.mesh import DeviceMeshManager
    from artifex_devices.shape_dtype_struct import ShapeDtypeStruct
    from artifex_devices.spmd.jit import jit
    from artifex_devices.spmd.pmap import pmap
    from artifex_devices.spmd.shard_map import shard_map
    from artifex_devices.spmd.smap import smap
    from artifex_devices.stacked_placement import device_put_replicated, device_put_sharded

__version__ = "0.1.0"

__all__ = [
    "AbstractMesh",
    "AcceleratorReport",
    "Array",
    "AxisType",
    "BatchSizeMeasurement",
    "BatchSizeRecommendation",
    "CUDADetector",
    "Client",
    "Device",
    "DeviceCapabilities",
    "DeviceConfiguration",
    "DeviceDetector",
    "DeviceManager",
    "DeviceMeshManager",
    "DevicePlacement",
    "DeviceType",
    "FoundAccelerator",
    "HardwareType",
    "HostCopy",
    "JAXDeviceManager",
    "Machine",
    "MemoryReport",
    "MemoryStrategy",
    "Mesh",
    "NamedSharding",
    "NvLink",
    "P",
    "PartitionSpec",
    "ShapeDtypeStruct",
    "Shard",
    "Sharding",
    "SingleDeviceSharding",
    "array_api",
    "block_until_ready",
    "calibration",
    "clear_caches",
    "cluster",
    "config",
    "configure_for_generative_models",
    "copy_to_host_async",
    "debug",
    "default_backend",
    "default_device",
    "device_count",
    "device_get",
    "device_manager",
    "device_put",
    "device_put_replicated",
    "device_put_sharded",
    "devices",
    "distribute_batch",
    "distributed",
    "dlpack",
    "enable_x64",
    "errors",
    "experimental",
    "find_accelerators",
    "get_batch_size_recommendation",
    "get_default_device",
    "get_device_manager",
    "has_gpu",
    "host_count",
    "host_id",
    "host_ids",
    "jit",
    "lax",
    "layout",
    "live_arrays",
    "local_device_count",
    "local_devices",
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
    "make_mesh",
    "measure_batch_size",
    "memory",
    "memory_report",
    "mesh_utils",
    "models",
    "multihost_utils",
    "place_on_device",
    "planner",
    "pmap",
    "print_device_info",
    "process_count",
    "process_index",
    "process_indices",
    "profiler",
    "render",
    "reshard",
    "roofline",
    "set_mesh",
    "shard_map",
    "sharding",
    "shutdown",
    "simulate",
    "smap",
    "step_model",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
    "tree",
    "tree_util",
    "with_sharding_constraint",
    "xla_client",
]

# Imported at their first use: programs do not pay for what they do not need.
_LATE_MODULES = (
    "array_api",
    "calibration",
    "cluster",
    "debug",
    "device_manager",
    "distributed",
    "dlpack",
    "experimental",
    "lax",
    "layout",
    "memory",
    "mesh_utils",
    "models",
    "multihost_utils",
    "planner",
    "profiler",
    "render",
    "roofline",
    "step_model",
    "tree",
    "tree_util",
    "xla_client",
)
_LATE_NAMES = {
    "artifex_devices.accelerator_report": (
        "AcceleratorReport",
        "FoundAccelerator",
        "NvLink",
        "find_accelerators",
    ),
    "artifex_devices.assembly": (
        "make_array_from_callback",
        "make_array_from_process_local_data",
        "make_array_from_single_device_arrays",
    ),
    "artifex_devices.batch_measurement": (
        "BatchSizeMeasurement",
        "measure_batch_size",
    ),
    "artifex_devices.device_manager": (
        "CUDADetector",
        "DeviceCapabilities",
        "DeviceConfiguration",
        "DeviceDetector",
        "DeviceManager",
        "DeviceType",
        "JAXDeviceManager",
        "MemoryStrategy",
        "configure_for_generative_models",
        "get_default_device",
        "get_device_manager",
        "has_gpu",
        "print_device_info",
    ),
    "artifex_devices.device_placement": (
        "BatchSizeRecommendation",
        "DevicePlacement",
        "HardwareType",
        "distribute_batch",
        "get_batch_size_recommendation",
        "place_on_device",
    ),
    "artifex_devices.host_copy": (
        "HostCopy",
        "copy_to_host_async",
    ),
    "artifex_devices.memory": (
        "MemoryReport",
        "memory_report",
    ),
    "artifex_devices.mesh": ("DeviceMeshManager",),
    "artifex_devices.shape_dtype_struct": ("ShapeDtypeStruct",),
    "artifex_devices.spmd.jit": ("jit",),
    "artifex_devices.spmd.pmap": ("pmap",),
    "artifex_devices.spmd.shard_map": ("shard_map",),
    "artifex_devices.spmd.smap": ("smap",),
    "artifex_devices.stacked_placement": (
        "device_put_replicated",
        "device_put_sharded",
    ),
}
_LATE = {
    **{name: (f"artifex_devices.{name}", None) for name in _LATE_MODULES},
    **{name: (module, name) for module, names in _LATE_NAMES.items() for name in names},
}

# Names of JAX that need its compiler or its tracing, and what does their work here.
_ABSENT = {
    "grad": "write the gradient as a function of its own and average it over devices with lax.pmean",
    "value_and_grad": "write a function that returns value and gradient and average both with lax.pmean",
    "vmap": "use NumPy's broadcasting, or pmap and shard_map to map over devices",
}


def __getattr__(name: str) -> Any:
    if name in _LATE:
        import importlib

        module_name, attribute = _LATE[name]
        module = importlib.import_module(module_name)
        globals()[name] = value = module if attribute is None else getattr(module, attribute)
        return value
    if name in _ABSENT:
        raise AttributeError(
            f"artifex_devices.{name}: functions are not traced or differentiated here; expected a name of this "
            f"package, got JAX's {name}; {_ABSENT[name]}"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
