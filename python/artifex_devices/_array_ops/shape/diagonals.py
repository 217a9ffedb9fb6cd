# SPDX-License-Identifier: Apache-2.0
"""diagonal, trace, triu and tril on Arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import DTypeLike, NDArray

from artifex_devices._array_ops.core.auto_axes import readable, whole_along
from artifex_devices._array_ops.core.blocks import Box
from artifex_devices._array_ops.core.operand_sharding import spec_of
from artifex_devices._array_ops.core.reading import Source, assemble
from artifex_devices._array_ops.core.registry import implements, implements_each
from artifex_devices._array_ops.linalg.contraction import contract
from artifex_devices._array_ops.reduce.reductions import reduce_ufunc
from artifex_devices._array_ops.shape.creation import broadcast_to
from artifex_devices._array_ops.shape.rearranging import copy_boxes
from artifex_devices._base.argument_types import Out
from artifex_devices._base.checks import failure
from artifex_devices._core import Array


@implements(np.diagonal)
def diagonal(
    a: Array,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    *,
    operation: str = "diagonal",
) -> Array:
    """Implements np.diagonal, as a copy: sharded as the first of the two dimensions that is sharded."""
    if a.ndim < 2:
        raise failure(
            ValueError,
            operation,
            "the operand is not a matrix",
            expected="at least two dimensions",
            got=f"shape {a.shape}",
        )
    i, j = normalize_axis_index(axis1, a.ndim, "axis1"), normalize_axis_index(axis2, a.ndim, "axis2")
    if i == j:
        raise ValueError(f"{operation}: axis1 and axis2 are the same; expected two dimensions, got {axis1} and {axis2}")
    k = operator.index(offset)
    others = tuple(d for d in range(a.ndim) if d not in (i, j))
    if k == 0 and a.shape[i] == a.shape[j]:

        def multiply(output: NDArray[Any], parts: Sequence[NDArray[Any]], wide: bool) -> None:
            np.copyto(output, np.diagonal(parts[0], 0, i, j))

        labels = tuple("diagonal" if d in (i, j) else d for d in range(a.ndim))
        return contract(operation, (a,), (labels,), (*others, "diagonal"), a.dtype, multiply, blas=False)
    a = whole_along(operation, readable(operation, a), (i, j))
    length = max(min(a.shape[i] + min(k, 0), a.shape[j] - max(k, 0)), 0)
    spec = spec_of(a)

    def pieces(box: Box) -> list[tuple[Box, Box]]:
        source = [slice(0, size, 1) for size in a.shape]
        for d, part in zip(others, box[:-1], strict=True):
            source[d] = part
        return [(tuple(slice(0, part.stop - part.start, 1) for part in box), tuple(source))]

    return copy_boxes(
        operation,
        a,
        (*(a.shape[d] for d in others), length),
        (*(spec[d] for d in others), ()),
        pieces,
        lambda view: np.diagonal(view, k, i, j),
    )


@implements(np.trace)
def _trace(
    a: Array,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: Out = None,
) -> Any:
    """Implements np.trace: each device adds its part of the diagonal; the sums are added in the order of the tiles."""
    line = diagonal(a, offset, axis1, axis2, operation="trace")
    return reduce_ufunc(np.add, line, -1, dtype, out, name="trace")


@implements_each(np.triu, np.tril)
def _triangle(function: Callable[..., Any], m: Array, k: int = 0) -> Array:
    """Computes each shard from the diagonal through it on its own device; a vector is each row of a square matrix."""
    operation = function.__name__
    if not m.ndim:
        raise failure(
            TypeError,
            operation,
            "the operand is not a matrix",
            expected="a dimension or more",
            got="shape ()",
            fix="reshape it",
        )
    if m.ndim == 1:
        m = broadcast_to(m, (m.size, m.size))
    first = operator.index(k)
    source = Source(operation, m, m.sharding)

    def fill(out: NDArray[Any], box: Box, position: int) -> None:
        np.copyto(out, function(source.box(box, position), first + box[-2].start - box[-1].start))

    return assemble(operation, m.shape, m.dtype, m.sharding, committed=m.committed, fill=fill)
