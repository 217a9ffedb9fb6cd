# SPDX-License-Identifier: Apache-2.0
"""Calibration of this machine: seconds of its own CPU devices, measured once, fitted to a model, and checked.

See docs/how_to/calibrate.md for the model and its limits.
"""

from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices.calibration.accuracy import CalibrationCheck, CheckedRow
from artifex_devices.calibration.run import calibrate, check
from artifex_devices.planner.calibration import TERMS, Calibration, CalibrationConditions, Link, ProcessLink, Sample

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
add_public_lookup(__name__)
