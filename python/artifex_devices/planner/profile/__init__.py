# SPDX-License-Identifier: Apache-2.0
"""Profiles of other programs, and their comparison with a plan."""

from artifex_devices.planner.profile.fit import ProfileFit, fit_profile
from artifex_devices.planner.profile.reader import read_profile
from artifex_devices.planner.profile.report import Profile

__all__ = ["Profile", "ProfileFit", "fit_profile", "read_profile"]
