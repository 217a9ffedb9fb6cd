# SPDX-License-Identifier: Apache-2.0
"""diagonal, trace, triu and tril on Arrays."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import NDArray

from artifex_devices._array_ops.core.arguments import deliver, host_target, loop_dtype, require_unsharded
from artifex_devices._array_ops.core.blocks import Box, allocate, local_arrays, run_all, tiling
from artifex_devices._array_ops.core.dispatch import implements
from artifex_devices._array_ops.core.layout import spec_of
from artifex_devices._array_ops.linalg.contraction import contract
from artifex_devices._array_ops.linalg.contraction_plans import Labels
from artifex_devices._array_ops.shape.broadcasting import broadcast_to
from artifex_devices._array_ops.shape.rearranging import copy_boxes
from artifex_devices._core import Array


def _axes(operation: str, a: Array, axis1: Any, axis2: Any) -> tuple[int, int]:
    if a.ndim < 2:
        raise ValueError(
            f"{operation}: the operand is not a matrix; expected at least two dimensions, got shape {a.shape}"
        )
    i, j = normalize_axis_index(axis1, a.ndim, "axis1"), normalize_axis_index(axis2, a.ndim, "axis2")
    if i == j:
        raise ValueError(f"{operation}: axis1 and axis2 are the same; expected two dimensions, got {axis1} and {axis2}")
    return i, j


def _labels(ndim: int, i: int, j: int) -> tuple[Labels, Labels]:
    """Labels of an array whose dimensions i and j are indexed together, and of the other dimensions."""
    labels: list[Hashable] = list(range(ndim))
    labels[i] = labels[j] = "diagonal"
    return tuple(labels), tuple(d for d in range(ndim) if d not in (i, j))


@implements(np.diagonal)
def diagonal(a: Array, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Array:
    """np.diagonal, as a copy: sharded as the first of the two dimensions that is sharded."""
    i, j = _axes("diagonal", a, axis1, axis2)
    k = operator.index(offset)
    if k == 0 and a.shape[i] == a.shape[j]:
        labels, rest = _labels(a.ndim, i, j)

        def multiply(output: NDArray[Any], parts: Sequence[NDArray[Any]], wide: bool) -> None:
            np.copyto(output, np.diagonal(parts[0], 0, i, j))

        return contract("diagonal", (a,), (labels,), (*rest, "diagonal"), a.dtype, multiply, blas=False)
    require_unsharded("diagonal", a, (i, j))
    length = max(min(a.shape[i] + min(k, 0), a.shape[j] - max(k, 0)), 0)
    spec = spec_of(a)
    others = [d for d in range(a.ndim) if d not in (i, j)]

    def pieces(box: Box) -> list[tuple[Box, Box]]:
        source = [slice(0, size, 1) for size in a.shape]
        for d, part in zip(others, box[:-1], strict=True):
            source[d] = part
        return [(tuple(slice(0, part.stop - part.start, 1) for part in box), tuple(source))]

    return copy_boxes(
        "diagonal",
        a,
        (*(a.shape[d] for d in others), length),
        (*(spec[d] for d in others), ()),
        pieces,
        lambda view: np.diagonal(view, k, i, j),
    )


@implements(np.trace)
def trace(a: Array, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None) -> Any:
    """np.trace: each device adds its part of the diagonal; the sums are added in the order of the tiles."""
    i, j = _axes("trace", a, axis1, axis2)
    k = operator.index(offset)
    into = host_target("trace", out)
    if into is not None and dtype is None:
        dtype = loop_dtype(np.add, a.dtype, into.dtype)
    result_dtype = np.trace(np.ones((1, 1), a.dtype), dtype=dtype).dtype
    labels, others = _labels(a.ndim, i, j)
    if k == 0 and a.shape[i] == a.shape[j]:

        def multiply(output: NDArray[Any], parts: Sequence[NDArray[Any]], wide: bool) -> None:
            np.copyto(output, np.trace(parts[0], 0, i, j, dtype=output.dtype if wide else dtype))

        total = contract("trace", (a,), (labels,), others, result_dtype, multiply, blas=False)
        return deliver("trace", total, into, "unsafe")
    line = diagonal(a, k, i, j)

    def add(output: NDArray[Any], parts: Sequence[NDArray[Any]], wide: bool) -> None:
        np.copyto(output, parts[0].sum(-1, dtype=output.dtype if wide else dtype))

    own = tuple(range(line.ndim))
    total = contract("trace", (line,), (own,), own[:-1], result_dtype, add, blas=False)
    return deliver("trace", total, into, "unsafe")


@implements(np.triu)
def _triu(m: Any, k: Any = 0) -> Array:
    return _triangle("triu", np.triu, m, k)


@implements(np.tril)
def _tril(m: Any, k: Any = 0) -> Array:
    return _triangle("tril", np.tril, m, k)


def _triangle(operation: str, function: Any, m: Array, k: Any) -> Array:
    """Each device computes its shard from the diagonal through it; a vector is each row of a square matrix."""
    if not m.ndim:
        raise TypeError(
            f"{operation}: the operand is not a matrix; expected a dimension or more, got shape (); reshape it"
        )
    if m.ndim == 1:
        m = broadcast_to(m, (m.size, m.size))
    first = operator.index(k)
    result, buffers = allocate(operation, m.shape, m.dtype, m.sharding, committed=m.committed)

    def task(buffer: NDArray[Any], part: NDArray[Any], box: Box) -> Any:
        return lambda: np.copyto(buffer, function(part, first + box[-2].start - box[-1].start))

    boxes = tiling(m.sharding, m.shape, operation).boxes
    run_all(
        [task(b, part, box) for b, part, box in zip(buffers, local_arrays(m), boxes, strict=True) if b.size],
        m.nbytes * 2,
    )
    return result


@implements(np.linalg.diagonal)
def _linalg_diagonal(x: Array, /, *, offset: int = 0) -> Array:
    return diagonal(x, offset, -2, -1)


@implements(np.linalg.trace)
def _linalg_trace(x: Array, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return trace(x, offset, -2, -1, dtype)
