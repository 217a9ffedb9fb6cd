# SPDX-License-Identifier: Apache-2.0
"""x.view(dtype): the bits of an Array as another dtype, shard by shard."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices._array_ops.core.blocks import Box, allocate, local_arrays, run_all, tiling
from artifex_devices._array_ops.core.layout import cuts_of
from artifex_devices._core import Array
from artifex_devices.errors import ShardingTypeError

__all__ = ["view"]


def view(x: Array, dtype: Any, kind: Any) -> Array:
    """The bits of x as another dtype; `kind` is NumPy's argument type, which must be None.

    Raises:
        NotImplementedError: kind is not None.
        TypeError: No device holds this dtype.
        ValueError: The bytes of the last dimension are not a multiple of the new item size.
        ShardingTypeError: Those of one shard are not (a ValueError).
    """
    if kind is not None:
        raise NotImplementedError("view: type is not None; expected a dtype alone; leave type out")
    if dtype is None:
        return x
    new = np.dtype(dtype)
    if new == x.dtype:
        return x
    shape = _shape_as(x, new)
    sharding = x.sharding
    own = tiling(sharding, x.shape, "view").boxes
    try:
        boxes = tiling(sharding, shape, "view").boxes
        fits = all(_bytes_of(a, x.dtype) == _bytes_of(b, new) for a, b in zip(own, boxes, strict=True))
    except ValueError:
        fits = False
    if not fits:
        raise ShardingTypeError(
            f"view: the last dimension is cut over {cuts_of(x)[-1]}, and the bytes of a shard are not a multiple of "
            f"the {new.itemsize} of {new}; expected shards that hold whole items, got {x.sharding} for {x.shape} "
            f"{x.dtype}; make that dimension whole first: reshard(x, NamedSharding(x.sharding.mesh, P()))"
        )
    result, buffers = allocate("view", shape, new, sharding, committed=x.committed)
    tasks = [
        functools.partial(_copy, out, part) for out, part in zip(buffers, local_arrays(x, False, True), strict=True)
    ]
    run_all(tasks, 2 * x.nbytes)
    return result


def _shape_as(x: Array, new: np.dtype[Any]) -> tuple[int, ...]:
    if new.itemsize == x.dtype.itemsize:
        return x.shape
    if not x.ndim:
        raise ValueError(
            f"view: an Array without dimensions keeps its item size; expected a dtype of {x.dtype.itemsize} bytes, got "
            f"{new} of {new.itemsize}; add a dimension first: x.reshape(1)"
        )
    nbytes = x.shape[-1] * x.dtype.itemsize
    if nbytes % new.itemsize:
        raise ValueError(
            f"view: the last dimension has {nbytes} bytes; expected a multiple of the {new.itemsize} of {new}, got "
            f"shape {x.shape} of {x.dtype}; choose a smaller dtype"
        )
    return (*x.shape[:-1], nbytes // new.itemsize)


def _bytes_of(box: Box, dtype: np.dtype[Any]) -> tuple[int, int]:
    """Where a box begins and ends along the last dimension, in bytes."""
    return (box[-1].start * dtype.itemsize, box[-1].stop * dtype.itemsize) if box else (0, dtype.itemsize)


def _copy(out: NDArray[Any], part: NDArray[Any]) -> None:
    dense = np.asarray(part, order="C")
    if out.dtype == bool:
        np.not_equal(dense.view(np.uint8), 0, out=out)
    else:
        np.copyto(out, dense.view(out.dtype))
