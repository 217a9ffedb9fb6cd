# SPDX-License-Identifier: Apache-2.0
"""Strategies for NumPy arrays: every dtype that can be placed, any bits, any memory layout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st
from numpy.typing import DTypeLike

_NUMPY_NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"
_ML_NAMES = (
    "bfloat16 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
    "float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn int2 int4 uint2 uint4"
)
NUMPY_DTYPES: tuple[str, ...] = tuple(_NUMPY_NAMES.split())
# Older releases of ml_dtypes have fewer.
ML_DTYPES: tuple[str, ...] = tuple(name for name in _ML_NAMES.split() if hasattr(ml_dtypes, name))
LAYOUTS: tuple[str, ...] = (
    "dense",
    "fortran",
    "transposed",
    "reversed",
    "stepped",
    "unaligned",
    "broadcast",
    "read_only",
)
# Types under 8 bits hold their value in the low bits of a byte.
_BITS = {"float6_e2m3fn": 6, "float6_e3m2fn": 6, "float4_e2m1fn": 4, "int2": 2, "int4": 4, "uint2": 2, "uint4": 4}


def dtypes(*, ml: bool = True) -> st.SearchStrategy[np.dtype[Any]]:
    """Draws dtypes that can be placed on devices, in native byte order.

    Args:
        ml: Whether the types of ml_dtypes (bfloat16, float8, int4, ...) occur.

    Returns:
        A strategy for dtypes.
    """
    names = [np.dtype(name) for name in NUMPY_DTYPES]
    if ml:
        names += [np.dtype(getattr(ml_dtypes, name)) for name in ML_DTYPES]
    return st.sampled_from(names)


def shapes(*, min_rank: int = 0, max_rank: int = 4, max_side: int = 6) -> st.SearchStrategy[tuple[int, ...]]:
    """Draws shapes, dimensions of size 0 included.

    Args:
        min_rank: Least number of dimensions.
        max_rank: Greatest number of dimensions.
        max_side: Greatest size of a dimension.

    Returns:
        A strategy for shapes.
    """
    return st.lists(st.integers(0, max_side), min_size=min_rank, max_size=max_rank).map(tuple)


def layouts() -> st.SearchStrategy[str]:
    """Draws names of memory layouts, as `arrays` takes them."""
    return st.sampled_from(LAYOUTS)


def random_bits(shape: Sequence[int], dtype: np.dtype[Any], seed: int) -> np.ndarray:
    """Draws an array whose elements have random bits: NaN payloads, infinities, subnormals and -0.0 occur.

    Args:
        shape: Shape of the result.
        dtype: Element type; bool gets proper truth values, types under 8 bits proper encodings.
        seed: Seed of the bits.

    Returns:
        A dense array.
    """
    count = math.prod(shape)
    raw = np.random.default_rng(seed).integers(0, 256, size=count * dtype.itemsize, dtype=np.uint8)
    if dtype == np.bool_:
        raw &= 1
    elif dtype.name in _BITS:
        raw &= (1 << _BITS[dtype.name]) - 1
    return raw.view(dtype).reshape(tuple(shape))


def lay_out(values: np.ndarray, layout: str, seed: int) -> np.ndarray:
    """Draws the same values in another memory layout.

    Args:
        values: A dense array.
        layout: One of LAYOUTS. "broadcast" repeats the first row along dimension 0, so there the values change.
        seed: Decides axis order, steps and offsets.

    Returns:
        An array of the same shape and dtype.
    """
    rng = np.random.default_rng(seed)
    if layout == "fortran":
        return np.asarray(values, order="F")
    if layout == "transposed":
        order = [int(axis) for axis in rng.permutation(values.ndim)]
        return (
            np.ascontiguousarray(values.transpose(order))
            .reshape([values.shape[axis] for axis in order])
            .transpose(np.argsort(order) if order else None)
        )
    if layout == "reversed":
        flip = tuple(slice(None, None, int(rng.choice([-1, 1]))) for _ in values.shape)
        return values[flip].copy()[flip]
    if layout == "stepped":
        steps = [int(rng.integers(1, 4)) for _ in values.shape]
        wide = np.zeros([side * step + 1 for side, step in zip(values.shape, steps, strict=True)], values.dtype)
        window = tuple(slice(0, side * step, step) for side, step in zip(values.shape, steps, strict=True))
        wide[window] = values
        return wide[window]
    if layout == "unaligned":
        offset = int(rng.integers(1, 64))
        memory = np.zeros(values.nbytes + offset, np.uint8)
        shifted = memory[offset:].view(values.dtype).reshape(values.shape)
        shifted[...] = values
        return shifted
    if layout == "broadcast" and values.ndim and values.shape[0]:
        return np.broadcast_to(values[:1].copy(), values.shape)
    dense = values.copy()
    dense.flags.writeable = layout != "read_only"
    return dense


@st.composite
def arrays(  # noqa: D417 - hypothesis gives draw
    draw: st.DrawFn,
    shape: Sequence[int] | st.SearchStrategy[tuple[int, ...]] | None = None,
    dtype: DTypeLike | st.SearchStrategy[np.dtype[Any]] | None = None,
    *,
    layout: str | None = None,
) -> np.ndarray:
    """Draws arrays with random bits and an awkward memory layout.

    Args:
        shape: A shape or a strategy for one, or None to draw it.
        dtype: A dtype or a strategy for one; None draws from all that can be placed.
        layout: One of "dense", "fortran", "transposed", "reversed" (negative strides), "stepped", "unaligned",
            "broadcast" (zero strides, read-only) and "read_only", or None to draw it.

    Returns:
        A strategy for arrays.
    """
    if shape is None:
        shape = shapes()
    size = draw(shape) if isinstance(shape, st.SearchStrategy) else shape
    if dtype is None:
        dtype = dtypes()
    kind = np.dtype(draw(dtype) if isinstance(dtype, st.SearchStrategy) else dtype)
    seed = draw(st.integers(0, 2**32 - 1), label="seed of the bits")
    arrangement = draw(layouts(), label="memory layout") if layout is None else layout
    return lay_out(random_bits(size, kind, seed), arrangement, seed)
