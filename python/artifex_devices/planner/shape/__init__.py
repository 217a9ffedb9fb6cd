# SPDX-License-Identifier: Apache-2.0
"""Sizes of transformers, and the files that have them."""

from artifex_devices.planner.shape.hf_config import from_hf_config
from artifex_devices.planner.shape.hf_transformers import from_transformers
from artifex_devices.planner.shape.model_argument import ModelLike, shape_of
from artifex_devices.planner.shape.published import HUB_IDS, SHAPES
from artifex_devices.planner.shape.transformer import ShapeParameters, TransformerShape

__all__ = [
    "HUB_IDS",
    "SHAPES",
    "ModelLike",
    "ShapeParameters",
    "TransformerShape",
    "from_hf_config",
    "from_transformers",
    "shape_of",
]
