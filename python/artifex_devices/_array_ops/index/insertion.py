# SPDX-License-Identifier: Apache-2.0
"""delete and insert: one selection along a dimension, which stays sharded if that divides its new size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from artifex_devices._array_ops.core.arguments import array_operand, as_array, as_operand, on_host, one_axis
from artifex_devices._array_ops.core.auto_axes import readable
from artifex_devices._array_ops.core.registry import implements
from artifex_devices._array_ops.index.indexing import part_of
from artifex_devices._array_ops.shape.creation import broadcast_to
from artifex_devices._array_ops.shape.reshaping import ravel
from artifex_devices._core import Array


@implements(np.delete)
def _delete(arr: ArrayLike, obj: Any, axis: int | None = None) -> Array:
    x, d = _along("delete", as_array("delete", arr, [arr, obj]), axis)
    places = on_host("delete", obj, "obj") if isinstance(obj, Array) else obj
    return part_of("delete", x, d, np.delete(np.arange(x.shape[d]), places))


@implements(np.insert)
def _insert(arr: ArrayLike, obj: Any, values: ArrayLike, axis: int | None = None) -> Array:
    """Implements np.insert: the values are joined behind the elements, and then all are put in order."""
    x, d = _along("insert", as_array("insert", arr, [arr, obj, values]), axis)
    size = x.shape[d]
    places = np.arange(*obj.indices(size)) if isinstance(obj, slice) else on_host("insert", obj, "obj")
    if places.dtype == bool and places.ndim == 1:
        places = np.flatnonzero(places)
    elif not places.size and not isinstance(obj, (Array, np.ndarray)):
        places = places.astype(int)
    added: Any = as_operand("insert", values)
    if isinstance(added, Array):
        added = readable("insert", added)
    added = added.astype(x.dtype)
    count = places.size
    if count == 1:
        added = added[(None,) * (x.ndim - added.ndim)]
        if not places.ndim:  # as in x[:, 0] = values, not as in x[:, [0]] = values
            added = np.moveaxis(added, 0, d)
        count = added.shape[d]
    added = broadcast_to(added, (*x.shape[:d], count, *x.shape[d + 1 :]))
    order = np.insert(np.arange(size), places, np.arange(size, size + count))
    return part_of("insert", array_operand("insert", np.concatenate([x, added], d)), d, order)


def _along(operation: str, x: Array, axis: int | None) -> tuple[Array, int]:
    """Returns the Array and the dimension that `axis` means; None flattens."""
    x = readable(operation, x)
    return (ravel(x), 0) if axis is None else (x, one_axis(operation, axis, x.ndim))
