# SPDX-License-Identifier: Apache-2.0
"""The older module of shard_map, as in `jax.experimental.shard_map`."""

from __future__ import annotations

from artifex_devices._spmd.shard_map import shard_map

__all__ = ["shard_map"]
