# SPDX-License-Identifier: Apache-2.0
"""sort and argsort of the Array API: with `descending=`, unlike NumPy's, and stable by default."""

# NumPy's stubs know ndarrays only.
# mypy: disable-error-code="no-any-return,return-value"

from __future__ import annotations

import numpy as np

from artifex_devices._array_ops.core.arguments import array_operand
from artifex_devices._core import Array


def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Returns a sorted copy of x along a dimension.

    Args:
        x: Array with at least one dimension.
        axis: Dimension to sort along.
        descending: Whether the largest element comes first.
        stable: Whether equal elements stay in their order.

    Returns:
        An Array of the shape and the dtype of x: sharded as x, or replicated where the dimension was sharded.

    Raises:
        ShardingTypeError: The dimension is sharded over Explicit axes (a ValueError).
        AxisError: There is no such dimension (a ValueError and an IndexError).

    Example:
        >>> from artifex_devices import array_api as xp
        >>> xp.sort(xp.asarray([2, 3, 1]), descending=True)
        Array([3, 2, 1], dtype=int64)
    """
    ascending = np.sort(array_operand("sort", x), axis=axis, stable=stable)
    return np.flip(ascending, axis) if descending else ascending


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Returns the indices that sort x along a dimension; arguments and errors as of `sort`.

    Returns:
        An Array of indices of the shape of x: sharded as x, or replicated where the dimension was sharded.

    Example:
        >>> from artifex_devices import array_api as xp
        >>> xp.argsort(xp.asarray([2, 3, 1, 3]), descending=True)
        Array([1, 3, 0, 2], dtype=int64)
    """
    x = array_operand("argsort", x)
    if not descending:
        return np.argsort(x, axis=axis, stable=stable)
    # The ascending order of the flipped elements, in reverse: equal elements stay in their order.
    backwards = np.argsort(np.flip(x, axis), axis=axis, stable=stable)
    return x.shape[axis] - 1 - np.flip(backwards, axis)
