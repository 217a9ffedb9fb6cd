# SPDX-License-Identifier: Apache-2.0
"""Host arrays brought to where Arrays lie, for functions that take both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from artifex_devices._array_ops.core.dispatch import operand
from artifex_devices._array_ops.core.layout import home_of, sharding_with
from artifex_devices._array_ops.core.reading import Source, assemble
from artifex_devices._core import Array

__all__ = ["as_array"]


def as_array(operation: str, x: Any, operands: Sequence[Any]) -> Array:
    """X itself if it is an Array; else it is placed whole where the Arrays among the operands lie.

    Raises:
        RuntimeError: A transfer guard refuses it.
        TypeError: x is no array of numbers.
    """
    if isinstance(x, Array):
        return x
    home = home_of(operation, [y for y in operands if isinstance(y, Array)])
    value = operand(operation, x)
    value = value if isinstance(value, np.ndarray) else np.asarray(value)
    sharding = sharding_with(home.sharding, ((),) * value.ndim)
    source = Source(operation, value, sharding)
    return assemble(operation, value.shape, value.dtype, sharding, committed=home.committed, fill=source.copy_box)
