# SPDX-License-Identifier: Apache-2.0
"""Costs of reshards, collectives and training steps before they run: bytes, seconds, memory, on other machines too."""

from artifex_devices.planner.collective_plan import Algorithm, CollectiveBound, CollectivePlan, Estimate
from artifex_devices.planner.collective_planner import plan_collective
from artifex_devices.planner.reshard_plan import Copy, LowerBound, PlanStep, ReshardPlan
from artifex_devices.planner.reshard_planner import plan_reshard
from artifex_devices.planner.step_planner import plan_step
from artifex_devices.planner.step_values import (
    StepCollective,
    StepMemory,
    StepPlan,
    StepProduct,
    StepRegime,
    StepSeconds,
)
from artifex_devices.planner.suggestion import suggest
from artifex_devices.planner.suggestion_values import SearchSpace, Suggestion, Suggestions

__all__ = [
    "Algorithm",
    "CollectiveBound",
    "CollectivePlan",
    "Copy",
    "Estimate",
    "LowerBound",
    "PlanStep",
    "ReshardPlan",
    "SearchSpace",
    "StepCollective",
    "StepMemory",
    "StepPlan",
    "StepProduct",
    "StepRegime",
    "StepSeconds",
    "Suggestion",
    "Suggestions",
    "plan_collective",
    "plan_reshard",
    "plan_step",
    "suggest",
]
