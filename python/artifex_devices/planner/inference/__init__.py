# SPDX-License-Identifier: Apache-2.0
"""Costs of serving a model with a KV cache."""

from artifex_devices.planner.inference.planner import InferencePlan, InferenceSeconds, plan_inference

__all__ = ["InferencePlan", "InferenceSeconds", "plan_inference"]
