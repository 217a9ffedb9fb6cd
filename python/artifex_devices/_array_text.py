# SPDX-License-Identifier: Apache-2.0
"""The text of an Array, as JAX writes it. Imported when an Array is first shown."""

from __future__ import annotations

import numpy as np

from artifex_devices._core import Array


def array_repr(array: Array) -> str:
    """`Array([1., 2.], dtype=float32)`; of a deleted Array shape and dtype only."""
    dtype_text = f"dtype={array.dtype.name})"
    if array.is_deleted():
        return f"Array(shape={array.shape}, deleted, {dtype_text}"
    if array.size == 0:
        return f"Array([], shape={array.shape}, {dtype_text}"
    width = np.get_printoptions()["linewidth"]
    body = np.array2string(np.asarray(array), prefix="Array(", suffix=",", separator=", ", max_line_width=width)
    last_line_length = len(body) - (body.rfind("\n") + 1) + len(", ")
    fits = last_line_length + len(dtype_text) <= width
    return f"Array({body}," + (" " if fits else "\n" + " " * len("Array(")) + dtype_text


def array_str(array: Array) -> str:
    """The value as NumPy prints it."""
    if array.is_deleted():
        return array_repr(array)
    return str(np.asarray(array))
