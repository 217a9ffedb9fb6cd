# SPDX-License-Identifier: Apache-2.0
"""The process's settings: `config.update(name, value)`, as in JAX."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeAlias

from artifex_devices._base.checks import check_bool, check_choice, check_int, check_number, check_type, failure
from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices._base.recorded_options import RECORDED, check_recorded
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import internal

__all__ = ["Config", "config"]
add_public_lookup(__name__)

# Options in bytes, and their minima.
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


def _flight_record_dir(environment: Mapping[str, str]) -> str | None:
    """Returns the folder of ARTIFEX_FLIGHT_RECORD_DIR, None if that is "off", or a temporary folder of the user."""
    given = environment.get("ARTIFEX_FLIGHT_RECORD_DIR")
    if given:
        return None if given == "off" else given
    return os.path.join(environment.get("TMPDIR") or "/tmp", f"artifex_devices-{os.getuid()}", "flight")


_DEFAULTS = {  # of options that are stored in Python
    "auto_axes_moves": "warn",
    "spmd_executor": "auto",
    "spmd_threads_bytes": 1 << 20,
    "collective_timeout_s": 60.0,
    "distributed_buffer_bytes": 64 << 20,
    "distributed_checks": True,
    "distributed_shared_memory": True,
    "flight_record_dir": _flight_record_dir(os.environ),
}
Setting: TypeAlias = bool | int | float | str | None  # the value of an option
_NAMES = (*_PLATFORMS, *_SCOPED, "jax_num_cpu_devices", *_BYTES, "trace_allocations", *_DEFAULTS)
_UPDATE = "config.update"
_DEFAULT_COUNT = -1  # of CPU devices, as in JAX: the environment variable, else one for each CPU domain


class Config:
    """Settings by name; each can be read as an attribute and set by `update`.

    * `jax_platforms` (str or None): platforms that must be available; read at the first use of a device, without effect
      afterwards.
    * `jax_platform_name` (str or None): the platform of calls that name none, such as `devices()`; read likewise.
      `devices("cpu")` does not depend on it.
    * `jax_num_cpu_devices` (int): number of CPU devices of the process, -1 for the default. It can be changed only
      before the first use of a device.
    * `jax_transfer_guard` and, for one direction, `jax_transfer_guard_host_to_device`, `..._device_to_device`,
      `..._device_to_host` (str or None): see `transfer_guard`.
    * `jax_default_device` (Device, platform or None): see `default_device`.
    * `jax_enable_x64` (bool): see `enable_x64`; the default is JAX_ENABLE_X64, or True.
    * `cache_bytes` (bytes): freed memory cached for reuse; -1 for a quarter of the memory that the process may use.
    * `parallel_copy_bytes` (bytes): minimum size of copies that the workers share.
    * `async_copy_bytes` (bytes): minimum size of copies between Arrays that continue after the call returns.
    * `trace_allocations` (bool): whether to record the line of the program that creates each Array, for
      `memory_report`.
    * `auto_axes_moves` ("allow", "warn" or "error"): what a NumPy function does whose operands are sharded over Auto
      axes in a way that it cannot use. "allow" and "warn" move the operands, "error" raises as over Explicit axes.
    * `spmd_executor` ("auto", "cooperative" or "threads"): how `shard_map` and `pmap` run their participants.
    * `spmd_threads_bytes` (bytes): size of the biggest block from which "auto" uses threads; by default the size from
      which they are faster on 2 cores (bench, family executors).
    * `collective_timeout_s` (seconds or None): how long a collective waits for its members, or None for no limit.
    * `distributed_buffer_bytes` (bytes): memory for packed messages in a reshard between processes; two messages of
      8 MiB are always allowed.
    * `distributed_checks` (bool): whether to compare values that all processes place on devices of all; a digest of
      each value is sent.
    * `distributed_shared_memory` (bool): whether processes of one host wait for each other, and add big arrays, through
      shared memory; read by `distributed.initialize`. If it is False in any of them, they use MPI only.
    * `flight_record_dir` (str or None): folder in which the processes of a job record their last operations (see
      `artifex_devices flight-record`), or None to record nothing. `distributed.initialize` uses the value of the first
      process of each host. The default is ARTIFEX_FLIGHT_RECORD_DIR ("off" means None), or a folder of the user in
      the folder of temporary files.
    * Options of JAX's compiler, such as `jax_disable_jit` and `jax_compilation_cache_dir`: recorded, without effect.
      Options for a check that does not exist here, such as `jax_debug_nans`, are refused with the reason.

    Guards, default device and x64 have the values of the calling context, `with` blocks included.

    Example:
        >>> from artifex_devices import config
        >>> before = config.cache_bytes
        >>> config.update("cache_bytes", 64 << 20)
        >>> config.cache_bytes
        67108864
        >>> config.update("cache_bytes", before)
    """

    def __init__(self) -> None:
        # Options that are stored in Python are attributes, which hot calls read.
        vars(self).update(_DEFAULTS)
        vars(self).update({name: option.default for name, option in RECORDED.items()})
        environment = os.environ.get("JAX_NUM_CPU_DEVICES", "")
        vars(self)["jax_num_cpu_devices"] = int(environment) if environment.isdecimal() else _DEFAULT_COUNT

    def update(self, name: str, value: Setting) -> None:
        """Sets one option, for all threads.

        Args:
            name: One of the options that the class lists.
            value: Its new value.

        Raises:
            AttributeError: The option does not exist; the text suggests the nearest name.
            TypeError: The value of a number is not an int, or that of a flag not a bool.
            ValueError: The value is out of range or unknown, or an environment variable of these options is malformed.
            NotImplementedError: The option of JAX is for a check that does not exist here.
            RuntimeError: `jax_num_cpu_devices` is changed after the first use of a device.
        """
        if name in _SCOPED:
            internal.write_scoped_option(name, value)
        elif name in _PLATFORMS:
            kinds = (str, type(None))
            platform: Any = value
            check_type(_UPDATE, name, platform, kinds, "a platform's name or None", "write 'cpu'", ValueError)
            internal.write_platform_option(name, platform)
        elif name == "jax_num_cpu_devices":
            is_default = value is None or (isinstance(value, int) and value == _DEFAULT_COUNT)
            count = _DEFAULT_COUNT if is_default else _int(name, value, 1)
            if count != vars(self)[name]:
                internal.set_num_cpu_devices(None if count == _DEFAULT_COUNT else count)
                vars(self)[name] = count
        elif name in _BYTES:
            internal.config_write(name, _int(name, value, _BYTES[name]))
        elif name == "trace_allocations":
            internal.config_write(name, check_bool(_UPDATE, name, value))
        elif name in _DEFAULTS:
            vars(self)[name] = _checked_value(name, value)
        elif name in RECORDED:
            check_recorded(name, value)
            vars(self)[name] = value
        else:
            raise _unknown(_UPDATE, name)

    def read(self, name: str) -> Setting:
        """Returns the value of an option in the calling context.

        Raises:
            AttributeError: There is no option of this name.
        """
        value: Setting
        if name in _SCOPED:
            value = internal.scoped_option(name)
            return value
        if name in _PLATFORMS:
            return internal.platform_option(name)
        if name in _BYTES:
            return internal.config_read(name)
        if name == "trace_allocations":
            return bool(internal.config_read(name))
        if name in vars(self):
            value = vars(self)[name]
            return value
        raise _unknown("config.read", name)

    @property
    def values(self) -> dict[str, Setting]:
        """All options and their values in the calling context; a new dict."""
        return {name: self.read(name) for name in (*_NAMES, *RECORDED)}

    def __setattr__(self, name: str, value: object) -> None:
        """Raises AttributeError: an attribute would hide the option."""
        self.read(name)
        raise failure(
            AttributeError,
            "config",
            f"{name} cannot be assigned",
            expected="a call",
            got=safe_repr(value),
            fix=f"write config.update({safe_repr(name)}, {safe_repr(value)})",
        )

    def __getattr__(self, name: str) -> Any:
        """Returns the value of an option that is not an attribute."""
        if name.startswith("_"):
            raise AttributeError(name)
        return self.read(name)


config = Config()


def _int(name: str, value: object, minimum: int) -> int:
    return check_int(_UPDATE, name, value, "choose another number", minimum=minimum, maximum=2**63 - 1)


def _checked_value(name: str, value: object) -> Any:
    if name == "auto_axes_moves":
        check_choice(_UPDATE, name, value, ("allow", "warn", "error"))
        return value
    if name == "spmd_executor":
        check_choice(_UPDATE, name, value, ("auto", "cooperative", "threads"))
        return value
    if name.endswith("_bytes"):
        return _int(name, value, 0)
    if name == "flight_record_dir":
        check_type(_UPDATE, name, value, (str, type(None)), "a path or None", "write None for no record", TypeError)
        return value
    if name.startswith("distributed"):
        return check_bool(_UPDATE, name, value)
    return None if value is None else float(check_number(_UPDATE, name, value, "write None for no limit", above=0))


def _unknown(operation: str, name: object) -> AttributeError:
    from artifex_devices._base.nearest_name import did_you_mean

    guess = did_you_mean(name, (*_NAMES, *RECORDED)) if isinstance(name, str) else ""
    problem = f"{safe_repr(name)} is not an option{guess}"
    return failure(AttributeError, operation, problem, expected=f"one of {', '.join(_NAMES)}")
