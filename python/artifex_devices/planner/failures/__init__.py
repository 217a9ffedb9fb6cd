# SPDX-License-Identifier: Apache-2.0
"""Failures of training runs: intervals between checkpoints, and the useful part of the time."""

from artifex_devices.planner.failures.plan import FailurePlan, PolicyOutcome
from artifex_devices.planner.failures.planner import plan_failures

__all__ = ["FailurePlan", "PolicyOutcome", "plan_failures"]
