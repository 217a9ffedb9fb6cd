# SPDX-License-Identifier: Apache-2.0
"""Costs of collectives, on clusters and on this machine."""

from artifex_devices.planner.collective.machine import (
    calibrated,
    check_calibration,
    collective_terms,
    copies_estimate,
    executor_for,
    reshard_terms,
)
from artifex_devices.planner.collective.plan import CollectivePlan
from artifex_devices.planner.collective.planner import plan_collective
from artifex_devices.planner.collective.text import SUMS_IN_SWITCH, link_factors, rates_of, time_facts
from artifex_devices.planner.collective.values import Algorithm, CollectiveBound, Estimate

__all__ = [
    "SUMS_IN_SWITCH",
    "Algorithm",
    "CollectiveBound",
    "CollectivePlan",
    "Estimate",
    "calibrated",
    "check_calibration",
    "collective_terms",
    "copies_estimate",
    "executor_for",
    "link_factors",
    "plan_collective",
    "rates_of",
    "reshard_terms",
    "time_facts",
]
