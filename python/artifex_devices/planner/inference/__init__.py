# SPDX-License-Identifier: Apache-2.0
"""Costs of serving a model with a KV cache."""

from artifex_devices.planner.inference.plan import InferencePlan, InferenceSeconds
from artifex_devices.planner.inference.planner import plan_inference

__all__ = ["InferencePlan", "InferenceSeconds", "plan_inference"]
