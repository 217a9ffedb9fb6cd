# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: save Arrays of any sharding from any number of processes, restore them under any other.

A checkpoint is a folder of safetensors files, in the layout of torch.distributed.checkpoint, and `checkpoint.json`.
"""

from __future__ import annotations

from artifex_devices.checkpoint.converting import convert
from artifex_devices.checkpoint.describing import ArrayMetadata, CheckpointMetadata, metadata
from artifex_devices.checkpoint.future import SaveFuture
from artifex_devices.checkpoint.manager import Manager
from artifex_devices.checkpoint.restoring import restore
from artifex_devices.checkpoint.saving import save, save_async
from artifex_devices.checkpoint.stored import PartMetadata

__all__ = [
    "ArrayMetadata",
    "CheckpointMetadata",
    "Manager",
    "PartMetadata",
    "SaveFuture",
    "convert",
    "metadata",
    "restore",
    "save",
    "save_async",
]
