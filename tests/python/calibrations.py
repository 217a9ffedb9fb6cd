# SPDX-License-Identifier: Apache-2.0
"""A calibration with known numbers, and rows of its checks."""

from __future__ import annotations

import dataclasses
from types import MappingProxyType

from artifex_devices.calibration import Calibration, CalibrationConditions, Link, Sample
from artifex_devices.calibration.accuracy import CheckedRow

MIB = 1 << 20

COEFFICIENTS = {
    "calls": 2e-6,
    "calls on workers": 1e-5,
    "copies": 1e-6,
    "alone": 2e-10,
    "cached": 1e-10,
    "warm": 3e-10,
    "memory": 5e-10,
    "read in 4 B": 9e-10,
    "read in 32 B": 8e-10,
    "read in 64 B": 7e-10,
    "read in 512 B": 6e-10,
    "written in 4 B": 1e-9,
    "written in 32 B": 2e-9,
    "written in 64 B": 3e-9,
    "written in 512 B": 4e-9,
    "cooperative programs": 2e-5,
    "cooperative participants": 3e-6,
    "threads programs": 4e-5,
    "threads participants": 5e-5,
    "results": 7e-6,
    "added in caches": 1e-11,
    "added from memory": 2e-11,
}

CONDITIONS = CalibrationConditions(
    "2026-11-22T14:00:00+00:00",
    "a processor",
    2,
    1,
    32 * MIB,
    32 * MIB,
    None,
    0.5,
    4.0,
    96 * MIB,
    384 * MIB,
    "2.0",
    "0.1.0",
    10,
)

ONE_MEMORY = (Link(0, 0, 2e9),)


def made(links=ONE_MEMORY, **changes):
    sample = Sample("a gather", MappingProxyType({"calls": 1.0}), 2e-6, 1e-7, 12, 2.2e-6)
    known = Calibration(MappingProxyType(COEFFICIENTS), links, 1e-10, None, (sample,), CONDITIONS)
    return dataclasses.replace(known, **changes)


def rows_of(*errors):
    return tuple(
        CheckedRow(f"row {i}", kind, nbytes, 4, 2 * (1 + error), 2.0, 2.0, 0.2)
        for i, (kind, nbytes, error) in enumerate(errors)
    )
