# SPDX-License-Identifier: Apache-2.0
"""Seconds of this machine's own CPU devices: measured once, fitted to a model, and checked against what was not fitted.

See docs/guide/calibration.md for the model, and how far to trust it.
"""

from artifex_devices.calibration.run import (
    TERMS,
    Calibration,
    CalibrationCheck,
    CalibrationConditions,
    CheckedRow,
    Link,
    ProcessLink,
    Sample,
    calibrate,
    check,
)

__all__ = [
    "TERMS",
    "Calibration",
    "CalibrationCheck",
    "CalibrationConditions",
    "CheckedRow",
    "Link",
    "ProcessLink",
    "Sample",
    "calibrate",
    "check",
]
