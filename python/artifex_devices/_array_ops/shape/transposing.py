# SPDX-License-Identifier: Apache-2.0
"""Dimensions in another order: the cuts go with them, and each shard is turned where it lies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from artifex_devices._array_ops.core.dispatch import implements
from artifex_devices._array_ops.core.layout import cuts_of
from artifex_devices._array_ops.shape.rearranging import copy_shards
from artifex_devices._array_ops.shape.reshaping import same_bytes
from artifex_devices._core import Array

__all__ = ["matrix_transpose", "swapaxes", "transpose"]


@implements(np.transpose)  # np.permute_dims is the same function
def transpose(a: Array, axes: Any = None) -> Array:
    """np.transpose."""
    order = tuple(reversed(range(a.ndim))) if axes is None else normalize_axis_tuple(axes, a.ndim, "axes")
    if len(order) != a.ndim:
        raise ValueError(
            f"transpose: axes does not name every dimension; expected {a.ndim} of them, got {axes} for shape {a.shape}"
        )
    if order == tuple(range(a.ndim)):
        return a
    shape = tuple(a.shape[d] for d in order)
    cuts = cuts_of(a)
    turned = tuple(cuts[d] for d in order)
    long = [d for d in order if a.shape[d] != 1]
    if long == sorted(long):  # only dimensions of size 1 move
        return same_bytes("transpose", a, shape, turned)
    back = [order.index(d) for d in range(a.ndim)]
    return copy_shards(
        "transpose",
        a,
        shape,
        turned,
        lambda view, box: view.transpose(order),
        lambda box: tuple(box[d] for d in back),
    )


@implements(np.matrix_transpose, np.linalg.matrix_transpose)
def matrix_transpose(x: Array, /) -> Array:
    """np.matrix_transpose: the last two dimensions change places."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: no matrix; expected at least two dimensions, got shape {x.shape}")
    return swapaxes(x, -1, -2)


@implements(np.swapaxes)
def swapaxes(a: Array, axis1: Any, axis2: Any) -> Array:
    """np.swapaxes."""
    i, j = normalize_axis_index(axis1, a.ndim, "axis1"), normalize_axis_index(axis2, a.ndim, "axis2")
    order = list(range(a.ndim))
    order[i], order[j] = j, i
    return transpose(a, order)


@implements(np.moveaxis)
def _moveaxis(a: Array, source: Any, destination: Any) -> Array:
    sources = normalize_axis_tuple(source, a.ndim, "source")
    destinations = normalize_axis_tuple(destination, a.ndim, "destination")
    if len(sources) != len(destinations):
        raise ValueError(
            f"moveaxis: source and destination differ in length; expected as many of each, got {source} and "
            f"{destination}"
        )
    order = [d for d in range(a.ndim) if d not in sources]
    for to, moved in sorted(zip(destinations, sources, strict=True)):
        order.insert(to, moved)
    return transpose(a, order)


@implements(np.rollaxis)
def _rollaxis(a: Array, axis: Any, start: Any = 0) -> Array:
    moved = normalize_axis_index(axis, a.ndim)
    if not -a.ndim <= start <= a.ndim:
        raise np.exceptions.AxisError(start, a.ndim + 1, "start")
    to = start + a.ndim if start < 0 else start
    order = [d for d in range(a.ndim) if d != moved]
    order.insert(to - 1 if moved < to else to, moved)
    return transpose(a, order)
