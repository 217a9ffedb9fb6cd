# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments that are devices or numbers of devices."""

from __future__ import annotations

import collections
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from artifex_devices._base.checks import check_sequence, check_type, failure, wrong_type
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Device
from artifex_devices._runtime.devices import devices

_HOW = "take one from artifex_devices.devices()"

_MAX_NAMED = 8  # entries of a list in a message


def check_device(operation: str, name: str, device: Any) -> Device:
    """Returns the device; TypeError unless it is a Device."""
    check_type(operation, name, device, Device, "a Device", _HOW)
    return device  # type: ignore[no-any-return]


def check_devices(operation: str, listed: Iterable[Device] | None) -> list[Device]:
    """Returns the devices as a list, all for None; TypeError unless all are Devices, ValueError for repetitions."""
    if listed is None:
        return devices()
    if isinstance(listed, np.ndarray):
        listed = listed.ravel().tolist()
    found = check_sequence(operation, "devices", listed, "several Devices", "write artifex_devices.devices()[:2]")
    wrong = [
        f"[{i}] is {safe_repr(entry)} ({type(entry).__name__})"
        for i, entry in enumerate(found)
        if not isinstance(entry, Device)
    ]
    if wrong:
        wrong[_MAX_NAMED:] = ["..."] if len(wrong) > _MAX_NAMED else []
        raise failure(
            TypeError,
            operation,
            f"devices{', devices'.join(wrong)}",
            expected="Devices",
            fix="take them from artifex_devices.devices()",
        )
    if len(set(found)) < len(found):
        repeated = sorted(str(entry) for entry, count in collections.Counter(found).items() if count > 1)
        raise failure(
            ValueError,
            operation,
            f"{', '.join(repeated)} named more than once in devices",
            expected="each device once",
            fix="drop the repetition",
        )
    return found


def whole_number(operation: str, name: str, value: Any) -> int:
    """Returns a value with `__index__` as an int, also a bool; TypeError for others, such as floats."""
    try:
        return operator.index(value)
    except TypeError:
        raise wrong_type(operation, name, value, "an integer", f"use int({name}) if it is whole") from None
