# SPDX-License-Identifier: Apache-2.0
"""The computation of `lax.sum_over`: each member sums its block exactly, and the exact sums are added as integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from artifex_devices._array_ops.core.arguments import normal_axes
from artifex_devices._array_ops.reduce.exact_sums import is_rounded, rounded, value_states
from artifex_devices._base.checks import check_int
from artifex_devices._runtime.gpu_block import array_beside, host_copy, is_gpu_block
from artifex_devices._spmd import collectives


def block_sums(call: collectives.Call, leaves: list[Any], axis: Any) -> list[Any]:
    """Returns the sum of each leaf over `axis` and all members."""
    for one in () if axis is None else axis if isinstance(axis, tuple) else (axis,):
        check_int("sum_over", "axis", one, "write axis=0")
    states: list[Any] = []
    axes_of = [normal_axes(axis, leaf.ndim, scalar_has_axis=False) for leaf in leaves]
    for leaf, axes in zip(leaves, axes_of, strict=True):
        if is_rounded(leaf.dtype):
            states.extend(value_states(leaf, axes))
        else:
            states.append(np.asarray(np.sum(host_copy(leaf), axis=axes, keepdims=True)))
    # What the states do not show has to be equal too.
    options = (("axis", tuple(axes_of)), ("dtypes", tuple(leaf.dtype.name for leaf in leaves)))
    totals = iter(collectives.reduce(call, states, "sum", options=options))
    results = []
    for leaf, axes in zip(leaves, axes_of, strict=True):
        total = next(totals)
        if is_rounded(leaf.dtype):
            total = rounded((total, next(totals)) if leaf.dtype.kind == "c" else (total,), leaf.dtype)
        total = np.asarray(np.squeeze(total, axes))
        total.setflags(write=False)
        results.append(array_beside(total, leaf) if is_gpu_block(leaf) else total)
    return results
