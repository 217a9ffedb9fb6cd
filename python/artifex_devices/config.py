# SPDX-License-Identifier: Apache-2.0
"""The process's settings: `config.update(name, value)`, as in JAX."""

from __future__ import annotations

import operator
import os
from typing import Any

from artifex_devices import _core
from artifex_devices._base.recorded_options import RECORDED, check_recorded
from artifex_devices._base.safe_repr import shown

__all__ = ["Config", "config"]

# Bytes, each with its smallest value.
_BYTES = {"cache_bytes": -1, "parallel_copy_bytes": 0, "async_copy_bytes": 0}
_PLATFORMS = ("jax_platform_name", "jax_platforms")
_SCOPED = (
    "jax_transfer_guard",
    "jax_transfer_guard_host_to_device",
    "jax_transfer_guard_device_to_device",
    "jax_transfer_guard_device_to_host",
    "jax_default_device",
    "jax_enable_x64",
)
_SPMD = {"spmd_executor": "auto", "spmd_threads_bytes": 1 << 20, "collective_timeout_s": 60.0}
_DISTRIBUTED = {"distributed_buffer_bytes": 64 << 20, "distributed_checks": True, "distributed_shared_memory": True}
_NAMES = (*_PLATFORMS, *_SCOPED, "jax_num_cpu_devices", *_BYTES, "trace_allocations", *_SPMD, *_DISTRIBUTED)
_DEFAULT_COUNT = -1  # of CPU devices, as in JAX: what the environment says, else one for each CPU domain


class Config:
    """Settings by name; each can be read as an attribute and set by `update`.

    * `jax_platforms` (str or None): platforms that must be there; read when the devices are first asked for, and of no
      consequence afterwards.
    * `jax_platform_name` (str or None): the platform of calls that name none, such as `devices()`; read likewise.
      `devices("cpu")` does not depend on it.
    * `jax_num_cpu_devices` (int): number of CPU devices of the process, -1 for the default; only before the first use
      of a device. The current value is accepted at any time.
    * `jax_transfer_guard` and, for one direction, `jax_transfer_guard_host_to_device`, `..._device_to_device`,
      `..._device_to_host` (str or None): see `transfer_guard`.
    * `jax_default_device` (Device, platform or None): see `default_device`.
    * `jax_enable_x64` (bool): see `enable_x64`; True unless JAX_ENABLE_X64 says otherwise.
    * `cache_bytes` (bytes): freed memory kept for reuse; -1 means a quarter of the memory that the process may use.
    * `parallel_copy_bytes` (bytes): copies below it stay on the calling thread.
    * `async_copy_bytes` (bytes): Array-to-Array copies from it on run after the call returned.
    * `trace_allocations` (bool): keep the line of the program that makes each Array, for `memory_report`.
    * `spmd_executor` ("auto", "cooperative" or "threads"): how `shard_map` and `pmap` run their participants.
    * `spmd_threads_bytes` (bytes): "auto" takes threads from this size of the biggest block on; the default is where
      threads begin to win on 2 cores (bench, family executors).
    * `collective_timeout_s` (seconds or None): how long a collective may wait for its members; None for ever.
    * `distributed_buffer_bytes` (bytes): memory for messages that are packed, in a reshard between processes; at least
      two messages of 8 MiB are under way in any case.
    * `distributed_checks` (bool): compare what all processes put to devices of all; a digest of each value is sent.
    * `distributed_shared_memory` (bool): processes of one host meet, and add up big arrays, through memory that they
      share; looked at by `distributed.initialize`. False, in any of them: everything goes by MPI.
    * Options of JAX's compiler, such as `jax_disable_jit` and `jax_compilation_cache_dir`: recorded, without effect.
      Those that ask for a check that does not exist here, such as `jax_debug_nans`, are refused with the reason.

    Guards, default device and x64 are read as they are for the calling context, `with` blocks included.

    Example:
        >>> from artifex_devices import config
        >>> before = config.cache_bytes
        >>> config.update("cache_bytes", 64 << 20)
        >>> config.cache_bytes
        67108864
        >>> config.update("cache_bytes", before)
    """

    def __init__(self) -> None:
        """Starts with the defaults; use the module's `config`."""
        environment = os.environ.get("JAX_NUM_CPU_DEVICES", "")
        self._num_cpu_devices = int(environment) if environment.isdecimal() else _DEFAULT_COUNT
        self._recorded: dict[str, Any] = {name: option.default for name, option in RECORDED.items()}
        self._spmd: dict[str, Any] = dict(_SPMD)
        self._distributed: dict[str, Any] = dict(_DISTRIBUTED)

    def update(self, name: str, value: Any) -> None:
        """Sets one option, for all threads.

        Args:
            name: One of the options that the class lists.
            value: Its new value.

        Raises:
            AttributeError: There is no such option; the nearest name is suggested.
            TypeError: The value of a number is no int, or that of a flag no bool.
            ValueError: The value is out of range, or none of those that the option knows; or an environment variable
                of these options is malformed.
            NotImplementedError: The option of JAX asks for a check that does not exist here.
            RuntimeError: Another `jax_num_cpu_devices` than the current one after the first use of a device.
        """
        if name in _SCOPED:
            _core._write_scoped_option(name, value)
        elif name in _PLATFORMS:
            _core._write_platform_option(name, self._platforms(name, value))
        elif name == "jax_num_cpu_devices":
            count = self._count_of_devices(value)
            if count != self._num_cpu_devices:
                _core._set_num_cpu_devices(None if count == _DEFAULT_COUNT else count)
                self._num_cpu_devices = count
        elif name in _BYTES:
            _core._config_write(name, self._whole_number(name, value, least=_BYTES[name]))
        elif name == "trace_allocations":
            _core._config_write(name, self._flag(name, value))
        elif name in ("distributed_checks", "distributed_shared_memory"):
            self._distributed[name] = self._flag(name, value)
        elif name == "distributed_buffer_bytes":
            self._distributed[name] = self._whole_number(name, value, least=0)
        elif name in _SPMD:
            self._spmd[name] = self._spmd_value(name, value)
        elif name in RECORDED:
            check_recorded(name, value)
            self._recorded[name] = value
        else:
            raise AttributeError(self._unknown("config.update", name))

    def read(self, name: str) -> Any:
        """The value of an option for the calling context; AttributeError for an unknown name."""
        if name in _SCOPED:
            return _core._scoped_option(name)
        if name in _PLATFORMS:
            return _core._platform_option(name)
        if name == "jax_num_cpu_devices":
            return self._num_cpu_devices
        if name in _BYTES:
            return _core._config_read(name)
        if name == "trace_allocations":
            return bool(_core._config_read(name))
        if name in _SPMD:
            return self._spmd[name]
        if name in _DISTRIBUTED:
            return self._distributed[name]
        if name in RECORDED:
            return self._recorded[name]
        raise AttributeError(self._unknown("config.read", name))

    @property
    def values(self) -> dict[str, Any]:
        """All options and their values for the calling context; a new dict."""
        return {name: self.read(name) for name in (*_NAMES, *RECORDED)}

    def __setattr__(self, name: str, value: Any) -> None:
        """Refused: an attribute that is set would hide the option."""
        if name.startswith("_"):
            object.__setattr__(self, name, value)
            return
        self.read(name)
        raise AttributeError(
            f"config: {name} cannot be assigned; expected a call, got {shown(value)}; write "
            f"config.update({shown(name)}, {shown(value)})"
        )

    def __getattr__(self, name: str) -> Any:
        """Reads an option as an attribute."""
        if name.startswith("_"):
            raise AttributeError(name)
        return self.read(name)

    @classmethod
    def _spmd_value(cls, name: str, value: Any) -> Any:
        if name == "spmd_threads_bytes":
            return cls._whole_number(name, value, least=0)
        if name == "spmd_executor":
            if value not in ("auto", "cooperative", "threads"):
                raise ValueError(
                    f"config.update: {name} is not known; expected 'auto', 'cooperative' or 'threads', got "
                    f"{shown(value)}; choose one of them"
                )
            return value
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(
                f"config.update: {name} is of type {type(value).__name__}; expected seconds or None, got "
                f"{shown(value)}; give a number"
            )
        if not 0 < value < float("inf"):
            raise ValueError(
                f"config.update: {name} is out of range; expected a positive number of seconds or None, got "
                f"{shown(value)}; None waits for ever"
            )
        return float(value)

    def _count_of_devices(self, value: Any) -> int:
        if value is None or (isinstance(value, int) and value == _DEFAULT_COUNT):
            return _DEFAULT_COUNT
        return self._whole_number("jax_num_cpu_devices", value, least=1)

    @staticmethod
    def _flag(name: str, value: Any) -> bool:
        if isinstance(value, bool):
            return value
        raise TypeError(
            f"config.update: {name} is of type {type(value).__name__}; expected a bool, got {shown(value)}; "
            "give True or False"
        )

    @staticmethod
    def _platforms(name: str, value: Any) -> str | None:
        if value is None or isinstance(value, str):
            return value
        raise ValueError(
            f"config.update: {name} is of type {type(value).__name__}; expected a platform's name or None, got "
            f"{shown(value)}; write 'cpu'"
        )

    @staticmethod
    def _whole_number(name: str, value: Any, *, least: int) -> int:
        if isinstance(value, bool):
            raise TypeError(f"config.update: {name} is of type bool; expected an int, got {value}; give a number")
        try:
            number = operator.index(value)
        except TypeError:
            raise TypeError(
                f"config.update: {name} is of type {type(value).__name__}; expected an int, got {shown(value)}; "
                "give a number"
            ) from None
        if not least <= number < 2**63:
            raise ValueError(
                f"config.update: {name} is out of range; expected {least} to 2**63 - 1, got {number}; "
                "choose a value in it"
            )
        return number

    def _unknown(self, operation: str, name: Any) -> str:
        import difflib  # for errors only: a twentieth of the package's import time

        near = difflib.get_close_matches(name if isinstance(name, str) else "", (*_NAMES, *RECORDED), n=1)
        hint = f"did you mean {near[0]}?" if near else "check the name"
        return f"{operation}: there is no option {shown(name)}; expected one of {', '.join(_NAMES)}; {hint}"


config = Config()
