# SPDX-License-Identifier: Apache-2.0
"""The names of `jax.lax` that place data."""

from __future__ import annotations

from artifex_devices.constraints import with_sharding_constraint

__all__ = ["with_sharding_constraint"]
