# SPDX-License-Identifier: Apache-2.0
"""Settings of the process that several managers set, and a report of those that have no effect.

The settings of the newest open owner hold, and all can be undone. The settings of an owner that was dropped without
`release` hold until another owner sets or releases the same key.
"""

from __future__ import annotations

import contextvars
import itertools
import os
import re
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from artifex_devices._core import Device
from artifex_devices._hardware.detection import DeviceType
from artifex_devices.config import config
from artifex_devices.device_manager.configuration import GPU_PLATFORMS

if TYPE_CHECKING:
    from artifex_devices.device_manager.manager import DeviceManager

_FLAG = re.compile(r"""(?:[^\s"']|"[^"]*"?|'[^']*'?)+""")  # quotes keep blanks inside a flag


_Read = Callable[[Any], Any]
_Write = Callable[[Any, Any], None]
_Combined = Callable[[Any, Any, list[Any]], Any]
_Requests = list[tuple[weakref.ref[Any], Any]]  # owners with their values, oldest owner first


@dataclass
class _Entry:
    user: Any  # the value before the first owner
    written: Any = None  # the value that was written last
    requests: _Requests = field(default_factory=list)


class Settings:
    """One kind of setting, by key; thread-safe."""

    def __init__(self, read: _Read, write: _Write, combined: _Combined = lambda key, user, values: values[-1]) -> None:
        """Takes functions; `combined` is the value to write for a key, the user's value and those of the owners."""
        self.read, self.write, self.combined = read, write, combined
        self._lock = threading.RLock()
        self._entries: dict[Any, _Entry] = {}
        os.register_at_fork(after_in_child=self._renew_lock)

    def set(self, owner: Hashable, values: Mapping[Any, Any]) -> dict[Any, Any]:
        """Sets the values of keys for an owner; returns the user's values before any owner."""
        users = {}
        with self._lock:
            for key, value in values.items():
                entry = self._entries.get(key)
                if entry is None or self.read(key) != entry.written:  # other code has written a value: it is the user's
                    entry = self._entries[key] = _Entry(self.read(key))
                entry.requests = [*_live(entry.requests), (weakref.ref(owner), value)]
                self._write_newest(key, entry)
                users[key] = entry.user
        return users

    def release(self, owner: Hashable) -> None:
        """Undoes the values of an owner, except where other code has written a value since."""
        with self._lock:
            for key, entry in list(self._entries.items()):
                others = [request for request in entry.requests if request[0]() is not owner]
                if len(others) == len(entry.requests):
                    continue
                entry.requests = _live(others)
                if self.read(key) != entry.written:
                    del self._entries[key]
                elif entry.requests:
                    self._write_newest(key, entry)
                else:
                    self.write(key, entry.user)
                    del self._entries[key]

    def _write_newest(self, key: Any, entry: _Entry) -> None:
        self.write(key, self.combined(key, entry.user, [value for _, value in entry.requests]))
        entry.written = self.read(key)

    def _renew_lock(self) -> None:
        self._lock = threading.RLock()  # another thread may have held it when the process was forked


def _live(requests: _Requests) -> _Requests:
    return [request for request in requests if request[0]() is not None]


def _tighter(device: Device, user: int | None, values: list[int]) -> int:
    return values[-1] if user is None else min(user, values[-1])


def _write_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _combined_variable(name: str, user: str | None, values: list[str]) -> str:
    if name != "XLA_FLAGS":
        return values[-1]
    flags = user
    for value in values:
        flags = merged_flags(flags, value)[0]
    return flags or ""


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
    rest = re.sub(r""""[^"]*"|'[^']*'""", "", flag)
    return flag + next((sign for sign in rest if sign in "'\""), "")


# Bytes that Arrays may take, by Device; None for no limit. A tighter limit of the user stays.
LIMITS = Settings(lambda device: device.bytes_limit, lambda device, value: device.set_bytes_limit(value), _tighter)
# Environment variables by name; None for an unset one. XLA_FLAGS are merged.
VARIABLES = Settings(os.environ.get, _write_variable, _combined_variable)
# jax_enable_x64 of the process, outside of all scopes.
X64 = Settings(lambda name: bool(contextvars.Context().run(config.read, name)), config.update)

# Variables that this library reads, once: at the first use of a device at the latest.
_READ = ("JAX_NUM_CPU_DEVICES", "JAX_PLATFORMS", "JAX_PLATFORM_NAME", "JAX_DEFAULT_DEVICE", "JAX_ENABLE_X64")
_READ_PREFIX = "JAX_TRANSFER_GUARD"
_COUNT_FLAG = "--xla_force_host_platform_device_count"


def settings_without_effect(manager: DeviceManager) -> Iterator[tuple[str, str]]:
    """Yields the name of each setting of a manager without effect on the process, and the reason."""
    now, applied, capabilities = manager.config, manager._applied, manager.capabilities
    if manager.is_closed:
        yield "manager", "closed: its settings were undone"
    if now != applied:
        pairs = [(f.name, getattr(applied, f.name), getattr(now, f.name)) for f in fields(now)]
        values = ", ".join(f"{name} {old!r} to {new!r}" for name, old, new in pairs if old != new)
        yield "configuration", f"changed since this manager was created: {values}; DeviceManager(config) applies it"
    if problem := _memory(manager):
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
        if problem := check(manager):
            yield name, problem


def _memory(manager: DeviceManager) -> str | None:
    if not manager._has_limits:
        return "recorded: without a configuration nothing is limited"
    if manager.is_closed:
        return None
    problems = []
    for device in manager.jax_manager.devices:
        if device.is_compile_only:
            problems.append(f"{device} has no memory")
        elif device not in manager._limits:
            problems.append(f"{device} is not in the world of the manager")
        elif ((limit := LIMITS.read(device)) or device.memory_bytes) != manager._limits[device]:
            problems.append(f"{device} has {'no limit' if limit is None else f'the limit {limit}'}, set elsewhere")
    text = "; ".join(problems[:4])
    return (f"{text}; and {len(problems) - 4} more" if len(problems) > 4 else text) or None


def _platforms(manager: DeviceManager) -> str | None:
    default = manager.jax_manager.default_platform
    names = manager._applied.platform_priority
    absent = list(itertools.takewhile(lambda name: ("gpu" if name in GPU_PLATFORMS else name) != default, names))
    if not absent:
        return None
    why = ""
    if {"cuda", "gpu"} & set(absent):
        if manager.capabilities.device_type is DeviceType.GPU:
            count = manager.capabilities.device_count
            why = f" (the detector reports {count} gpu, which this package cannot place data on)"
        elif reason := getattr(manager.detector, "reason", None):
            why = f" ({reason})"
    return f"no device of {', '.join(absent)}{why}; the default platform is {default}"


def _variables(manager: DeviceManager) -> str | None:
    late, unread = [], []
    for name, value in manager._applied.environment_variables.items():
        if name in _READ or name.startswith(_READ_PREFIX) or (name == "XLA_FLAGS" and _COUNT_FLAG in value):
            late.append(name)
        if name == "XLA_FLAGS" and any(not flag.startswith(_COUNT_FLAG) for flag in value.split()):
            unread.append("XLA_FLAGS except for the number of devices")
        elif name != "XLA_FLAGS" and name not in late:
            unread.append(name)
    problems = []
    if late and manager._is_late:
        problems.append(f"set after the first use of a device, which reads them: {', '.join(late)}")
    if unread:
        problems.append(f"set for other libraries and child processes, not read by this one: {', '.join(unread)}")
    return "; ".join(problems) or None


def _disagreement(manager: DeviceManager) -> str | None:
    """Returns how the detector's count differs from the runtime's; None if it does not."""
    kind, count = manager.capabilities.device_type, manager.capabilities.device_count
    devices, gpus = manager.jax_manager.devices, manager.gpu_count
    if count == (gpus if kind is DeviceType.GPU else sum(device.platform == kind.value for device in devices)):
        return None
    return (
        f"the detector reports {count} {kind.value}; the runtime has {len(devices)} "
        f"device{'' if len(devices) == 1 else 's'}, {gpus} of them GPUs"
    )
