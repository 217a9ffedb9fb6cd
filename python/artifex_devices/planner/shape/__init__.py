# SPDX-License-Identifier: Apache-2.0
"""Sizes of transformers, and the files that have them."""

from artifex_devices.planner.shape.hf_config import from_hf_config
from artifex_devices.planner.shape.hf_transformers import from_transformers
from artifex_devices.planner.shape.transformer import SHAPES, ShapeParameters, TransformerShape

__all__ = ["SHAPES", "ShapeParameters", "TransformerShape", "from_hf_config", "from_transformers"]
