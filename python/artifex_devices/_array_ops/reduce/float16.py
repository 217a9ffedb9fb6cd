# SPDX-License-Identifier: Apache-2.0
"""Reductions of float16 and bfloat16 by the core's loops, which add up in float32 at the speed of memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._base.clearable_cache import remembered

__all__ = ["fold", "folds", "widened"]

_KINDS: dict[Any, str] = {np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min"}


@remembered(maxsize=256)
def folds(ufunc: np.ufunc, dtype: np.dtype[Any], work: np.dtype[Any] | None) -> bool:
    """Whether the core reduces this dtype by `ufunc`; `work` is the dtype to compute in, None for its own."""
    if ufunc not in _KINDS or dtype.name not in ("float16", "bfloat16"):
        return False
    exact = ufunc in (np.maximum, np.minimum)  # in float32 as in the dtype itself
    return work == np.float32 or (exact and work in (None, dtype))


def fold(ufunc: np.ufunc, block: NDArray[Any], axes: tuple[int, ...]) -> Any:
    """ufunc.reduce(block, axis=axes, keepdims=True) in float32, where `folds` says so.

    Blocks that are not row-major, or that have nothing to reduce, take NumPy's way.
    """
    if not axes or not block.size or not block.flags.c_contiguous:
        return ufunc.reduce(block, axis=axes, dtype=np.float32, keepdims=True)
    first = last = axes[-1]
    while first - 1 in axes:
        first -= 1
    folded: Any = np.empty([1 if first <= d <= last else size for d, size in enumerate(block.shape)], np.float32)
    _core._fold(_KINDS[ufunc], block, first, last + 1, folded)
    rest = tuple(axis for axis in axes if axis < first)
    return ufunc.reduce(folded, axis=rest, keepdims=True) if rest else folded


def widened(block: NDArray[Any]) -> NDArray[Any]:
    """Floats of 16 bits as new float32; other blocks, and those that are not row-major, as they are."""
    if block.dtype.name not in ("float16", "bfloat16") or not block.flags.c_contiguous:
        return block
    wide = np.empty(block.shape, np.float32)
    _core._widen(block, wide)
    return wide
