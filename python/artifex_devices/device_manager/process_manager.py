# SPDX-License-Identifier: Apache-2.0
"""Device management: detection, settings that act and can be taken back, and one manager for the process."""

from __future__ import annotations

import os
import threading

from artifex_devices._base.caller import warn_user
from artifex_devices._core import Device
from artifex_devices._hardware.detection import CUDADetector, DeviceCapabilities, DeviceDetector, DeviceType
from artifex_devices.device_manager.configuration import DeviceConfiguration, MemoryStrategy
from artifex_devices.device_manager.manager import DeviceManager
from artifex_devices.device_manager.world_devices import JAXDeviceManager, check_configuration

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


class _Global:
    """The process's manager."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.manager: DeviceManager | None = None

    def renew_lock(self) -> None:
        self.lock = threading.RLock()  # another thread may have held it when the process was forked


_global = _Global()
os.register_at_fork(after_in_child=_global.renew_lock)


def get_device_manager(config: DeviceConfiguration | None = None, force_reinit: bool = False) -> DeviceManager:
    """The process's manager; made at the first call, by one thread.

    Args:
        config: Its configuration when it is made. One that differs from that of the manager there is, is ignored with
            a warning.
        force_reinit: Make a new one and close the old one. A closed one is always replaced.

    Raises:
        TypeError: `config` is of another type.

    Warns:
        UserWarning: A configuration is ignored; and what DeviceManager warns of.

    Example:
        >>> import artifex_devices as ad
        >>> config = ad.DeviceConfiguration(platform_priority=["cpu"])
        >>> manager = ad.get_device_manager(config, force_reinit=True)
        >>> ad.get_device_manager() is manager
        True
        >>> manager.close()
    """
    with _global.lock:
        old = _global.manager
        if old is None or old.is_closed or force_reinit:
            made = _global.manager = DeviceManager(config)
            if old is not None:
                old.close()  # after the new one, so that a failure leaves it; the newest one's settings hold
            return made
    if config is not None and not old.acts_by(check_configuration("get_device_manager", config)):
        warn_user(  # without the lock: the user may have a function for warnings
            "get_device_manager: config is ignored, the process has a manager with other settings; say "
            "get_device_manager(config, force_reinit=True)"
        )
    return old


def configure_for_generative_models(
    memory_strategy: MemoryStrategy = MemoryStrategy.BALANCED, enable_mixed_precision: bool = True
) -> DeviceManager:
    """Makes a new manager for the process, as `get_device_manager(config, force_reinit=True)` does.

    Args:
        memory_strategy: How much of the devices' memory Arrays may take.
        enable_mixed_precision: Recorded in the configuration; `get_device_info()["not_applied"]` says what it means on
            this hardware.

    Raises:
        TypeError: An argument is of another type.

    Example:
        >>> import artifex_devices as ad, warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")  # of a machine without CUDA
        ...     manager = ad.configure_for_generative_models(ad.MemoryStrategy.AGGRESSIVE)
        >>> manager.config.memory_fraction
        0.9
        >>> manager.close()
    """
    config = DeviceConfiguration(memory_strategy=memory_strategy, enable_mixed_precision=enable_mixed_precision)
    return get_device_manager(config, force_reinit=True)


def has_gpu() -> bool:
    """Whether the runtime has a GPU; makes the process's manager if need be."""
    return get_device_manager().has_gpu


def get_default_device() -> Device:
    """The first device of the best platform that there is; makes the process's manager if need be."""
    return get_device_manager().jax_manager.get_default_device()


def print_device_info() -> None:
    """Prints what the process's manager knows; makes it if need be.

    The title has its sign only where the output can show it. Where the detector's word differs from the devices that
    there are, a last line reports it.
    """
    manager = get_device_manager()
    known = manager.capabilities
    print(_title())
    print("=" * 40)
    info = manager.get_device_info()
    rows = {
        "Backend": info["backend"],
        "Device Type": known.device_type.value,
        "Device Count": manager.device_count,
        "GPU Count": manager.gpu_count,
        "Memory Strategy": manager.config.memory_strategy.value,
        "Memory Fraction": manager.config.memory_fraction,
        "Default Device": info["default_device"],
        "CUDA Version": known.cuda_version,
        "Compute Capability": known.compute_capability,
        "Note": info["not_applied"].get("capabilities"),
    }
    for name, value in rows.items():
        if value is not None:
            print(f"{name}: {value}")


def _title() -> str:
    import sys

    title = "Artifex Device Manager"
    try:
        f"🔍 {title}".encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return title
    return f"🔍 {title}"
