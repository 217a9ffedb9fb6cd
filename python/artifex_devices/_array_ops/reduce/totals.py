# SPDX-License-Identifier: Apache-2.0
"""Totals of large blocks by the loops of the core, which read memory at its full rate.

Floats are added up in float64, pairwise; integers in 64 bits. NumPy's loops do the rest: small Arrays, other dtypes and
layouts, and work that raises a floating-point exception, which they report.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices._base.clearable_cache import clearable_cache
from artifex_devices._core import internal
from artifex_devices._runtime.gpu_block import is_gpu_block

LEAST_BYTES = 64 << 10  # NumPy reduces smaller Arrays in less time than a call of the core takes to prepare


@clearable_cache(maxsize=256)
def totals_dtype(kind: str, dtype: np.dtype[Any], work: np.dtype[Any] | None) -> np.dtype[Any] | None:
    """Returns the dtype of the core's totals where NumPy computes in `work`; None if the core has no such loop.

    The core has sums ("sum"), products of 32 and 64 bits ("prod"), and of floats "abs" and "squares".
    """
    if kind not in ("sum", "prod", "abs", "squares") or work is None or dtype.isbuiltin != 1 or work.isbuiltin != 1:
        return None
    floats = (np.float32, np.float64)
    if dtype in floats:
        return np.dtype(np.float64) if work in floats else None
    if dtype.kind not in "biu" or (kind != "sum" and (kind != "prod" or dtype.itemsize < 4)):
        return None
    whole = np.dtype(np.uint64 if dtype.kind == "u" else np.int64)
    if work.kind in "iu":
        return whole
    if kind == "sum" and work == np.float64:
        return work if dtype.itemsize == 8 else whole
    return None


def totals(kind: str, block: Any, axes: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """Returns the totals of a block with reduced dimensions of size 1, or None where NumPy has to compute them.

    `dtype` is that of `totals_dtype`.
    """
    if is_gpu_block(block):
        return None
    out: NDArray[Any] = np.empty([1 if d in axes else size for d, size in enumerate(block.shape)], dtype)
    return out if internal.totals(kind, block, axes, out) else None


def moments(block: Any, axes: tuple[int, ...]) -> NDArray[Any] | None:
    """Returns float64 means, what is missing from them, and sums of squared differences, in this order.

    The block has float32 or float64. Reduced dimensions of the results have size 1. None: NumPy has to compute them.
    """
    if is_gpu_block(block):
        return None
    out: NDArray[Any] = np.empty([3, *(1 if d in axes else size for d, size in enumerate(block.shape))])
    return out if internal.moments(block, axes, out) else None
