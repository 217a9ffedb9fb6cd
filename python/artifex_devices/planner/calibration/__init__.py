# SPDX-License-Identifier: Apache-2.0
"""Calibrations of this machine: their values, which `artifex_devices.calibration` measures."""

from artifex_devices.planner.calibration.parts import TERMS, CalibrationConditions, Link, ProcessLink, Sample, fitted
from artifex_devices.planner.calibration.values import Calibration

__all__ = ["TERMS", "Calibration", "CalibrationConditions", "Link", "ProcessLink", "Sample", "fitted"]
