# SPDX-License-Identifier: Apache-2.0
"""Costs of a step that einsums describe, and the search for its shardings."""

from artifex_devices.planner.step.builder import StepBuilder
from artifex_devices.planner.step.choices import SearchSpace, Suggestion, Suggestions
from artifex_devices.planner.step.model import Operation, Optimizer, StepModel, Tensor
from artifex_devices.planner.step.plan import StepPlan
from artifex_devices.planner.step.planner import plan_step
from artifex_devices.planner.step.search import suggest_shardings
from artifex_devices.planner.step.transformer import transformer
from artifex_devices.planner.step.values import (
    ExpectedStep,
    StepCollective,
    StepMemory,
    StepProduct,
    StepRegime,
    StepSeconds,
)

__all__ = [
    "ExpectedStep",
    "Operation",
    "Optimizer",
    "SearchSpace",
    "StepBuilder",
    "StepCollective",
    "StepMemory",
    "StepModel",
    "StepPlan",
    "StepProduct",
    "StepRegime",
    "StepSeconds",
    "Suggestion",
    "Suggestions",
    "Tensor",
    "plan_step",
    "suggest_shardings",
    "transformer",
]
