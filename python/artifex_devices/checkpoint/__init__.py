# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: save Arrays of any sharding from any number of processes, restore them under any other.

A checkpoint is a folder of safetensors files, in the layout of torch.distributed.checkpoint, and `checkpoint.json`.
"""

from __future__ import annotations

import sys
import types
from typing import NoReturn

from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices.checkpoint import rules
from artifex_devices.checkpoint.comparing import compare
from artifex_devices.checkpoint.comparison import ArrayDifference, Comparison
from artifex_devices.checkpoint.conversion import Conversion
from artifex_devices.checkpoint.converting import convert
from artifex_devices.checkpoint.describing import ArrayMetadata, CheckpointMetadata, metadata
from artifex_devices.checkpoint.future import SaveFuture
from artifex_devices.checkpoint.manager import Manager
from artifex_devices.checkpoint.opening import open
from artifex_devices.checkpoint.readers.reader import Reader
from artifex_devices.checkpoint.restoring import restore
from artifex_devices.checkpoint.saving import save, save_async
from artifex_devices.checkpoint.stored import PartMetadata

__all__ = [
    "ArrayDifference",
    "ArrayMetadata",
    "CheckpointMetadata",
    "Comparison",
    "Conversion",
    "Manager",
    "PartMetadata",
    "Reader",
    "SaveFuture",
    "compare",
    "convert",
    "metadata",
    "open",
    "restore",
    "rules",
    "save",
    "save_async",
]
add_public_lookup(__name__)


class _Module(types.ModuleType):
    """The type of this module: JAX has a function of its name."""

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Raises TypeError."""
        raise TypeError(
            "checkpoint: nothing is differentiated here, so nothing is computed again; call the function itself; "
            "ad.checkpoint.save(folder, tree) saves Arrays"
        )


sys.modules[__name__].__class__ = _Module
