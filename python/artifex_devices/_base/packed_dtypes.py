# SPDX-License-Identifier: Apache-2.0
"""How many bytes an element takes in the memory of an accelerator, which packs formats of 2 and 4 bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["dtype_of", "elements_per_byte", "holds_numbers", "packed_itemsize", "packed_shape"]

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
    """Number of elements that share one byte: 4 or 2 for packed formats, 1 for all others.

    Example:
        >>> elements_per_byte(np.dtype("int8"))
        1
    """
    return 8 // _BITS.get(dtype.name, 8)


def packed_itemsize(dtype: np.dtype[Any]) -> float:
    """Bytes of one element. NumPy and the Arrays of this process use a whole byte for each element of any format.

    Example:
        >>> import ml_dtypes
        >>> packed_itemsize(np.dtype("int4")), packed_itemsize(np.dtype("bfloat16"))
        (0.5, 2.0)
    """
    return dtype.itemsize / elements_per_byte(dtype)


def packed_shape(
    shape: Sequence[int], dtype: np.dtype[Any], shard_shapes: Sequence[Sequence[int]]
) -> tuple[tuple[int, ...], int | None]:
    """The shape in bytes of a packed array, so that each of its shards is a whole number of bytes.

    Args:
        shape: The shape in elements.
        dtype: The dtype.
        shard_shapes: Shapes of the shards before and after a reshard.

    Returns:
        The shape, and the dimension that it is packed along: of the dimensions whose shards are whole bytes, the one
        with the longest shards. None, with the shape unchanged, if there is no such dimension or the dtype is not
        packed.

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
