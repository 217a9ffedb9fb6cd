# SPDX-License-Identifier: Apache-2.0
"""Device management: detection, settings that act and can be taken back, and one manager for the process."""

from artifex_devices.device_manager.process_manager import (
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

__all__ = [
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
]
