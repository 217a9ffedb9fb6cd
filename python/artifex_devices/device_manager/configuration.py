# SPDX-License-Identifier: Apache-2.0
"""What a DeviceManager is asked for: memory strategy, platforms, 64-bit data, environment variables."""

from __future__ import annotations

import dataclasses
import math
import numbers
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from artifex_devices._base.pickled_enum import PickledEnum
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr

GPU_PLATFORMS = ("gpu", "cuda", "rocm")
_PLATFORMS = ("cpu", *GPU_PLATFORMS, "tpu", "metal", "oneapi")


@public("artifex_devices.device_manager")
class MemoryStrategy(PickledEnum):
    """How much of a device's memory Arrays may take: 60 %, 75 %, 90 %, or a fraction of one's own."""

    CONSERVATIVE = "conservative"
    BALANCED = "balanced"
    AGGRESSIVE = "aggressive"
    CUSTOM = "custom"


# Source: the device-management document; CUSTOM without a fraction is as BALANCED.
_FRACTIONS = {
    MemoryStrategy.CONSERVATIVE: 0.6,
    MemoryStrategy.BALANCED: 0.75,
    MemoryStrategy.AGGRESSIVE: 0.9,
    MemoryStrategy.CUSTOM: 0.75,
}


@public("artifex_devices.device_manager")
@dataclass
class DeviceConfiguration:
    """Settings for a DeviceManager; can be changed, and each assignment is checked.

    A DeviceManager takes the settings as they are when it is made. Lists and dicts are copied at assignment.

    Attributes:
        memory_strategy: Assigning one sets the fraction to the strategy's; CUSTOM keeps the fraction there is.
        memory_fraction: 0.1 to 1.0 of each device's memory. One that is given wins over the strategy, until another
            strategy is assigned. Assigning None means the strategy's; reading always gives a number.
        enable_x64: True keeps 64-bit data; False leaves the process's setting as it is.
        enable_jit: Recorded: `jit` compiles nothing here.
        platform_priority: Platforms, best first; the first one that is there is the default. Names: cpu, gpu, cuda,
            rocm, tpu, metal, oneapi.
        environment_variables: Variables to set, by name. Flags of XLA_FLAGS are merged into those that are there.
        enable_mixed_precision: Recorded: programs choose their dtypes themselves.

    Raises:
        ValueError: The fraction is not between 0.1 and 1.0, a platform has no such name, or there is none.
        TypeError: A value is of another type.
        AttributeError: A name is assigned that is not a setting.

    Example:
        >>> from artifex_devices import DeviceConfiguration, MemoryStrategy
        >>> config = DeviceConfiguration(memory_strategy=MemoryStrategy.CONSERVATIVE)
        >>> config.memory_fraction
        0.6
        >>> config.memory_strategy = MemoryStrategy.BALANCED
        >>> config.memory_fraction
        0.75
    """

    memory_strategy: MemoryStrategy = MemoryStrategy.BALANCED
    memory_fraction: float | None = None
    enable_x64: bool = False
    enable_jit: bool = True
    platform_priority: list[str] = field(default_factory=lambda: ["cuda", "cpu"])
    environment_variables: dict[str, str] = field(default_factory=dict)
    enable_mixed_precision: bool = field(default=False, kw_only=True)

    def __setattr__(self, name: str, value: Any) -> None:
        """Checks and sets one setting."""
        if name not in _CHECKS:
            raise AttributeError(
                f"DeviceConfiguration: there is no setting {safe_repr(name)}; expected one of {', '.join(_CHECKS)}; "
                "check the name"
            )
        value = _CHECKS[name](name, value)
        if name == "memory_strategy" and (value is not MemoryStrategy.CUSTOM or "memory_fraction" not in vars(self)):
            object.__setattr__(self, "memory_fraction", _FRACTIONS[value])
        elif name == "memory_fraction" and value is None:
            value = _FRACTIONS[self.memory_strategy]
        object.__setattr__(self, name, value)

    def copy(self) -> DeviceConfiguration:
        """An equal configuration that shares nothing with this one, checked again.

        Raises:
            ValueError: A list or dict was changed in place to something that is not allowed.
            TypeError: The same.
        """
        return dataclasses.replace(self)


def _strategy(name: str, value: Any) -> MemoryStrategy:
    if isinstance(value, MemoryStrategy):
        return value
    members = ", ".join(f"MemoryStrategy.{member.name}" for member in MemoryStrategy)
    near = next((m for m in MemoryStrategy if isinstance(value, str) and value.lower() == m.value), None)
    hint = f"write MemoryStrategy.{near.name}" if near else "take a member"
    raise TypeError(
        f"DeviceConfiguration: {name} is of type {type(value).__name__}; expected one of {members}, got "
        f"{safe_repr(value)}; {hint}"
    )


def _fraction(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(
            f"DeviceConfiguration: {name} is of type {type(value).__name__}; expected a number between 0.1 and 1.0 or "
            f"None, got {safe_repr(value)}; give a number"
        )
    fraction = float(value)
    if math.isnan(fraction) or not 0.1 <= fraction <= 1.0:
        raise ValueError(
            f"DeviceConfiguration: {name} is out of range; expected a number between 0.1 and 1.0, got {fraction}; "
            "0.75 means three quarters of a device's memory"
        )
    return fraction


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(
            f"DeviceConfiguration: {name} is of type {type(value).__name__}; expected a bool, got {safe_repr(value)}; "
            "give True or False"
        )
    return value


def _platforms(name: str, value: Any) -> list[str]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(entry, str) for entry in value):
        raise TypeError(
            f"DeviceConfiguration: {name} is {safe_repr(value)}; expected a list of platforms' names; write ['cuda', "
            "'cpu']"
        )
    unknown = [entry for entry in value if entry not in _PLATFORMS]
    if unknown or not value:
        what = f"names unknown platforms {unknown}" if unknown else "is empty"
        raise ValueError(
            f"DeviceConfiguration: {name} {what}; expected at least one of {', '.join(_PLATFORMS)}, in lower case, "
            f"got {list(value)}; write ['cuda', 'cpu']"
        )
    return list(value)


def _variables(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise TypeError(
            f"DeviceConfiguration: {name} is of type {type(value).__name__}; expected a dict of text to text, got "
            f"{safe_repr(value)}; write {{'XLA_FLAGS': '--flag=1'}}"
        )
    wrong = [
        f"{safe_repr(key)}: {safe_repr(entry)}"
        for key, entry in value.items()
        if not (_is_text(key) and _is_text(entry))
    ]
    if wrong:
        raise TypeError(
            f"DeviceConfiguration: {name} has entries that are not text: {', '.join(wrong)}; expected text for names "
            "and values; write '1' or 'false'"
        )
    bad = [repr(key) for key, entry in value.items() if not key or "=" in key or not _can_be_held(key + entry)]
    if bad:
        raise ValueError(
            f"DeviceConfiguration: {name} has variables that the system cannot hold: {', '.join(bad)}; expected names "
            f"without '=', no zero bytes and signs that {sys.getfilesystemencoding()} has; correct them"
        )
    return dict(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _can_be_held(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


_CHECKS = {
    "memory_strategy": _strategy,
    "memory_fraction": _fraction,
    "enable_x64": _flag,
    "enable_jit": _flag,
    "platform_priority": _platforms,
    "environment_variables": _variables,
    "enable_mixed_precision": _flag,
}
