# SPDX-License-Identifier: Apache-2.0
"""DeviceManager: what devices there are, and settings that act on the process and can be taken back."""

from __future__ import annotations

import copy
import math
import numbers
from types import TracebackType
from typing import Any, NoReturn

from artifex_devices import _core
from artifex_devices._base.caller import warn_user
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._hardware.detection import CUDADetector, DeviceCapabilities, DeviceDetector, DeviceType
from artifex_devices._runtime.devices import default_backend
from artifex_devices.device_manager.configuration import DeviceConfiguration, MemoryStrategy
from artifex_devices.device_manager.process_settings import LIMITS, VARIABLES, X64, merged_flags
from artifex_devices.device_manager.settings_report import SettingsReport
from artifex_devices.device_manager.world_devices import JAXDeviceManager, check_configuration

_SMALL_MODEL = 1_000_000  # parameters; Source: the device-management document
_LARGE_MODEL = 100_000_000


@public("artifex_devices.device_manager")
class DeviceManager:
    """Detects the hardware, makes a configuration act, and offers devices.

    With a configuration of the user's, each device's limit becomes its memory times the fraction (a tighter limit that
    stands already stays), `enable_x64=True` is set, and the environment variables asked for are set. `close()`, or the
    end of a `with` block, takes all of it back. Of several open managers the newest one's settings hold. What a
    manager set that was dropped without `close()` holds until another one sets the same or closes. What does not act is
    said by `get_device_info()["not_applied"]`.

    Attributes:
        detector: The detector.
        capabilities: What the detector said, a DeviceCapabilities. The device lists hold what there really is.
        jax_manager: A JAXDeviceManager.

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
            config: Settings; None is the default ones, which set nothing.
            detector: Finds out what hardware there is; None is a CUDADetector.

        Raises:
            TypeError: `config` or `detector` is of another type, or the detector returns no DeviceCapabilities with a
                DeviceType and a count.
            ValueError: The configuration was changed in place to something that is not allowed; the detector's count
                is negative.

        Warns:
            UserWarning: CUDA is in the priorities and there is no GPU; a variable or flag of the user's is overwritten.
        """
        self._config = check_configuration("DeviceManager", config)
        self.jax_manager = JAXDeviceManager(self.config)
        self.detector = _check_detector(detector)
        self._applied = self.config.copy()
        self._is_given = config is not None
        self._is_late = _core._base_client_exists()  # the environment was read before this manager
        self._limits: dict[_core.Device, int] = {}
        self._is_closed = False
        try:
            self._apply()
        except BaseException:  # a warning may be one, too
            self.close()
            raise

    def _apply(self) -> None:
        self._set_variables(self._applied.environment_variables)  # first: the first use of a device reads them
        self.capabilities = _checked_capabilities(self.detector.detect_capabilities())
        if self._applied.enable_x64:
            X64.ask(self, "jax_enable_x64", True)
        if self._is_given:
            fraction = self._applied.memory_fraction
            assert fraction is not None  # reading it gives a number
            devices = [device for device in self.jax_manager.devices if not device.is_compile_only]
            self._limits = {device: int(fraction * device.memory_bytes) for device in devices}
            LIMITS.ask_all(self, self._limits)
        if "cuda" in self._applied.platform_priority and not self.has_gpu:
            if self.capabilities.device_type is DeviceType.GPU:
                count = self.capabilities.device_count
                why = f"no GPU can be used: the detector reports {count}, the runtime has none"
            else:
                why = "no GPU detected"
            warn_user(f"CUDA requested but {why}. Falling back to CPU.")

    def _set_variables(self, variables: dict[str, str]) -> None:
        overwritten = []
        for name, value in variables.items():
            user = VARIABLES.ask(self, name, value)
            if name == "XLA_FLAGS":
                overwritten += [f"{flag} of XLA_FLAGS" for flag in merged_flags(user, value)[1]]
            elif user not in (None, value):
                overwritten.append(f"{name}={safe_repr(user)}")
        if overwritten:
            warn_user(
                f"DeviceManager: environment_variables overwrites what the environment has: {', '.join(overwritten)}; "
                "close() brings it back"
            )

    @property
    def config(self) -> DeviceConfiguration:
        """The settings; changing them later acts on managers that are made with them then."""
        return self._config

    @property
    def has_gpu(self) -> bool:
        """Whether the runtime has a GPU, so that `jax_manager.gpu_devices[0]` is there."""
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
        """Whether the settings that this manager applied, when it was made, are these."""
        return self._is_given and config == self._applied

    def get_device_info(self) -> dict[str, Any]:
        """What there is, what was asked for, and what became of it.

        Returns:
            A dict of backend; capabilities, the detector's word; configuration, a copy; jax_devices, gpu_devices,
            cpu_devices, lists of text, and default_device, text: what the runtime has. Besides detection_problem (why
            the detector found no GPU or not all of what it looks for, or None); memory_limits (bytes by device, as they
            hold now; None for no limit); environment (the variables that this manager set, as they stand; None where
            one is not there); not_applied (a text for each setting that does not act).
        """
        manager = self.jax_manager
        return {
            "backend": default_backend(),
            "capabilities": self.capabilities,
            "configuration": copy.deepcopy(self.config),  # unchecked: what was spoilt in place is shown as it is
            "jax_devices": [str(device) for device in manager.devices],
            "gpu_devices": [str(device) for device in manager.gpu_devices],
            "cpu_devices": [str(device) for device in manager.cpu_devices],
            "default_device": str(manager.get_default_device()),
            "detection_problem": getattr(self.detector, "reason", None),
            "memory_limits": {str(device): LIMITS.read(device) for device in manager.devices},
            "environment": {name: VARIABLES.read(name) for name in self._applied.environment_variables},
            "not_applied": self._report().lines(),
        }

    def optimize_for_model_size(self, model_params: float) -> DeviceConfiguration:
        """A configuration for a model: CONSERVATIVE below 1 million parameters, AGGRESSIVE from 100 million on.

        Args:
            model_params: Number of parameters.

        Returns:
            A new configuration with that strategy and its fraction, and all other settings of this manager's. It acts
            once a DeviceManager is made with it.

        Raises:
            TypeError: It is not a number.
            ValueError: It is negative or not finite.

        Example:
            >>> import artifex_devices as ad
            >>> config = ad.DeviceConfiguration(platform_priority=["cpu"])
            >>> with ad.DeviceManager(config) as manager:
            ...     manager.optimize_for_model_size(150_000_000).memory_fraction
            0.9
        """
        name = "DeviceManager.optimize_for_model_size"
        count: Any = model_params
        if isinstance(count, bool) or not isinstance(count, numbers.Real):
            raise TypeError(
                f"{name}: model_params is of type {type(count).__name__}; expected a number of parameters, got "
                f"{safe_repr(count)}; write 150_000_000"
            )
        if not (math.isfinite(count) and model_params >= 0):
            raise ValueError(
                f"{name}: model_params is out of range; expected a number of parameters, got {model_params}; "
                "write 150_000_000"
            )
        optimal = self.config.copy()
        if model_params < _SMALL_MODEL:
            optimal.memory_strategy = MemoryStrategy.CONSERVATIVE
        elif model_params < _LARGE_MODEL:
            optimal.memory_strategy = MemoryStrategy.BALANCED
        else:
            optimal.memory_strategy = MemoryStrategy.AGGRESSIVE
        return optimal

    def _report(self) -> SettingsReport:
        return SettingsReport(
            now=self.config,
            applied=self._applied,
            limits=self._limits if self._is_given else None,
            is_late=self._is_late,
            is_closed=self._is_closed,
            capabilities=self.capabilities,
            detection_problem=getattr(self.detector, "reason", None),
            runtime=self.jax_manager,
        )

    def close(self) -> None:
        """Takes back limits, 64-bit setting and environment variables, where nobody else has changed them since.

        Older open managers' settings hold again. Closing twice is once.
        """
        self._is_closed = True
        for settings in (LIMITS, X64, VARIABLES):
            settings.release(self)

    def __reduce__(self) -> NoReturn:
        """Raises: a copy would not hold the settings, and could not take them back."""
        raise TypeError(
            "DeviceManager: a manager holds settings of its process and cannot be copied or pickled; expected its "
            "configuration; copy or pickle manager.config, and write DeviceManager(config) there"
        )

    def __enter__(self) -> DeviceManager:
        """The manager itself."""
        if self._is_closed:
            raise RuntimeError(
                "DeviceManager: the manager was closed and its settings taken back; expected an open one; make a new "
                "one, DeviceManager(config)"
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it."""
        self.close()


def _check_detector(detector: Any) -> DeviceDetector:
    if detector is None:
        return CUDADetector()
    if isinstance(detector, type) or not isinstance(detector, DeviceDetector):
        raise TypeError(
            f"DeviceManager: detector is {safe_repr(detector)}; expected an object with a method detect_capabilities; "
            "give an instance"
        )
    return detector


def _checked_capabilities(capabilities: Any) -> DeviceCapabilities:
    if not isinstance(capabilities, DeviceCapabilities):
        raise TypeError(
            f"DeviceManager: detector.detect_capabilities() returned {safe_repr(capabilities)}; expected "
            "DeviceCapabilities; return DeviceCapabilities(DeviceType.CPU, 1)"
        )
    kind: Any = capabilities.device_type  # a detector may have filled in anything
    count: Any = capabilities.device_count
    if not isinstance(kind, DeviceType) or isinstance(count, bool) or not isinstance(count, numbers.Integral):
        raise TypeError(
            "DeviceManager: detector.detect_capabilities() returned capabilities with values of another type; expected "
            f"a DeviceType as device_type and an integer as device_count, got {safe_repr(kind)} and "
            f"{safe_repr(count)}; "
            "write DeviceCapabilities(DeviceType.GPU, 4)"
        )
    if count < 0:
        raise ValueError(
            f"DeviceManager: detector.detect_capabilities() returned a device_count of {count}; expected 0 or more; "
            "write DeviceCapabilities(DeviceType.CPU, 1)"
        )
    return capabilities
