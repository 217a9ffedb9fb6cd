# SPDX-License-Identifier: Apache-2.0
"""Bodies on CUDA devices: blocks are CuPy arrays, and each body computes on the GPU of its blocks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import DTypeLike

from artifex_devices import tree_util
from artifex_devices._array_ops.core.blocks import allocate
from artifex_devices._core import Array, NamedSharding
from artifex_devices._runtime.cupy_arrays import is_on_gpu, on_gpu_of
from artifex_devices._runtime.gpu_block import gpu_blocks


def on_gpus(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the body as a function that runs on the GPU of its first CuPy array."""

    @functools.wraps(function)
    def body(*args: Any, **kwargs: Any) -> Any:
        with on_gpu_of(next(filter(is_on_gpu, tree_util.tree_leaves((args, kwargs))))):
            return function(*args, **kwargs)

    return body


def array_of_parts(
    operation: str, shape: tuple[int, ...], dtype: DTypeLike, sharding: NamedSharding, parts: Sequence[Any]
) -> Array:
    """Returns an Array whose distinct buffers each hold a copy of the part."""
    result, blocks = allocate(operation, shape, dtype, sharding, committed=True)
    for block, part in zip(blocks, parts, strict=True):
        block[...] = gpu_blocks([part])[0] if is_on_gpu(part) else part
    return result
