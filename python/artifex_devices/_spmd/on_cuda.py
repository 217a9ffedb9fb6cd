# SPDX-License-Identifier: Apache-2.0
"""Bodies on CUDA devices: blocks are CuPy arrays, and each body computes on the GPU of its blocks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from artifex_devices import _core, tree_util
from artifex_devices._core import Array, NamedSharding
from artifex_devices._runtime.cupy_arrays import cupy_blocks, is_on_gpu, on_gpu_of, to_gpu


def on_gpus(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the body as a function that runs on the GPU of its first CuPy array."""

    @functools.wraps(function)
    def body(*args: Any, **kwargs: Any) -> Any:
        with on_gpu_of(next(filter(is_on_gpu, tree_util.tree_leaves((args, kwargs))))):
            return function(*args, **kwargs)

    return body


def array_of_parts(
    operation: str, shape: tuple[int, ...], dtype: Any, sharding: NamedSharding, parts: Sequence[Any]
) -> Array:
    """Returns an Array with a copy of the part for each of its distinct buffers.

    The GPU copies a part of its own; those for replicas on other GPUs go through the host.
    """
    result = _core._empty(shape, dtype, sharding, True, operation)
    blocks = cupy_blocks(operation, result, writable=True) or []
    for block, part in zip(blocks, parts, strict=True):
        own = part
        if is_on_gpu(part) and part.device.id != block.device.id:
            with on_gpu_of(part):
                own = part.get()
        with on_gpu_of(block):
            block[...] = to_gpu(operation, own)
    return result
