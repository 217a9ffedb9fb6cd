# SPDX-License-Identifier: Apache-2.0
"""Exception classes of the library; each is also the built-in class that JAX or NumPy would raise."""

from __future__ import annotations

from artifex_devices._core import (
    DuplicateSpecError,
    IndivisibleError,
    JaxRuntimeError,
    ResourceExhaustedError,
    ShardingTypeError,
    TransferGuardError,
)

__all__ = [
    "DuplicateSpecError",
    "IndivisibleError",
    "JaxRuntimeError",
    "ResourceExhaustedError",
    "ShardingTypeError",
    "TransferGuardError",
]
