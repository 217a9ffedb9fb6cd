# SPDX-License-Identifier: Apache-2.0
"""Costs of reshards, collectives and training steps before they run: bytes, seconds, memory, on other machines too."""

from artifex_devices.planner.collective_plan import Algorithm, CollectiveBound, CollectivePlan, Estimate
from artifex_devices.planner.collective_planner import plan_collective
from artifex_devices.planner.efficiency import Efficiency
from artifex_devices.planner.inference_planner import InferencePlan, InferenceSeconds, plan_inference
from artifex_devices.planner.profile import Profile, read_profile
from artifex_devices.planner.profile_fit import ProfileFit, fit_profile
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
from artifex_devices.planner.training_choices import TrainingChoice, TrainingSpace, TrainingSuggestions
from artifex_devices.planner.training_config import TrainingConfig
from artifex_devices.planner.training_fit import EfficiencyFit, fit
from artifex_devices.planner.training_plan import TrainingPlan, TrainingSeconds, TrainingStage
from artifex_devices.planner.training_planner import plan_training
from artifex_devices.planner.training_search import suggest_training

__all__ = [
    "Algorithm",
    "CollectiveBound",
    "CollectivePlan",
    "Copy",
    "Efficiency",
    "EfficiencyFit",
    "Estimate",
    "InferencePlan",
    "InferenceSeconds",
    "LowerBound",
    "PlanStep",
    "Profile",
    "ProfileFit",
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
    "TrainingChoice",
    "TrainingConfig",
    "TrainingPlan",
    "TrainingSeconds",
    "TrainingSpace",
    "TrainingStage",
    "TrainingSuggestions",
    "fit",
    "fit_profile",
    "plan_collective",
    "plan_inference",
    "plan_reshard",
    "plan_step",
    "plan_training",
    "read_profile",
    "suggest",
    "suggest_training",
]
