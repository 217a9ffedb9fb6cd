# SPDX-License-Identifier: Apache-2.0
"""Arguments that NumPy's functions share: the operand, axis, out; and dimensions that must not be cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from artifex_devices._array_ops.core.blocks import allocate
from artifex_devices._array_ops.core.layout import Home, cuts_of, sharding_with
from artifex_devices._core import Array, NamedSharding
from artifex_devices.errors import ShardingTypeError

__all__ = ["array_operand", "normal_axes", "refuse_bool_axis", "require_whole", "whole_array"]


def array_operand(operation: str, x: Any) -> Array:
    """X, which must be an Array.

    Raises:
        TypeError: It is none: another argument was.
    """
    if not isinstance(x, Array):
        raise TypeError(
            f"{operation}: the operand is no Array while another argument is one; expected an Array, got "
            f"{type(x).__name__}; place it first by device_put, or pass np.asarray(other)"
        )
    return x


def normal_axes(axis: Any, ndim: int, *, scalar_has_axis: bool = True) -> tuple[int, ...]:
    """The dimensions that `axis` means, ascending; all for None.

    Without dimensions NumPy's reductions by ufuncs take the axes 0 and -1 too, its other ones do not.

    Raises:
        AxisError: One is out of bounds (a ValueError and an IndexError).
        ValueError: One is named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    if ndim == 0 and scalar_has_axis and axis in (0, -1):
        return ()
    return tuple(sorted(np.lib.array_utils.normalize_axis_tuple(axis, ndim)))


def refuse_bool_axis(operation: str, axis: Any) -> None:
    """Checks that no axis is a bool, for the functions that NumPy writes in C; those in Python take True as 1.

    Raises:
        TypeError: One is.
    """
    if axis is None or type(axis) is int:
        return
    for one in axis if isinstance(axis, tuple) else (axis,):
        if isinstance(one, (bool, np.bool_)):
            raise TypeError(f"{operation}: an axis is a bool; expected an integer, got {axis}; give axis={int(one)}")


def require_whole(operation: str, x: Array, axes: Sequence[int]) -> None:
    """Checks that no dimension of `axes` is cut.

    Raises:
        ShardingTypeError: One is; the text gives the sharding to move to (a ValueError).
    """
    cuts = cuts_of(x)
    wrong = [d for d in axes if cuts[d]]
    if not wrong:
        return
    told = ", ".join(f"dimension {d} over {cuts[d]}" for d in wrong)
    free = sharding_with(x.sharding, tuple(() if d in axes else names for d, names in enumerate(cuts)))
    spec = free.spec if isinstance(free, NamedSharding) else free
    raise ShardingTypeError(
        f"{operation}: a dimension that it works along is cut; expected whole dimensions {tuple(axes)} of an Array of "
        f"shape {x.shape}, got {told}; move it first: reshard(x, NamedSharding(x.sharding.mesh, {spec})), or gather: "
        "np.asarray(x)"
    )


def whole_array(operation: str, shape: tuple[int, ...], value: Any, dtype: Any, home: Home | Array) -> Array:
    """An Array of one value, whole on each device of `home`."""
    sharding = sharding_with(home.sharding, ((),) * len(shape))
    array, buffers = allocate(operation, shape, dtype, sharding, committed=home.committed)
    for buffer in buffers:
        buffer[...] = value
    return array
