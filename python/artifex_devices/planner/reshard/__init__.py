# SPDX-License-Identifier: Apache-2.0
"""Costs of reshards: the collectives that they take, bytes, memory and seconds."""

from artifex_devices.planner.reshard.plan import ReshardPlan
from artifex_devices.planner.reshard.planner import plan_reshard
from artifex_devices.planner.reshard.values import Copy, LowerBound, PlanStep

__all__ = ["Copy", "LowerBound", "PlanStep", "ReshardPlan", "plan_reshard"]
