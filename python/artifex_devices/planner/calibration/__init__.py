# SPDX-License-Identifier: Apache-2.0
"""Calibrations of this machine: their values, which `artifex_devices.calibration` measures."""

from artifex_devices.planner.calibration.values import (
    TERMS,
    Calibration,
    CalibrationConditions,
    Link,
    ProcessLink,
    Sample,
    fitted,
)

__all__ = ["TERMS", "Calibration", "CalibrationConditions", "Link", "ProcessLink", "Sample", "fitted"]
