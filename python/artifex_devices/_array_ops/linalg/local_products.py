# SPDX-License-Identifier: Apache-2.0
"""Products of two labelled ndarrays by matmul, written straight into the result where its order allows it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifex_devices._array_ops.linalg.contraction import Labels
from artifex_devices._base.clearable_cache import remembered

__all__ = ["PairPlan", "multiply_pair", "plan_pair"]


class PairPlan(NamedTuple):
    """How the product of two arrays is a (stacked) matrix product."""

    left: tuple[int, ...]  # order of its dimensions: stacked, rows, summed
    right: tuple[int, ...]  # order of its dimensions: stacked, summed, columns
    stacked: int
    rows: int
    columns: int
    swapped: bool  # the second operand is the left one
    order: tuple[int, ...] | None  # of the result's dimensions, where they do not come as stacked, rows, columns


@remembered(maxsize=1024)
def plan_pair(a: Labels, b: Labels, out: Labels) -> PairPlan | None:
    """The plan, or None where the product is no matrix product: einsum does it then."""
    if len(set(a)) < len(a) or len(set(b)) < len(b):
        return None
    summed = tuple(label for label in a if label not in out)
    if not summed or set(summed) != {label for label in b if label not in out}:
        return None
    stacked = tuple(label for label in out if label in a and label in b)
    rows = tuple(label for label in out if label in a and label not in b)
    columns = tuple(label for label in out if label in b and label not in a)
    if stacked and not (rows and columns):
        return None  # nothing for BLAS to do
    swapped = out == (*stacked, *columns, *rows) != (*stacked, *rows, *columns)
    if swapped:
        a, b, rows, columns = b, a, columns, rows
    natural = (*stacked, *rows, *columns)
    return PairPlan(
        left=tuple(map(a.index, (*stacked, *rows, *summed))),
        right=tuple(map(b.index, (*stacked, *summed, *columns))),
        stacked=len(stacked),
        rows=len(rows),
        columns=len(columns),
        swapped=swapped,
        order=None if out == natural else tuple(map(natural.index, out)),
    )


def multiply_pair(
    plan: PairPlan, output: NDArray[Any], parts: Sequence[NDArray[Any]], wide: bool, **options: Any
) -> None:
    """Writes the product of two arrays.

    Args:
        plan: Of their labels.
        output: Dense, row-major.
        parts: The two arrays.
        wide: Multiply in the dtype of `output`, which is wider than NumPy would choose.
        options: casting and dtype of np.matmul.
    """
    a, b = (parts[1], parts[0]) if plan.swapped else parts
    a = a.transpose(plan.left)
    b = b.transpose(plan.right)
    s, r, c = plan.stacked, plan.rows, plan.columns
    rows, columns = a.shape[s : s + r], b.shape[b.ndim - c :]
    depth = math.prod(a.shape[s + r :])
    a = a.reshape(*a.shape[:s], math.prod(rows), depth)
    b = b.reshape(*b.shape[:s], depth, math.prod(columns))
    stack = np.broadcast_shapes(a.shape[:s], b.shape[:s])
    if wide:
        options["dtype"] = output.dtype
    if plan.order is None:
        np.matmul(a, b, out=output.reshape(*stack, math.prod(rows), math.prod(columns), copy=False), **options)
        return
    product = np.empty((*stack, math.prod(rows), math.prod(columns)), output.dtype)
    np.matmul(a, b, out=product, **options)
    np.copyto(output, product.reshape(*stack, *rows, *columns).transpose(plan.order))
