# SPDX-License-Identifier: Apache-2.0
"""The settings of a DeviceManager that have no effect on the process, with the reasons."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from artifex_devices._base.text import shortened
from artifex_devices._core import Device
from artifex_devices._hardware.detection import DeviceCapabilities, DeviceDetector, DeviceType
from artifex_devices.config import config
from artifex_devices.device_manager.configuration import GPU_PLATFORMS, DeviceConfiguration, JAXDeviceManager
from artifex_devices.device_manager.process_settings import LIMITS

# Variables that this library reads, once: at the first use of a device at the latest.
_READ = ("JAX_NUM_CPU_DEVICES", "JAX_PLATFORMS", "JAX_PLATFORM_NAME", "JAX_DEFAULT_DEVICE", "JAX_ENABLE_X64")
_READ_PREFIX = "JAX_TRANSFER_GUARD"
_COUNT_FLAG = "--xla_force_host_platform_device_count"


@dataclass(frozen=True)
class ManagerState:
    """Configuration of a manager, the settings that it has applied, and the devices that it found.

    Attributes:
        config: The configuration, which may have been changed in place.
        applied: The configuration that was applied.
        jax_manager: The JAXDeviceManager.
        detector: The detector of hardware.
        capabilities: The capabilities that the detector reported.
        gpu_count: Number of GPUs of the runtime.
        has_limits: Whether the configuration limits memory.
        limits: Bytes by device that were set.
        is_late: Whether the library had read the environment before.
        is_closed: Whether its settings were undone.
    """

    config: DeviceConfiguration
    applied: DeviceConfiguration
    jax_manager: JAXDeviceManager
    detector: DeviceDetector
    capabilities: DeviceCapabilities
    gpu_count: int
    has_limits: bool
    limits: Mapping[Device, int]
    is_late: bool
    is_closed: bool


def settings_without_effect(state: ManagerState) -> Iterator[tuple[str, str]]:
    """Yields the name of each setting of a manager without effect on the process, and the reason."""
    now, applied, capabilities = state.config, state.applied, state.capabilities
    if state.is_closed:
        yield "manager", "closed: its settings were undone"
    if now != applied:
        pairs = [(f.name, getattr(applied, f.name), getattr(now, f.name)) for f in fields(now)]
        values = ", ".join(f"{name} {old!r} to {new!r}" for name, old, new in pairs if old != new)
        yield "configuration", f"changed since this manager was created: {values}; DeviceManager(config) applies it"
    if problem := _memory(state):
        yield "memory_fraction", problem
    if applied.enable_x64 != config.jax_enable_x64:
        if applied.enable_x64:
            why = "jax_enable_x64 is False here: another setting or a scope of enable_x64 sets it"
        else:
            why = "False does not change jax_enable_x64, True here; write config.update('jax_enable_x64', False)"
        yield "enable_x64", why
    if not applied.enable_jit:
        yield "enable_jit", "recorded: jit does not compile here, functions run unchanged"
    if applied.enable_mixed_precision:
        speed = "faster" if capabilities.supports_mixed_precision else "not faster"
        why = f"recorded: programs choose their dtypes; by the detector 16-bit floats are {speed} on this hardware"
        yield "enable_mixed_precision", why
    checks = {"platform_priority": _platforms, "environment_variables": _variables, "capabilities": _disagreement}
    for name, check in checks.items():
        if problem := check(state):
            yield name, problem


def _memory(state: ManagerState) -> str | None:
    if not state.has_limits:
        return "recorded: without a configuration nothing is limited"
    if state.is_closed:
        return None
    problems = []
    for device in state.jax_manager.devices:
        if device.is_compile_only:
            problems.append(f"{device} has no memory")
        elif device not in state.limits:
            problems.append(f"{device} is not in the world of the manager")
        elif ((limit := LIMITS.read(device)) or device.memory_bytes) != state.limits[device]:
            problems.append(f"{device} has {'no limit' if limit is None else f'the limit {limit}'}, set elsewhere")
    return "; ".join(shortened(problems, 4)) or None


def _platforms(state: ManagerState) -> str | None:
    default = state.jax_manager.default_platform
    names = state.applied.platform_priority
    absent = list(itertools.takewhile(lambda name: ("gpu" if name in GPU_PLATFORMS else name) != default, names))
    if not absent:
        return None
    why = ""
    if {"cuda", "gpu"} & set(absent):
        if state.capabilities.device_type is DeviceType.GPU:
            count = state.capabilities.device_count
            why = f" (the detector reports {count} gpu, which this package cannot place data on)"
        elif reason := getattr(state.detector, "reason", None):
            why = f" ({reason})"
    return f"no device of {', '.join(absent)}{why}; the default platform is {default}"


def _variables(state: ManagerState) -> str | None:
    late, unread = [], []
    for name, value in state.applied.environment_variables.items():
        if name in _READ or name.startswith(_READ_PREFIX) or (name == "XLA_FLAGS" and _COUNT_FLAG in value):
            late.append(name)
        if name == "XLA_FLAGS" and any(not flag.startswith(_COUNT_FLAG) for flag in value.split()):
            unread.append("XLA_FLAGS except for the number of devices")
        elif name != "XLA_FLAGS" and name not in late:
            unread.append(name)
    problems = []
    if late and state.is_late:
        problems.append(f"set after the first use of a device, which reads them: {', '.join(late)}")
    if unread:
        problems.append(f"set for other libraries and child processes, not read by this library: {', '.join(unread)}")
    return "; ".join(problems) or None


def _disagreement(state: ManagerState) -> str | None:
    """Returns how the detector's count differs from the runtime's; None if it does not."""
    kind, count = state.capabilities.device_type, state.capabilities.device_count
    devices, gpus = state.jax_manager.devices, state.gpu_count
    if count == (gpus if kind is DeviceType.GPU else sum(device.platform == kind.value for device in devices)):
        return None
    return (
        f"the detector reports {count} {kind.value}; the runtime has {len(devices)} "
        f"device{'' if len(devices) == 1 else 's'}, {gpus} of them GPUs"
    )
