# SPDX-License-Identifier: Apache-2.0
"""Names of the Artifex project, for its programs: device managers, placement, batch sizes and meshes.

`artifex.generative_models.core.device_manager` and `artifex.generative_models.training.distributed` have them. The
package itself has them too, as before, but lists only names that programs of other projects need.
"""

from __future__ import annotations

from artifex_devices._base.public_lookup import add_public_lookup
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
from artifex_devices.mesh import DeviceMeshManager

__all__ = [
    "BatchSizeRecommendation",
    "CUDADetector",
    "DeviceCapabilities",
    "DeviceConfiguration",
    "DeviceDetector",
    "DeviceManager",
    "DeviceMeshManager",
    "DevicePlacement",
    "DeviceType",
    "HardwareType",
    "JAXDeviceManager",
    "MemoryStrategy",
    "configure_for_generative_models",
    "distribute_batch",
    "get_batch_size_recommendation",
    "get_default_device",
    "get_device_manager",
    "has_gpu",
    "place_on_device",
    "print_device_info",
]
add_public_lookup(__name__)
