# SPDX-License-Identifier: Apache-2.0
"""Bytes of elements in the memory of accelerators, which pack formats of 2 and 4 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from artifex_devices._base.nearest_name import nearest
from artifex_devices._core import Cluster, Sharding

_NAMES = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "bool", "complex64", "complex128"]
_NAMES += [f"{kind}{bits}" for kind in ("float", "int", "uint") for bits in (16, 32, 64)]
_NAMES += [f"{kind}{bits}" for kind in ("int", "uint") for bits in (2, 4, 8)]
_BITS = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4}


def dtype_of(dtype: DTypeLike | None) -> np.dtype[Any]:
    """Returns a NumPy dtype, also for the names of narrow formats."""
    import ml_dtypes  # noqa: F401 - registers the names of narrow formats with NumPy

    found: np.dtype[Any] = np.dtype(dtype)
    return found


def nearest_dtype(text: object) -> str | None:
    """Returns the name of a dtype of numbers that a text nearly is, or None."""
    return nearest(text, _NAMES) if isinstance(text, str) else None


def dtype_hint(text: object) -> str:
    """Returns " (did you mean bfloat16?)" for a text that is nearly the name of a dtype of numbers, or nothing."""
    found = nearest_dtype(text)
    return "" if found is None else f" (did you mean {found}?)"


def holds_numbers(dtype: np.dtype[Any]) -> bool:
    """Returns whether elements are numbers or booleans, unlike text, dates, records and objects."""
    return not (dtype.hasobject or dtype.itemsize == 0 or dtype.kind in "USMm" or dtype.names is not None)


def elements_per_byte(dtype: np.dtype[Any]) -> int:
    """Returns the number of elements that share one byte: 4 or 2 for packed formats, otherwise 1."""
    return 8 // _BITS.get(dtype.name, 8)


def packed_itemsize(dtype: np.dtype[Any]) -> float:
    """Returns the bytes of one element, 0.5 for int4; NumPy and the Arrays of this process use full bytes."""
    return dtype.itemsize / elements_per_byte(dtype)


def bytes_shape(
    shape: tuple[int, ...], dtype: np.dtype[Any], source: Sharding, destination: Sharding, cluster: Cluster | None
) -> tuple[tuple[int, ...], int | None]:
    """Returns the shape in bytes of an array that a cluster packs, and the packed dimension.

    All shards must have full bytes along that dimension. Of several such dimensions, the function takes the dimension
    with the longest shards. Otherwise, and for other dtypes, it returns the unchanged shape and None.
    """
    each = elements_per_byte(dtype)
    if cluster is None or each == 1:
        return shape, None
    lengths = list(zip(shape, source.shard_shape(shape), destination.shard_shape(shape), strict=True))
    fitting = [i for i, found in enumerate(lengths) if not any(length % each for length in found)]
    if not fitting:
        return shape, None
    along = max(fitting, key=lambda i: min(lengths[i]))
    return tuple(size // each if i == along else size for i, size in enumerate(shape)), along
