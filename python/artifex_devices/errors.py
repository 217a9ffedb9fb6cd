# SPDX-License-Identifier: Apache-2.0
"""Exception classes of the library; each is also the built-in class that JAX or NumPy would raise."""

from __future__ import annotations

from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices._core import (
    DuplicateSpecError,
    IndivisibleError,
    JaxRuntimeError,
    ResourceExhaustedError,
    ShardingTypeError,
    TransferGuardError,
)

__all__ = [
    "CollectiveError",
    "DuplicateSpecError",
    "IndivisibleError",
    "JaxRuntimeError",
    "ResourceExhaustedError",
    "ShardingTypeError",
    "TransferGuardError",
]
add_public_lookup(__name__)


class CollectiveError(RuntimeError):
    """Participants did not run the same collective: they called different ones, left early, or took too long.

    The text has a table of where each device stood: state, collective, source line.
    """
