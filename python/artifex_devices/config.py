# SPDX-License-Identifier: Apache-2.0
"""The process's settings: `config.update(name, value)`, as in JAX."""

from __future__ import annotations

import operator
from typing import Any

from artifex_devices import _core

__all__ = ["Config", "config"]

_CORE_OPTIONS = ("cache_bytes", "parallel_copy_bytes", "async_copy_bytes")


class Config:
    """Settings by name; each can be read as an attribute and set by `update`.

    * `jax_num_cpu_devices` (int or None): CPU devices of the process; only before the first use of a device.
    * `cache_bytes` (bytes): freed memory kept for reuse; -1 means the smaller of 1 GiB and an eighth of the memory.
    * `parallel_copy_bytes` (bytes): copies below it stay on the calling thread.
    * `async_copy_bytes` (bytes): Array-to-Array copies from it on run after the call returned.
    * `trace_allocations` (bool): keep the line of the program that makes each Array, for `memory_report`.

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
        self._num_cpu_devices: int | None = None

    def update(self, name: str, value: Any) -> None:
        """Sets one option.

        Args:
            name: One of the options that the class lists.
            value: Its new value.

        Raises:
            AttributeError: There is no such option; the nearest name is suggested.
            TypeError: The value is no int.
            ValueError: The value is out of range.
            RuntimeError: `jax_num_cpu_devices` after the first use of a device.
        """
        if name == "jax_num_cpu_devices":
            count = None if value is None else self._whole_number(name, value, least=1)
            _core._set_num_cpu_devices(count)
            self._num_cpu_devices = count
        elif name == "trace_allocations":
            if not isinstance(value, bool):
                raise TypeError(
                    f"config.update: {name} is of type {type(value).__name__}; expected a bool, got {value!r}; "
                    "give True or False"
                )
            _core._config_write(name, int(value))
        elif name in _CORE_OPTIONS:
            least = -1 if name == "cache_bytes" else 0
            _core._config_write(name, self._whole_number(name, value, least=least))
        else:
            raise AttributeError(self._unknown("config.update", name))

    def read(self, name: str) -> Any:
        """The value of an option; AttributeError for an unknown name."""
        if name == "jax_num_cpu_devices":
            return self._num_cpu_devices
        if name == "trace_allocations":
            return bool(_core._config_read(name))
        if name in _CORE_OPTIONS:
            return _core._config_read(name)
        raise AttributeError(self._unknown("config.read", name))

    @property
    def values(self) -> dict[str, Any]:
        """All options and their values."""
        return {name: self.read(name) for name in ("jax_num_cpu_devices", *_CORE_OPTIONS, "trace_allocations")}

    def __getattr__(self, name: str) -> Any:
        """Reads an option as an attribute."""
        if name.startswith("_"):
            raise AttributeError(name)
        return self.read(name)

    @staticmethod
    def _whole_number(name: str, value: Any, *, least: int) -> int:
        if isinstance(value, bool):
            raise TypeError(f"config.update: {name} is of type bool; expected an int, got {value}; give a number")
        try:
            number = operator.index(value)
        except TypeError:
            raise TypeError(
                f"config.update: {name} is of type {type(value).__name__}; expected an int, got {value!r}; "
                "give a number"
            ) from None
        if not least <= number < 2**63:
            raise ValueError(
                f"config.update: {name} is out of range; expected {least} to 2**63 - 1, got {number}; "
                "choose a value in it"
            )
        return number

    def _unknown(self, operation: str, name: str) -> str:
        import difflib  # for errors only: a twentieth of the package's import time

        near = difflib.get_close_matches(name, self.values, n=1)
        hint = f"did you mean {near[0]}?" if near else "check the name"
        return f"{operation}: there is no option {name!r}; expected one of {', '.join(self.values)}; {hint}"


config = Config()
