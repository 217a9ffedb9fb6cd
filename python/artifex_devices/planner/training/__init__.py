# SPDX-License-Identifier: Apache-2.0
"""Costs of training runs, and the search for their configurations."""

from artifex_devices.planner.training.arguments import checked_efficiency
from artifex_devices.planner.training.choice import TrainingChoice
from artifex_devices.planner.training.choices import TrainingSuggestions
from artifex_devices.planner.training.config import FORMATS, TrainingConfig
from artifex_devices.planner.training.efficiency import FACTORS, Efficiency
from artifex_devices.planner.training.efficiency_fit import EfficiencyFit, fit
from artifex_devices.planner.training.plan import TrainingPlan
from artifex_devices.planner.training.planner import plan_training
from artifex_devices.planner.training.published import PublishedError, RunKind, kind_on, published_error
from artifex_devices.planner.training.run_cost import RunCost, checked_tokens
from artifex_devices.planner.training.search import suggest_configs
from artifex_devices.planner.training.space import TrainingSpace
from artifex_devices.planner.training.tensor_dtypes import itemsize_of
from artifex_devices.planner.training.text import error_text, factor_facts
from artifex_devices.planner.training.values import TrainingCollective, TrainingSeconds, TrainingStage

__all__ = [
    "FACTORS",
    "FORMATS",
    "Efficiency",
    "EfficiencyFit",
    "PublishedError",
    "RunCost",
    "RunKind",
    "TrainingChoice",
    "TrainingCollective",
    "TrainingConfig",
    "TrainingPlan",
    "TrainingSeconds",
    "TrainingSpace",
    "TrainingStage",
    "TrainingSuggestions",
    "checked_efficiency",
    "checked_tokens",
    "error_text",
    "factor_facts",
    "fit",
    "itemsize_of",
    "kind_on",
    "plan_training",
    "published_error",
    "suggest_configs",
]
