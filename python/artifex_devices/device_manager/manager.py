# SPDX-License-Identifier: Apache-2.0
"""DeviceManager: the devices of the process, and settings that take effect and can be undone."""

from __future__ import annotations

import copy
from numbers import Integral
from typing import Any, NoReturn

from artifex_devices import _core
from artifex_devices._base.caller import warn_user
from artifex_devices._base.checks import check_number, failure, wrong_type
from artifex_devices._base.leaf_types import Record
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import internal
from artifex_devices._hardware.detection import CUDADetector, DeviceCapabilities, DeviceDetector, DeviceType
from artifex_devices._runtime.devices import default_backend
from artifex_devices.device_manager import process_settings
from artifex_devices.device_manager.configuration import (
    DeviceConfiguration,
    JAXDeviceManager,
    MemoryStrategy,
    check_configuration,
)
from artifex_devices.device_manager.unapplied_settings import ManagerState, settings_without_effect

_SMALL_MODEL = 1_000_000  # parameters; Source: the device-management document
_LARGE_MODEL = 100_000_000


@public("artifex_devices.device_manager")
class DeviceManager:
    """Detects the hardware, applies a configuration, and lists devices.

    If the user passes a configuration, each device's limit becomes its memory times the fraction (an existing tighter
    limit stays), `enable_x64=True` is set, and the environment variables are set. `close()`, or the end of a `with`
    block, undoes it all. Of several open managers, the settings of the newest apply. The settings of a manager that was
    dropped without `close()` apply until another manager sets the same or closes. `get_device_info()["not_applied"]`
    lists settings without effect.

    Attributes:
        detector: Detector of the hardware.
        capabilities: DeviceCapabilities that the detector reported. The device lists have the devices of the runtime.
        jax_manager: JAXDeviceManager with the same configuration.

    Example:
        >>> import artifex_devices as ad
        >>> cautious = ad.DeviceConfiguration(ad.MemoryStrategy.CONSERVATIVE, platform_priority=["cpu"])
        >>> with ad.simulate(4), ad.DeviceManager(cautious) as manager:
        ...     device = manager.jax_manager.get_default_device()
        ...     device.memory_stats()["bytes_limit"] == int(0.6 * device.memory_bytes)
        True
    """

    def __init__(self, config: DeviceConfiguration | None = None, detector: DeviceDetector | None = None) -> None:
        """Detects the hardware and applies the configuration.

        Args:
            config: Settings to apply; None applies nothing.
            detector: Detector of the hardware; None is a CUDADetector.

        Raises:
            TypeError: `config` or `detector` has a wrong type, or the detector does not return DeviceCapabilities with
                a DeviceType and a count.
            ValueError: The configuration was changed in place to a value that is not allowed, or the detector's count
                is negative.

        Warns:
            UserWarning: CUDA is in the priorities without a GPU, or a variable or flag of the user is overwritten.
        """
        self._config = check_configuration("DeviceManager", config)
        self.jax_manager = JAXDeviceManager(self.config)
        self.detector = _check_detector(detector)
        self._applied = self.config.copy()
        self._has_limits = config is not None  # a configuration of the user sets limits
        self._is_late = internal.base_client_exists()  # the library has read the environment already
        self._limits: dict[_core.Device, int] = {}
        self._is_closed = False
        try:
            self._apply()
        except BaseException:  # a warning may be an error too
            self.close()
            raise

    def _apply(self) -> None:
        self._set_variables(self._applied.environment_variables)  # before the first use of a device, which reads them
        self.capabilities = _checked_capabilities(self.detector.detect_capabilities())
        if self._applied.enable_x64:
            process_settings.X64.set(self, {"jax_enable_x64": True})
        if self._has_limits:
            fraction = self._applied.memory_fraction
            assert fraction is not None  # reading it returns a number
            devices = [device for device in self.jax_manager.devices if not device.is_compile_only]
            self._limits = {device: int(fraction * device.memory_bytes) for device in devices}
            process_settings.LIMITS.set(self, self._limits)
        if "cuda" in self._applied.platform_priority and not self.has_gpu:
            unused = f"no GPU can be used: the detector reports {self.capabilities.device_count}, the runtime has 0"
            why = unused if self.capabilities.device_type is DeviceType.GPU else "no GPU detected"
            warn_user(f"CUDA requested but {why}. Falling back to CPU.")

    def _set_variables(self, variables: dict[str, str]) -> None:
        overwritten = []
        for name, user in process_settings.VARIABLES.set(self, variables).items():
            if name == "XLA_FLAGS":
                replaced = process_settings.merged_flags(user, variables[name])[1]
                overwritten += [f"{flag} of XLA_FLAGS" for flag in replaced]
            elif user not in (None, variables[name]):
                overwritten.append(f"{name}={safe_repr(user)}")
        if overwritten:
            warn_user(
                f"DeviceManager: environment_variables overwrites parts of the environment: {', '.join(overwritten)}; "
                "close() restores them"
            )

    @property
    def config(self) -> DeviceConfiguration:
        """The settings; a later change has no effect on this manager."""
        return self._config

    @property
    def has_gpu(self) -> bool:
        """Whether the runtime has a GPU: then `jax_manager.gpu_devices[0]` exists."""
        return self.gpu_count > 0

    @property
    def device_count(self) -> int:
        """Number of devices of the runtime."""
        return len(self.jax_manager.devices)

    @property
    def gpu_count(self) -> int:
        """Number of GPUs of the runtime."""
        return len(self.jax_manager.gpu_devices)

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    def acts_by(self, config: DeviceConfiguration) -> bool:
        """Returns whether this manager has applied these settings."""
        return self._has_limits and config == self._applied

    def get_device_info(self) -> Record:
        """Returns the devices, the settings, and which settings have no effect.

        Returns:
            A dict of backend; capabilities, as detected; configuration, a copy; jax_devices, gpu_devices, cpu_devices,
            lists of str of the runtime, and default_device, a str; detection_problem (why the detector found no GPU or
            could not read a fact, or None); memory_limits (current bytes by device, or None for no limit); environment
            (current values of the variables that this manager has set, or None for an unset variable); not_applied (the
            reason by the name of each setting without effect).
        """
        manager = self.jax_manager
        return {
            "backend": default_backend(),
            "capabilities": self.capabilities,
            "configuration": copy.deepcopy(self.config),  # not checked: shows a value that was changed in place
            "jax_devices": [str(device) for device in manager.devices],
            "gpu_devices": [str(device) for device in manager.gpu_devices],
            "cpu_devices": [str(device) for device in manager.cpu_devices],
            "default_device": str(manager.get_default_device()),
            "detection_problem": getattr(self.detector, "reason", None),
            "memory_limits": {str(device): process_settings.LIMITS.read(device) for device in manager.devices},
            "environment": {
                name: process_settings.VARIABLES.read(name) for name in self._applied.environment_variables
            },
            "not_applied": dict(settings_without_effect(self._state())),
        }

    def _state(self) -> ManagerState:
        return ManagerState(
            config=self.config,
            applied=self._applied,
            jax_manager=self.jax_manager,
            detector=self.detector,
            capabilities=self.capabilities,
            gpu_count=self.gpu_count,
            has_limits=self._has_limits,
            limits=self._limits,
            is_late=self._is_late,
            is_closed=self.is_closed,
        )

    def optimize_for_model_size(self, model_params: float) -> DeviceConfiguration:
        """Returns a configuration: CONSERVATIVE below 1 million parameters, AGGRESSIVE from 100 million.

        Args:
            model_params: Number of parameters.

        Returns:
            A new configuration with that strategy and its fraction, and all other settings of this manager. It takes
            effect in a new DeviceManager.

        Raises:
            TypeError: `model_params` is not a number.
            ValueError: `model_params` is negative or not finite.

        Example:
            >>> import artifex_devices as ad
            >>> config = ad.DeviceConfiguration(platform_priority=["cpu"])
            >>> with ad.DeviceManager(config) as manager:
            ...     manager.optimize_for_model_size(150_000_000).memory_fraction
            0.9
        """
        name = "DeviceManager.optimize_for_model_size"
        check_number(name, "model_params", model_params, "write 150_000_000", minimum=0)
        strategy = MemoryStrategy.BALANCED if model_params < _LARGE_MODEL else MemoryStrategy.AGGRESSIVE
        optimal = self.config.copy()
        optimal.memory_strategy = MemoryStrategy.CONSERVATIVE if model_params < _SMALL_MODEL else strategy
        return optimal

    def close(self) -> None:
        """Restores limits, the 64-bit setting and environment variables, unless other code has changed them since.

        The settings of older open managers apply again. Closing a closed manager has no effect.
        """
        self._is_closed = True
        for settings in (process_settings.LIMITS, process_settings.X64, process_settings.VARIABLES):
            settings.release(self)

    def __reduce__(self) -> NoReturn:
        """Raises TypeError, because a copy could not undo the settings."""
        raise failure(
            TypeError,
            "DeviceManager",
            "a manager holds settings of its process and cannot be copied or pickled",
            expected="its configuration",
            fix="copy or pickle manager.config, and write DeviceManager(config)",
        )

    def __enter__(self) -> DeviceManager:
        """Returns the manager."""
        if self._is_closed:
            raise failure(
                RuntimeError,
                "DeviceManager",
                "the manager was closed and its settings undone",
                expected="an open one",
                fix="write DeviceManager(config)",
            )
        return self

    def __exit__(self, *error: object) -> None:
        """Closes the manager."""
        self.close()


def _check_detector(detector: object) -> DeviceDetector:
    if detector is None:
        return CUDADetector()
    if isinstance(detector, type) or not isinstance(detector, DeviceDetector):
        expected = "an object with a method detect_capabilities"
        raise wrong_type("DeviceManager", "detector", detector, expected, "give an instance")
    return detector


def _checked_capabilities(capabilities: object) -> DeviceCapabilities:
    call, fix = "DeviceManager: detector.detect_capabilities() returned", "write DeviceCapabilities(DeviceType.CPU, 1)"
    if not isinstance(capabilities, DeviceCapabilities):
        raise TypeError(f"{call} {safe_repr(capabilities)}; expected DeviceCapabilities; {fix}")
    kind: Any = capabilities.device_type  # a detector may return any value
    count: Any = capabilities.device_count
    if not isinstance(kind, DeviceType) or isinstance(count, bool) or not isinstance(count, Integral):
        raise TypeError(
            f"{call} values of a wrong type; expected a DeviceType as device_type and an integer as device_count, got "
            f"{safe_repr(kind)} and {safe_repr(count)}; {fix}"
        )
    if count < 0:
        raise ValueError(f"{call} a device_count of {count}; expected 0 or more; {fix}")
    return capabilities


def fact_lines(manager: DeviceManager) -> list[str]:
    """Formats the facts that a manager knows."""
    known, info = manager.capabilities, manager.get_device_info()
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
    return [f"{name}: {value}" for name, value in rows.items() if value is not None]
