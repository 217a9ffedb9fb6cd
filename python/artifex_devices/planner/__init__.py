# SPDX-License-Identifier: Apache-2.0
"""Costs of reshards, collectives and training steps before they run: bytes, seconds, memory, on other machines too."""

from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices.planner.collective import Algorithm, CollectiveBound, CollectivePlan, Estimate, plan_collective
from artifex_devices.planner.failures import FailurePlan, PolicyOutcome, plan_failures
from artifex_devices.planner.inference import InferencePlan, InferenceSeconds, plan_inference
from artifex_devices.planner.profile import Profile, ProfileFit, fit_profile, read_profile
from artifex_devices.planner.reshard import Copy, LowerBound, PlanStep, ReshardPlan, plan_reshard
from artifex_devices.planner.search import suggest
from artifex_devices.planner.step import (
    ExpectedStep,
    SearchSpace,
    StepCollective,
    StepMemory,
    StepPlan,
    StepProduct,
    StepRegime,
    StepSeconds,
    Suggestion,
    Suggestions,
    plan_step,
)
from artifex_devices.planner.training import (
    Efficiency,
    EfficiencyFit,
    RunCost,
    TrainingChoice,
    TrainingCollective,
    TrainingConfig,
    TrainingPlan,
    TrainingSeconds,
    TrainingSpace,
    TrainingStage,
    TrainingSuggestions,
    fit,
    plan_training,
)

__all__ = [
    "Algorithm",
    "CollectiveBound",
    "CollectivePlan",
    "Copy",
    "Efficiency",
    "EfficiencyFit",
    "Estimate",
    "ExpectedStep",
    "FailurePlan",
    "InferencePlan",
    "InferenceSeconds",
    "LowerBound",
    "PlanStep",
    "PolicyOutcome",
    "Profile",
    "ProfileFit",
    "ReshardPlan",
    "RunCost",
    "SearchSpace",
    "StepCollective",
    "StepMemory",
    "StepPlan",
    "StepProduct",
    "StepRegime",
    "StepSeconds",
    "Suggestion",
    "Suggestions",
    "TrainingChoice",
    "TrainingCollective",
    "TrainingConfig",
    "TrainingPlan",
    "TrainingSeconds",
    "TrainingSpace",
    "TrainingStage",
    "TrainingSuggestions",
    "fit",
    "fit_profile",
    "plan_collective",
    "plan_failures",
    "plan_inference",
    "plan_reshard",
    "plan_step",
    "plan_training",
    "read_profile",
    "suggest",
]
add_public_lookup(__name__)
