# SPDX-License-Identifier: Apache-2.0
"""Sums of products over labelled dimensions: each device multiplies what it holds, only partial sums travel."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._array_ops.core.blocks import (
    PIECE_BYTES,
    Box,
    Tiling,
    allocate,
    blocks_at,
    moved_to,
    run_all,
    tiling,
)
from artifex_devices._array_ops.core.fused_small import from_fused, fused_values, is_small
from artifex_devices._array_ops.linalg.contraction_plans import Labels, Plan, plan_contraction
from artifex_devices._base.blas_threads import shared_cores
from artifex_devices._core import Array, Sharding

# Writes the product of parts: multiply(output, parts, wide); wide: the output is float32 for operands that are less.
Multiply = Callable[[NDArray[Any], Sequence[NDArray[Any]], bool], Any]

_BLAS_TYPES = frozenset("fdFD")
# OpenBLAS works on several threads from about this many multiplications on: then blocks come one after another.
_BLAS_THREADS_FROM = 1 << 18
# Products that BLAS does not do are cut along the first dimension into pieces of this many multiplications.
_PIECE_PRODUCTS = 1 << 22
# Partial sums of these are kept in float32.
_NARROW = frozenset(("float16", "bfloat16"))


def contract(
    operation: str,
    operands: Sequence[Any],
    labels: Sequence[Labels],
    out_labels: Labels,
    dtype: Any,
    multiply: Multiply,
    *,
    broadcast: Callable[[Hashable], bool] = lambda label: False,
    blas: bool = True,
) -> Array:
    """Multiplies operands along their labels and sums over those that the result does not have.

    A dimension of the result is cut as in the operands. A dimension that is summed and cut stays so: each device sums
    over its part, and the parts are added in the order of the tiles; the result is replicated over those axes.

    Args:
        operation: Name for errors.
        operands: Arrays (at least one) and ndarrays.
        labels: One a dimension of each operand.
        out_labels: One a dimension of the result, each in an operand, none twice.
        dtype: Of the result.
        multiply: Does this for one part of each operand.
        broadcast: Whether dimensions of size 1 stretch to the size that the label has elsewhere.
        blas: Whether `multiply` gives float and complex numbers to BLAS, which has threads of its own.

    Returns:
        An Array.

    Raises:
        ValueError: Sizes differ, or committed Arrays lie on different devices.
        ShardingTypeError: Explicit axes cut one dimension in two ways, or two dimensions of the result.
    """
    plan = plan_contraction(operation, operands, labels, out_labels, broadcast)
    operands = [
        moved_to(operation, x, plan.placement, target)
        if isinstance(x, Array) and not x.sharding._same_devices(plan.work)
        else x
        for x, target in zip(operands, plan.targets, strict=True)
    ]
    quick = _compute_fused(operation, plan, operands, dtype, multiply, blas)
    if quick is not None:
        return quick
    places = plan.places
    parts = [
        _parts(operation, x, plan, index, target)
        for x, index, target in zip(operands, plan.indices, plan.targets, strict=True)
    ]
    result, buffers = allocate(operation, plan.shape, dtype, plan.sharding, committed=plan.placement.committed)
    share = math.prod(_length(part) for part in places.boxes[0])
    blas = blas and result.dtype.char in _BLAS_TYPES
    job = _Job(multiply, tuple(labels), out_labels, 0 if blas else share)
    if plan.terms:
        out_places = tiling(result.sharding, plan.shape, operation)
        tasks, copies = _sums(job, parts, buffers, places, out_places, len(out_labels))
    else:
        tasks, copies = [], []
        for number, buffer in enumerate(buffers):
            tasks.extend(job.pieces(buffer, [[part[number] for part in parts]]))
    touched_bytes = max(share * len(tasks), sum(x.nbytes for x in (*operands, result)))
    if blas and len(tasks) > 1 and share > _BLAS_THREADS_FROM:
        with shared_cores(len(tasks)):  # each block by one thread: its own threads would split rows too few for them
            run_all(tasks, touched_bytes)
    else:
        run_all(tasks, touched_bytes)
    for copy in copies:
        copy()
    return result


def _compute_fused(
    operation: str, plan: Plan, operands: Sequence[Any], dtype: Any, multiply: Multiply, blas: bool
) -> Array | None:
    """One product, where operands and result are small."""
    dtype = np.dtype(dtype)
    if not is_small(math.prod(plan.shape) * dtype.itemsize, *(x.nbytes for x in operands)):
        return None
    if plan.products > _PIECE_PRODUCTS and not (blas and dtype.char in _BLAS_TYPES):
        return None
    parts = fused_values(operands)
    if parts is None:
        return None
    for x in operands:
        _check_host(operation, x, plan.work)
    value = np.empty(plan.shape, dtype)
    if plan.terms and dtype.kind not in "biu":  # as big ones: the order of a sum shows in its last digits
        _add_up(multiply, value, [[part[box] for part, box in zip(parts, term, strict=True)] for term in plan.terms])
    else:
        multiply(value, parts, False)
    return from_fused(operation, value, dtype, plan.sharding, committed=plan.placement.committed)


def _check_host(operation: str, x: Any, work: Sharding) -> None:
    if not isinstance(x, Array) and x.ndim:
        _core._check_transfer("host_to_device", False, x.shape, x.dtype, "host", work, operation)


def _length(part: slice) -> int:
    return int(part.stop - part.start)


def _parts(operation: str, x: Any, plan: Plan, index: tuple[int, ...], target: Sharding) -> list[NDArray[Any]]:
    """What each tile of the work needs of one operand: views; of another Array where x lies elsewhere."""
    places = plan.places
    boxes: list[Box] = [tuple(box[i] if i >= 0 else slice(0, 1, 1) for i in index) for box in places.boxes]
    if not isinstance(x, Array):
        _check_host(operation, x, plan.work)
        return [x[box] for box in boxes]
    views = blocks_at(x, places.positions, boxes, operation)
    if views is None:
        views = blocks_at(moved_to(operation, x, plan.placement, target), places.positions, boxes, operation)
    assert views is not None
    return views


class _Job(NamedTuple):
    """One contraction: what to do for a part."""

    multiply: Multiply
    labels: tuple[Labels, ...]
    out_labels: Labels
    products: int  # how many multiplications a part takes; 0: leave it whole

    def pieces(self, output: NDArray[Any], tiles: Sequence[Sequence[NDArray[Any]]]) -> list[Callable[[], Any]]:
        """Calls that together fill `output`, the sum over tiles: one, or several along its first dimension."""
        if not output.size:
            return []
        wanted = len(tiles) * self.products // _PIECE_PRODUCTS
        if len(tiles) > 1:  # terms stay in the caches until they are added
            wanted = max(wanted, output.nbytes // PIECE_BYTES)
        count = min(wanted, output.shape[0]) if output.ndim else 1
        if count <= 1:
            return [functools.partial(_add_up, self.multiply, output, tiles)]
        size = output.shape[0]
        step = -(-size // count)
        tasks: list[Callable[[], Any]] = []
        for start in range(0, size, step):
            rows = slice(start, min(start + step, size))
            some = [
                [self._rows(part, own, rows, size) for part, own in zip(parts, self.labels, strict=True)]
                for parts in tiles
            ]
            tasks.append(functools.partial(_add_up, self.multiply, output[rows], some))
        return tasks

    def _rows(self, part: NDArray[Any], own: Labels, rows: slice, size: int) -> NDArray[Any]:
        """What of a part these rows of the output need."""
        cut = [label == self.out_labels[0] and part.shape[d] == size for d, label in enumerate(own)]
        return part[tuple(rows if here else slice(None) for here in cut)]


def _add_up(multiply: Multiply, output: NDArray[Any], tiles: Sequence[Sequence[NDArray[Any]]]) -> None:
    """The sum of the products of one or several tiles, in their order."""
    if len(tiles) == 1:
        multiply(output, tiles[0], False)
        return
    wide = output.dtype.name in _NARROW
    total = np.empty(output.shape, np.float32) if wide else output
    multiply(total, tiles[0], wide)
    term = np.empty_like(total)
    for parts in tiles[1:]:
        multiply(term, parts, wide)
        np.add(total, term, out=total)
    if wide:
        np.copyto(output, total, casting="unsafe")


def _sums(
    job: _Job,
    parts: Sequence[Sequence[NDArray[Any]]],
    buffers: Sequence[NDArray[Any]],
    places: Tiling,
    out_places: Tiling,
    out_ndim: int,
) -> tuple[list[Callable[[], Any]], list[Callable[[], Any]]]:
    """The tasks for each tile of the result, and then its copies to the other memories that hold it."""
    terms = math.prod(places.parts[out_ndim:])
    number_of = {tile: number for number, tile in reversed(list(enumerate(places.tiles)))}
    first: dict[int, NDArray[Any]] = {}
    tasks: list[Callable[[], Any]] = []
    copies: list[Callable[[], Any]] = []
    for buffer, tile in zip(buffers, out_places.tiles, strict=True):
        if not buffer.size:
            continue
        if tile in first:
            copies.append(functools.partial(np.copyto, buffer, first[tile]))
            continue
        first[tile] = buffer
        numbers = [number_of[tile * terms + term] for term in range(terms)]
        tasks.extend(job.pieces(buffer, [[part[n] for part in parts] for n in numbers]))
    return tasks, copies
