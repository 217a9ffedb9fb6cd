# SPDX-License-Identifier: Apache-2.0
"""The repr and str of an Array, as in JAX. Imported when an Array is first shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from artifex_devices._core import Array

_PREFIX = "Array("


def array_repr(array: Array) -> str:
    """Formats `Array([1., 2.], dtype=float32)`; only shape and dtype of a deleted Array."""
    return _deleted_or(array, _alive_repr)


def array_str(array: Array) -> str:
    """Returns the value as NumPy prints it; the repr of a deleted Array."""
    return _deleted_or(array, _alive_str)


def _deleted_or(array: Array, text_of: Callable[[Array], str]) -> str:
    if not array.is_deleted():
        try:
            return text_of(array)
        except RuntimeError:
            if not array.is_deleted():  # deleted by another thread in the meantime
                raise
    return f"Array(shape={array.shape}, deleted, dtype={array.dtype.name})"


def _alive_repr(array: Array) -> str:
    dtype_text = f"dtype={array.dtype.name}"
    if not _is_readable(array):
        return f"{_PREFIX}shape={array.shape}, {dtype_text})"
    width = np.get_printoptions()["linewidth"]
    if array.size == 0:
        body = f"[], shape={array.shape}"
    else:
        value, options = _shown_value(array)
        body = np.array2string(
            value, prefix=_PREFIX, suffix=",", separator=", ", max_line_width=width, threshold=options["threshold"]
        )
    # As in JAX: a dtype that does not fit on the last line follows after six blanks.
    last_line_length = len(body) - body.rfind("\n") + 1
    fits = last_line_length + len(dtype_text) + 2 <= width
    return f"{_PREFIX}{body},{' ' if fits else ' ' * len(_PREFIX)}{dtype_text})"


def _is_readable(array: Array) -> bool:
    """Returns whether the value can be shown: this process has all shards, or a replica, as in JAX."""
    return array.is_fully_addressable or (array.is_fully_replicated and array.sharding.has_addressable_devices)


def _alive_str(array: Array) -> str:
    if not _is_readable(array):
        return _alive_repr(array)
    value, options = _shown_value(array)
    return np.array2string(value, threshold=options["threshold"]) if value.ndim else str(value)


def _shown_value(array: Array) -> tuple[npt.NDArray[Any], Any]:
    """Returns an ndarray that prints as the Array's value, and the print options for it.

    If NumPy would summarize the value, only its edges are read: showing an Array of any size gathers few elements and
    caches nothing.
    """
    options = np.get_printoptions()
    if array.size <= options["threshold"] or array.is_fully_replicated:
        return np.asarray(array), options
    edge = options["edgeitems"]
    if edge < 1:
        return np.asarray(array), options
    # One element between the edges of a dimension replaces the elements that are left out; it is never printed.
    small = np.zeros([min(size, 2 * edge + 1) for size in array.shape], array.dtype)
    for shard in array.addressable_shards:
        if shard.replica_id != 0:
            continue
        places, sources = [], []
        for part, size, length in zip(shard.index, array.shape, small.shape, strict=True):
            start, stop, _ = part.indices(size)
            shown = np.arange(length)
            shown[edge + 1 :] += size - length  # positions in the Array
            own = (start <= shown) & (shown < stop)
            own[edge : length - edge] = False
            places.append(np.flatnonzero(own))
            sources.append(shown[own] - start)
        if all(map(len, places)):
            small[np.ix_(*places)] = np.asarray(shard.data)[np.ix_(*sources)]
    return small, {**options, "threshold": 0}
