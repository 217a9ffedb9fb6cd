# SPDX-License-Identifier: Apache-2.0
"""Which settings of a DeviceManager do not act, and why."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from artifex_devices._core import Device
from artifex_devices._hardware.detection import DeviceCapabilities, DeviceType
from artifex_devices.config import config
from artifex_devices.device_manager.configuration import GPU_PLATFORMS, DeviceConfiguration
from artifex_devices.device_manager.process_settings import LIMITS
from artifex_devices.device_manager.world_devices import JAXDeviceManager

# Variables that this library reads, once: at the first use of a device at the latest.
_READ = ("JAX_NUM_CPU_DEVICES", "JAX_PLATFORMS", "JAX_PLATFORM_NAME", "JAX_DEFAULT_DEVICE", "JAX_ENABLE_X64")
_READ_PREFIX = "JAX_TRANSFER_GUARD"
_COUNT_FLAG = "--xla_force_host_platform_device_count"


@dataclass(frozen=True)
class SettingsReport:
    """What was asked for, beside what there is.

    Attributes:
        now: The configuration as it is.
        applied: As it was when the manager was made.
        limits: Bytes by device that the manager asked for; None where no configuration was given.
        is_late: Whether the environment had been read before.
        is_closed: Whether all was taken back.
        capabilities: The detector's word.
        detection_problem: Why the detector found no GPU, or what it could not find out.
        runtime: The devices that there are.
    """

    now: DeviceConfiguration
    applied: DeviceConfiguration
    limits: dict[Device, int] | None
    is_late: bool
    is_closed: bool
    capabilities: DeviceCapabilities
    detection_problem: str | None
    runtime: JAXDeviceManager

    def lines(self) -> dict[str, str]:
        """A text for each setting that does not act, by its name."""
        return dict(self._lines())

    def disagreement(self) -> str | None:
        """How the detector's word differs from the devices that there are; None where it does not."""
        said = self.capabilities
        devices = self.runtime.devices
        gpus, count = len(self.runtime.gpu_devices), len(devices)
        tpus = sum(device.platform == "tpu" for device in devices)
        there = {DeviceType.GPU: gpus, DeviceType.TPU: tpus, DeviceType.CPU: len(self.runtime.cpu_devices)}
        if said.device_count == there[said.device_type]:
            return None
        return (
            f"the detector says {said.device_count} {said.device_type.value}; the runtime has {count} "
            f"device{'' if count == 1 else 's'}, {gpus} of them GPUs"
        )

    def _lines(self) -> Iterator[tuple[str, str]]:
        if self.is_closed:
            yield "manager", "closed: its settings were taken back"
        if self.now != self.applied:
            changed = [
                f.name for f in dataclasses.fields(self.now) if self._values(f.name)[0] != self._values(f.name)[1]
            ]
            values = ", ".join(f"{n} {self._values(n)[1]!r} to {self._values(n)[0]!r}" for n in changed)
            yield "configuration", f"changed since this manager was made: {values}; DeviceManager(config) applies it"
        if problem := self._memory():
            yield "memory_fraction", problem
        if self.applied.enable_x64 != config.jax_enable_x64:
            if self.applied.enable_x64:
                why = "jax_enable_x64 is False here: another setting or a scope of enable_x64 sets it"
            else:
                why = "False leaves the process's jax_enable_x64, True; config.update('jax_enable_x64', False) narrows"
            yield "enable_x64", why
        if not self.applied.enable_jit:
            yield "enable_jit", "recorded: jit compiles nothing here, functions run as they are"
        if self.applied.enable_mixed_precision:
            word = "faster" if self.capabilities.supports_mixed_precision else "not faster"
            yield (
                "enable_mixed_precision",
                f"recorded: the program chooses its dtypes; by the detector 16-bit floats are {word} on this hardware",
            )
        if problem := self._platforms():
            yield "platform_priority", problem
        if problem := self._variables():
            yield "environment_variables", problem
        if problem := self.disagreement():
            yield "capabilities", problem

    def _values(self, name: str) -> tuple[object, object]:
        return getattr(self.now, name), getattr(self.applied, name)

    def _memory(self) -> str | None:
        if self.limits is None:
            return "recorded: without a configuration that is given, nothing is limited"
        if self.is_closed:
            return None
        problems = []
        for device in self.runtime.devices:
            if device.is_compile_only:
                problems.append(f"{device} has no memory")
            elif device not in self.limits:
                problems.append(f"{device} is of another world than the manager's")
            elif (LIMITS.read(device) or device.memory_bytes) != self.limits[device]:
                held = LIMITS.read(device)
                problems.append(
                    f"{device} has {'no limit' if held is None else f'the limit {held}'} of somebody else's"
                )
        return _shortened(problems)

    def _platforms(self) -> str | None:
        default = self.runtime.default_platform
        absent = []
        for platform in self.applied.platform_priority:
            if ("gpu" if platform in GPU_PLATFORMS else platform) == default:
                break
            absent.append(platform)
        if not absent:
            return None
        said = self.capabilities
        why = ""
        if set(absent) & {"cuda", "gpu"}:
            if said.device_type is DeviceType.GPU:
                why = f" (the detector says {said.device_count} gpu, which this package cannot place data on)"
            elif self.detection_problem:
                why = f" ({self.detection_problem})"
        return f"there is no device of {', '.join(absent)}{why}; the default platform is {default}"

    def _variables(self) -> str | None:
        late, unread = [], []
        for name, value in self.applied.environment_variables.items():
            if name in _READ or name.startswith(_READ_PREFIX) or (name == "XLA_FLAGS" and _COUNT_FLAG in value):
                late.append(name)
            if name == "XLA_FLAGS" and any(not flag.startswith(_COUNT_FLAG) for flag in value.split()):
                unread.append("XLA_FLAGS except for the number of devices")
            elif name != "XLA_FLAGS" and name not in late:
                unread.append(name)
        problems = []
        if late and self.is_late:
            problems.append(f"set after the first use of a device, which reads them: {', '.join(late)}")
        if unread:
            problems.append(f"set for other libraries and child processes, not read by this one: {', '.join(unread)}")
        return "; ".join(problems) or None


def _shortened(problems: list[str]) -> str | None:
    more = len(problems) - 4
    shown = "; ".join(problems[:4])
    return (f"{shown}; and {more} more" if more > 0 else shown) or None
