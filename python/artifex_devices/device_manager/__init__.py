# SPDX-License-Identifier: Apache-2.0
"""Device management: detection, settings that act and can be undone, and one manager for the process."""

from __future__ import annotations

import os
import sys
import threading

from artifex_devices._base.caller import warn_user
from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices._core import Device
from artifex_devices._hardware.detection import CUDADetector, DeviceCapabilities, DeviceDetector, DeviceType
from artifex_devices.device_manager.configuration import (
    DeviceConfiguration,
    JAXDeviceManager,
    MemoryStrategy,
    check_configuration,
)
from artifex_devices.device_manager.manager import DeviceManager, fact_lines

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
add_public_lookup(__name__)


class _Process:
    """The manager of the process, and the lock that guards it."""

    lock = threading.RLock()
    manager: DeviceManager | None = None

    @classmethod
    def renew_lock(cls) -> None:
        cls.lock = threading.RLock()  # another thread may have held it when the process was forked


os.register_at_fork(after_in_child=_Process.renew_lock)


def get_device_manager(config: DeviceConfiguration | None = None, force_reinit: bool = False) -> DeviceManager:
    """Returns the manager of the process; the first call creates it.

    Args:
        config: Configuration of a new manager. If the existing manager has another configuration, the argument is
            ignored with a warning.
        force_reinit: Whether to create a new manager and close the existing one. A closed manager is always replaced.

    Raises:
        TypeError: `config` is not a DeviceConfiguration.

    Warns:
        UserWarning: A configuration is ignored, or DeviceManager warns.

    Example:
        >>> import artifex_devices as ad
        >>> config = ad.DeviceConfiguration(platform_priority=["cpu"])
        >>> manager = ad.get_device_manager(config, force_reinit=True)
        >>> ad.get_device_manager() is manager
        True
        >>> manager.close()
    """
    with _Process.lock:
        old = _Process.manager
        if old is None or old.is_closed or force_reinit:
            new = _Process.manager = DeviceManager(config)
            if old is not None:
                old.close()  # last: if creating the new manager fails, the old one stays open
            return new
    if config is not None and not old.acts_by(check_configuration("get_device_manager", config)):
        warn_user(  # without the lock: the user's function for warnings may call get_device_manager
            "get_device_manager: config is ignored, the process has a manager with other settings; write "
            "get_device_manager(config, force_reinit=True)"
        )
    return old


def configure_for_generative_models(
    memory_strategy: MemoryStrategy = MemoryStrategy.BALANCED, enable_mixed_precision: bool = True
) -> DeviceManager:
    """Creates a new manager for the process, as `get_device_manager(config, force_reinit=True)` does.

    Args:
        memory_strategy: Share of the devices' memory that Arrays may take.
        enable_mixed_precision: Recorded in the configuration; `get_device_info()["not_applied"]` explains its effect on
            this hardware.

    Raises:
        TypeError: An argument has a wrong type.

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
    """Returns whether the runtime has a GPU, by the manager of the process; creates the manager if necessary."""
    return get_device_manager().has_gpu


def get_default_device() -> Device:
    """Returns the first device of the best available platform; creates the manager of the process if necessary."""
    return get_device_manager().jax_manager.get_default_device()


def print_device_info() -> None:
    """Prints the facts that the manager of the process knows; creates it if necessary.

    The title has its emoji if the encoding of the output has it. If the detector and the runtime disagree on the
    devices, the last line reports it.
    """
    title = "🔍 Artifex Device Manager"
    try:
        title.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        title = title[2:]
    print(title, "=" * 40, *fact_lines(get_device_manager()), sep="\n")
