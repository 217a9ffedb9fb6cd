# SPDX-License-Identifier: Apache-2.0
"""Settings of the process that several managers set, and a report of those that have no effect.

The settings of the newest open owner hold, and all can be undone. The settings of an owner that was dropped without
`release` hold until another owner sets or releases the same key.
"""

from __future__ import annotations

import contextvars
import os
import re
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from artifex_devices._core import Device
from artifex_devices._hardware.detection import DeviceCapabilities, DeviceType
from artifex_devices.config import config
from artifex_devices.device_manager.configuration import GPU_PLATFORMS, DeviceConfiguration, JAXDeviceManager

_FLAG = re.compile(r"""(?:[^\s"']|"[^"]*"?|'[^']*'?)+""")  # quotes keep blanks inside a flag


class Settings(ABC):
    """One kind of setting, by key; thread-safe."""

    def __init__(self) -> None:
        """Starts without owners."""
        self._lock = threading.RLock()
        self._requests: dict[Any, list[tuple[weakref.ref[Any], Any]]] = {}  # oldest owner first
        self._user: dict[Any, Any] = {}  # values before the first owner
        self._written: dict[Any, Any] = {}  # values that were written last
        os.register_at_fork(after_in_child=self._renew_lock)

    @abstractmethod
    def read(self, key: Any) -> Any:
        """Returns the current value."""

    @abstractmethod
    def write(self, key: Any, value: Any) -> None:
        """Sets the current value."""

    def combined(self, key: Any, user: Any, values: list[Any]) -> Any:
        """Returns the value to write for the user's value and the owners' values, oldest first."""
        return values[-1]

    def set(self, owner: Hashable, key: Any, value: Any) -> Any:
        """Sets a value for an owner; returns the user's value before any owner."""
        with self._lock:
            if key in self._requests and self.read(key) != self._written[key]:
                self._forget(key)  # other code has written a value since: it is the user's
            if key not in self._requests:
                self._user[key] = self.read(key)
                self._requests[key] = []
            self._requests[key] = [*_live(self._requests[key]), (weakref.ref(owner), value)]
            self._write_newest(key)
            return self._user[key]

    def set_all(self, owner: Hashable, values: Mapping[Any, Any]) -> None:
        """Sets values for an owner, all of them before another thread can set one."""
        with self._lock:
            for key, value in values.items():
                self.set(owner, key, value)

    def release(self, owner: Hashable) -> None:
        """Undoes the values of an owner, except where other code has written a value since."""
        with self._lock:
            for key, before in list(self._requests.items()):
                after = [entry for entry in before if entry[0]() is not owner]
                if len(after) == len(before):
                    continue
                if self.read(key) != self._written[key]:
                    self._forget(key)
                elif live := _live(after):
                    self._requests[key] = live
                    self._write_newest(key)
                else:
                    self.write(key, self._user[key])
                    self._forget(key)

    def _write_newest(self, key: Any) -> None:
        self.write(key, self.combined(key, self._user[key], [value for _, value in self._requests[key]]))
        self._written[key] = self.read(key)

    def _forget(self, key: Any) -> None:
        for table in (self._requests, self._user, self._written):
            table.pop(key, None)

    def _renew_lock(self) -> None:
        self._lock = threading.RLock()  # another thread may have held it when the process was forked


def _live(entries: list[tuple[weakref.ref[Any], Any]]) -> list[tuple[weakref.ref[Any], Any]]:
    return [entry for entry in entries if entry[0]() is not None]


class _Limits(Settings):
    """Bytes that Arrays may take, by Device; None for no limit. A tighter limit of the user stays."""

    def read(self, key: Device) -> int | None:
        return key.bytes_limit

    def write(self, key: Device, value: int | None) -> None:
        key.set_bytes_limit(value)

    def combined(self, key: Device, user: int | None, values: list[int]) -> int:
        return values[-1] if user is None else min(user, values[-1])


class _Variables(Settings):
    """Environment variables by name; None for an unset one. XLA_FLAGS are merged."""

    def read(self, key: str) -> str | None:
        return os.environ.get(key)

    def write(self, key: str, value: str | None) -> None:
        if value is None:
            os.environ.pop(key, None)
        else:
            os.environ[key] = value

    def combined(self, key: str, user: str | None, values: list[str]) -> str:
        if key != "XLA_FLAGS":
            return values[-1]
        flags = user
        for value in values:
            flags = merged_flags(flags, value)[0]
        return flags or ""


class _X64(Settings):
    """jax_enable_x64 of the process, outside of all scopes."""

    def read(self, key: str) -> bool:
        return bool(contextvars.Context().run(config.read, key))

    def write(self, key: str, value: bool) -> None:
        config.update(key, value)


def merged_flags(current: str | None, added: str) -> tuple[str, list[str]]:
    """Adds flags to the current text of XLA_FLAGS; returns the new text and the flags that were replaced.

    Text that does not begin with "-" names a file of flags, and is replaced as a whole.

    Example:
        >>> merged_flags("--a=1 --b=2", "--b=3")
        ('--a=1 --b=3', ['--b=2'])
    """
    if not current or not current.strip():
        return added, []
    if not current.lstrip().startswith("-"):
        return added, [current] if current != added else []
    old, new = ([_closed(flag) for flag in _FLAG.findall(text)] for text in (current, added))
    names = {flag.partition("=")[0] for flag in new}
    kept = [flag for flag in old if flag.partition("=")[0] not in names]
    dropped = [flag for flag in old if flag not in kept and flag not in new]
    return (current, []) if set(new) <= set(old) and not dropped else (" ".join(kept + new), dropped)


def _closed(flag: str) -> str:
    """Closes an open quote of a flag, so that another flag can follow it."""
    quote = ""
    for sign in flag:
        if sign == quote:
            quote = ""
        elif sign in ("'", '"') and not quote:
            quote = sign
    return flag + quote


LIMITS = _Limits()
VARIABLES = _Variables()
X64 = _X64()


# Variables that this library reads, once: at the first use of a device at the latest.
_READ = ("JAX_NUM_CPU_DEVICES", "JAX_PLATFORMS", "JAX_PLATFORM_NAME", "JAX_DEFAULT_DEVICE", "JAX_ENABLE_X64")
_READ_PREFIX = "JAX_TRANSFER_GUARD"
_COUNT_FLAG = "--xla_force_host_platform_device_count"


@dataclass(frozen=True)
class SettingsReport:
    """Compares the settings of a manager with the state of the process.

    Attributes:
        now: Current configuration.
        applied: Configuration when the manager was created.
        limits: Bytes by device that the manager has set; None without a configuration of the user.
        is_late: Whether the library had read the environment before.
        is_closed: Whether the manager is closed.
        capabilities: Facts that the detector reported.
        detection_problem: Reason why the detector found no GPU or could not read a fact.
        runtime: Devices of the runtime.
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
        """Returns the reason by the name of each setting without effect."""
        return dict(self._lines())

    def disagreement(self) -> str | None:
        """Returns how the detector's count differs from the runtime's; None if it does not."""
        detected = self.capabilities
        devices = self.runtime.devices
        gpus, count = len(self.runtime.gpu_devices), len(devices)
        tpus = sum(device.platform == "tpu" for device in devices)
        counts = {DeviceType.GPU: gpus, DeviceType.TPU: tpus, DeviceType.CPU: len(self.runtime.cpu_devices)}
        if detected.device_count == counts[detected.device_type]:
            return None
        return (
            f"the detector reports {detected.device_count} {detected.device_type.value}; the runtime has {count} "
            f"device{'' if count == 1 else 's'}, {gpus} of them GPUs"
        )

    def _lines(self) -> Iterator[tuple[str, str]]:
        if self.is_closed:
            yield "manager", "closed: its settings were undone"
        if self.now != self.applied:
            pairs = [(f.name, getattr(self.applied, f.name), getattr(self.now, f.name)) for f in fields(self.now)]
            values = ", ".join(f"{name} {old!r} to {new!r}" for name, old, new in pairs if old != new)
            yield "configuration", f"changed since this manager was created: {values}; DeviceManager(config) applies it"
        if problem := self._memory():
            yield "memory_fraction", problem
        if self.applied.enable_x64 != config.jax_enable_x64:
            if self.applied.enable_x64:
                why = "jax_enable_x64 is False here: another setting or a scope of enable_x64 sets it"
            else:
                why = "False does not change jax_enable_x64, True here; write config.update('jax_enable_x64', False)"
            yield "enable_x64", why
        if not self.applied.enable_jit:
            yield "enable_jit", "recorded: jit does not compile here, functions run unchanged"
        if self.applied.enable_mixed_precision:
            speed = "faster" if self.capabilities.supports_mixed_precision else "not faster"
            why = f"recorded: programs choose their dtypes; by the detector 16-bit floats are {speed} on this hardware"
            yield "enable_mixed_precision", why
        for name, problem in (
            ("platform_priority", self._platforms()),
            ("environment_variables", self._variables()),
            ("capabilities", self.disagreement()),
        ):
            if problem:
                yield name, problem

    def _memory(self) -> str | None:
        if self.limits is None:
            return "recorded: without a configuration nothing is limited"
        if self.is_closed:
            return None
        problems = []
        for device in self.runtime.devices:
            if device.is_compile_only:
                problems.append(f"{device} has no memory")
            elif device not in self.limits:
                problems.append(f"{device} is not in the world of the manager")
            elif ((limit := LIMITS.read(device)) or device.memory_bytes) != self.limits[device]:
                problems.append(f"{device} has {'no limit' if limit is None else f'the limit {limit}'}, set elsewhere")
        text = "; ".join(problems[:4])
        return (f"{text}; and {len(problems) - 4} more" if len(problems) > 4 else text) or None

    def _platforms(self) -> str | None:
        default = self.runtime.default_platform
        absent = []
        for platform in self.applied.platform_priority:
            if ("gpu" if platform in GPU_PLATFORMS else platform) == default:
                break
            absent.append(platform)
        if not absent:
            return None
        why = ""
        if set(absent) & {"cuda", "gpu"}:
            if self.capabilities.device_type is DeviceType.GPU:
                count = self.capabilities.device_count
                why = f" (the detector reports {count} gpu, which this package cannot place data on)"
            elif self.detection_problem:
                why = f" ({self.detection_problem})"
        return f"no device of {', '.join(absent)}{why}; the default platform is {default}"

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
