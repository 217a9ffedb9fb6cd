# SPDX-License-Identifier: Apache-2.0
"""Dot products whose terms are added exactly, inside `reproducible()`."""

from __future__ import annotations

from typing import Any

import numpy as np

from artifex_devices._array_ops.core.blocks import PIECE_BYTES
from artifex_devices._array_ops.core.operand_sharding import broadcast_specs, common_devices
from artifex_devices._array_ops.reduce.exact_sums import exact_rule, is_rounded, product_states, rounded
from artifex_devices._array_ops.reduce.partials import READ_BYTES, reduce_parts
from artifex_devices._array_ops.reduce.reproducible import is_reproducible
from artifex_devices._core import Array


def exact_dot(operation: str, x: Any, y: Any, dtype: np.dtype[Any]) -> Array | None:
    """Returns the sum of x * y, rounded once to a dtype; None outside `reproducible()` and for other operands.

    At least one of them is an Array. Other operands are of two shapes, of no dimensions or of integers.
    """
    if not is_reproducible() or not x.ndim or x.shape != y.shape or not is_rounded(dtype):
        return None
    whole, other = (x, y) if isinstance(x, Array) else (y, x)
    if isinstance(other, Array):  # refuses shardings over Explicit axes that do not fit
        broadcast_specs(operation, common_devices(operation, [x, y]), x.shape, [x, y])
    axes = tuple(range(x.ndim))
    rule = exact_rule(
        lambda part: product_states(part.block, part.extras[0], axes),
        lambda states: (rounded(states, dtype),),
        READ_BYTES if x.dtype == y.dtype and x.dtype in (np.float32, np.float64) else PIECE_BYTES,
    )
    return reduce_parts(operation, whole, axes, (dtype,), rule, extras=(other,))[0]
