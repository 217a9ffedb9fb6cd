# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments that several modules take: devices, places for data, whole numbers."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Device, Sharding
from artifex_devices._runtime.devices import devices
from artifex_devices.tree_util import tree_leaves

__all__ = ["check_device", "check_devices", "check_target", "whole_number"]


def check_device(operation: str, name: str, device: Any) -> Device:
    """The device, which must be a Device."""
    if not isinstance(device, Device):
        raise TypeError(
            f"{operation}: {name} is {shown(device)} ({type(device).__name__}); expected a Device; "
            "take one from artifex_devices.devices()"
        )
    return device


def check_devices(operation: str, listed: Iterable[Device] | None) -> list[Device]:
    """The devices as a list; None is all. No Device is a TypeError, one that comes twice a ValueError."""
    if listed is None:
        return devices()
    if isinstance(listed, np.ndarray):
        listed = listed.ravel().tolist()
    if not isinstance(listed, Iterable):
        raise TypeError(
            f"{operation}: devices is {shown(listed)} ({type(listed).__name__}); expected several Devices; "
            "say artifex_devices.devices()[:2]"
        )
    found = list(listed)
    wrong = [
        f"[{i}] is {shown(entry)} ({type(entry).__name__})"
        for i, entry in enumerate(found)
        if not isinstance(entry, Device)
    ]
    if wrong:
        raise TypeError(
            f"{operation}: devices{', devices'.join(wrong)}; expected Devices; take them from artifex_devices.devices()"
        )
    if len(set(found)) < len(found):
        twice = sorted({str(entry) for entry in found if found.count(entry) > 1})
        raise ValueError(
            f"{operation}: {', '.join(twice)} named more than once in devices; expected each device once; "
            "drop the repetition"
        )
    return found


def whole_number(operation: str, name: str, value: Any) -> int:
    """The value as an int: what has `__index__`, so that a float is a TypeError."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"{operation}: {name} is {shown(value)} ({type(value).__name__}); expected an integer; use "
            f"int({name}) if it is whole"
        ) from None


def check_target(operation: str, target: Any, *, tree: bool = True) -> None:
    """Raises TypeError unless `target` is a Device or a Sharding, or with `tree` a tree of them and None."""
    if isinstance(target, (Device, Sharding)):
        return
    wrong = [leaf for leaf in tree_leaves(target) if not isinstance(leaf, (Device, Sharding))] if tree else [target]
    if tree and not wrong:
        return
    kinds = "a Device, a Sharding or a tree of them" if tree else "a Device or a Sharding"
    raise TypeError(
        f"{operation}: {shown(wrong[0])} ({type(wrong[0]).__name__}) is no place for data; expected {kinds}; "
        "take a device from artifex_devices.devices()"
    )
