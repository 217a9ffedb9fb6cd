# SPDX-License-Identifier: Apache-2.0
"""Exact sums of the blocks of a group's members, element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from artifex_devices._array_ops.reduce.exact_sums import is_rounded
from artifex_devices._core import internal
from artifex_devices._runtime.gpu_block import host_copy
from artifex_devices._spmd.arguments import empty


def exact_total(operation: str, parts: Sequence[Any], divisor: int = 1) -> Any:
    """Returns the sum of equally shaped blocks divided by an int, rounded once; sums of integers wrap.

    Blocks on GPUs are added on the host, and the result is an ndarray.
    """
    blocks = [host_copy(part) for part in parts]
    shape, dtype = blocks[0].shape, blocks[0].dtype
    if not is_rounded(dtype):
        out = empty(operation, shape, dtype)
        internal.all_reduce("sum", blocks, out)
        return out
    real = np.zeros((), dtype).real.dtype
    work = real if real in (np.float32, np.float64) else np.dtype(np.float32)
    is_complex = dtype.kind == "c"
    wide = [np.ascontiguousarray(block, dtype if is_complex else work) for block in blocks]
    total = empty(operation, shape, wide[0].dtype)
    internal.exact_all_reduce([_numbers(block, work) for block in wide], real, divisor, _numbers(total, work))
    return total if total.dtype == dtype else total.astype(dtype)


def _numbers(block: Any, real: Any) -> Any:
    """Returns a dense block as a vector of real numbers."""
    return block.reshape(-1).view(real)
