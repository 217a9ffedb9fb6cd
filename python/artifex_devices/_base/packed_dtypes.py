# SPDX-License-Identifier: Apache-2.0
"""Bytes of elements in the memory of accelerators, which pack formats of 2 and 4 bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_BITS = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4}


def dtype_of(dtype: Any) -> np.dtype[Any]:
    """Returns a NumPy dtype, also for the names of narrow formats."""
    import ml_dtypes  # noqa: F401 - registers the names of narrow formats with NumPy

    found: np.dtype[Any] = np.dtype(dtype)
    return found


def holds_numbers(dtype: np.dtype[Any]) -> bool:
    """Whether elements are numbers or booleans, unlike text, dates, records and objects."""
    return not (dtype.hasobject or dtype.itemsize == 0 or dtype.kind in "USMm" or dtype.names is not None)


def elements_per_byte(dtype: np.dtype[Any]) -> int:
    """Returns the number of elements that share one byte: 4 or 2 for packed formats, otherwise 1."""
    return 8 // _BITS.get(dtype.name, 8)


def packed_itemsize(dtype: np.dtype[Any]) -> float:
    """Returns the bytes of one element, 0.5 for int4; NumPy and the Arrays of this process use full bytes."""
    return dtype.itemsize / elements_per_byte(dtype)


def packed_shape(
    shape: Sequence[int], dtype: np.dtype[Any], shard_shapes: Sequence[Sequence[int]]
) -> tuple[tuple[int, ...], int | None]:
    """Returns the shape of a packed array in bytes, and the dimension that it is packed along.

    All shards (`shard_shapes`, before and after a reshard) must have full bytes along that dimension; of several the
    one with the longest shards is taken. Otherwise, or for other dtypes, it returns the unchanged shape and None.

    Example:
        >>> import ml_dtypes
        >>> packed_shape((6, 8), np.dtype("int4"), [(3, 8), (6, 2)])
        ((6, 4), 1)
    """
    sizes, each = tuple(shape), elements_per_byte(dtype)
    lengths = [[size, *(shard[i] for shard in shard_shapes)] for i, size in enumerate(sizes)]
    fitting = [i for i, found in enumerate(lengths) if not any(length % each for length in found)]
    if each == 1 or not fitting:
        return sizes, None
    along = max(fitting, key=lambda i: min(lengths[i]))
    return tuple(size // each if i == along else size for i, size in enumerate(sizes)), along
