# SPDX-License-Identifier: Apache-2.0
"""Element-wise functions on CUDA devices: CuPy computes the elements of each GPU there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from artifex_devices import _core
from artifex_devices._array_ops.core.blocks import check_host_operand, moved_to, tiling
from artifex_devices._array_ops.core.layout import Placement, sharding_with
from artifex_devices._array_ops.core.reading import SCALARS, Compute, operand_spec
from artifex_devices._core import Array, Sharding
from artifex_devices._runtime.cupy_arrays import cupy_blocks, on_gpu_of, to_gpu


def map_on_cuda(
    operation: str,
    compute: Compute,
    inputs: Sequence[Any],
    dtypes: Sequence[Any],
    shape: tuple[int, ...],
    placement: Placement,
    sharding: Sharding,
) -> tuple[Array, ...]:
    """Calls `compute` for each part of the results on its GPU, with CuPy arrays; see map_elements.

    Nothing waits for the GPUs: copies of the results do.
    """
    results = [
        _core._empty(shape, dtype, sharding, placement.committed, operation)  # its memory is written below
        for dtype in dtypes
    ]
    targets = [cupy_blocks(operation, result, writable=True) or [] for result in results]
    places = tiling(sharding, shape, operation)
    operands = [_parts(operation, x, placement, shape, sharding, places.positions) for x in inputs]
    for number, outputs in enumerate(zip(*targets, strict=True)):
        if not outputs[0].size:
            continue
        with on_gpu_of(outputs[0]):
            compute(outputs, [to_gpu(operation, operand[number]) for operand in operands])
    return tuple(results)


def _parts(
    operation: str, x: Any, placement: Placement, shape: tuple[int, ...], sharding: Sharding, positions: tuple[int, ...]
) -> list[Any]:
    """The part of an operand for each buffer of the result: CuPy arrays, ndarrays or numbers."""
    if type(x) in SCALARS or (not isinstance(x, Array) and x.ndim == 0):
        number = x if type(x) in SCALARS else x[()]
        return [number] * len(positions)
    target = sharding_with(sharding, operand_spec(x.shape, shape, sharding))
    if not isinstance(x, Array):
        check_host_operand(operation, x, target)
        boxes, numbers = tiling(target, x.shape, operation).boxes, _core._buffers_at(target, positions)
        return [np.ascontiguousarray(x[boxes[number]]) for number in numbers]
    x = moved_to(operation, x, placement, target)
    blocks = cupy_blocks(operation, x) or []
    return [blocks[number] for number in _core._buffers_at(x.sharding, positions)]
