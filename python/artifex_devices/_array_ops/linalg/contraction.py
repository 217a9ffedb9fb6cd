# SPDX-License-Identifier: Apache-2.0
"""Sums of products over labelled dimensions: each device multiplies its own blocks, only partial sums are sent."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from artifex_devices._array_ops.core.blocks import (
    PIECE_BYTES,
    Box,
    Tiling,
    allocate,
    buffers_at,
    check_host_operand,
    local_arrays,
    moved_to,
    run_all,
    tiling,
    views_at,
)
from artifex_devices._array_ops.core.fused_small import from_fused, fused_values, is_small
from artifex_devices._array_ops.core.operand_sharding import (
    OperandDevices,
    Spec,
    common_devices,
    sharding_with,
    spec_in,
    spec_of,
)
from artifex_devices._base.blas_threads import shared_cores
from artifex_devices._base.checks import failure
from artifex_devices._base.clearable_cache import clearable
from artifex_devices._core import Array, Sharding, internal
from artifex_devices._runtime.gpu_block import is_gpu_block

# One label for each dimension; dimensions with the same label are indexed together.
Labels = tuple[Hashable, ...]

# Writes the product of parts: multiply(output, parts, wide); `wide` is whether a float32 output has smaller operands.
Multiply = Callable[[NDArray[Any], Sequence[NDArray[Any]], bool], Any]

_BLAS_TYPES = frozenset("fdFD")
# OpenBLAS uses several threads from about this many multiplications on.
_BLAS_THREADS_FROM = 1 << 18
# Products that BLAS does not compute are split along the first dimension into pieces of this many multiplications.
_PIECE_PRODUCTS = 1 << 22
# Partial sums of these dtypes are float32.
_NARROW = frozenset(("float16", "bfloat16"))


class _ContractionPlan(NamedTuple):
    """The steps of a contraction. The "work" has one dimension for each label, labels of the result first."""

    devices: OperandDevices
    shape: tuple[int, ...]  # of the result
    sharding: Sharding  # of the result
    work: Sharding
    places: Tiling  # of the work
    indices: tuple[tuple[int, ...], ...]  # by operand and dimension: its dimension of the work; -1 if it is broadcast
    targets: tuple[Sharding, ...]  # by operand: its sharding if it must be moved
    terms: tuple[tuple[Box, ...], ...]  # for each part of a sharded sum: the box of each operand
    partial: Sharding | None  # of the terms, stacked along a first dimension, if some are needed in other processes
    products: int  # number of multiplications


_plans: dict[Any, _ContractionPlan] = clearable({})  # by all that _plan depends on


def _plan(
    operation: str,
    operands: Sequence[Any],
    labels: Sequence[Labels],
    out_labels: Labels,
    broadcast: Callable[[Hashable], bool],
) -> _ContractionPlan:
    """Returns the plan for operands like these."""
    seen = [(x.sharding, x.shape, x.committed, x.nbytes) if isinstance(x, Array) else x.shape for x in operands]
    key = (operation, *seen, *labels, out_labels)
    cached = _plans.get(key)
    if cached is not None:
        return cached
    sizes = _sizes(operation, operands, labels, broadcast)
    every = (*out_labels, *(label for label in sizes if label not in out_labels))
    shape = tuple(sizes[label] for label in every)
    numbers = [tuple(map(every.index, own)) for own in labels]
    arrays = [x for x in operands if isinstance(x, Array)]
    devices = common_devices(operation, arrays)
    spec = internal.contract_specs(
        operation,
        devices.sharding,
        arrays,
        [own for own, x in zip(numbers, operands, strict=True) if isinstance(x, Array)],
        shape,
        len(out_labels),
    )
    work = sharding_with(devices.sharding, spec)
    indices = tuple(
        tuple(i if size == shape[i] else -1 for i, size in zip(own, x.shape, strict=True))
        for x, own in zip(operands, numbers, strict=True)
    )
    targets = [_target(x, spec, index) for x, index in zip(operands, indices, strict=True)]
    places = tiling(work, shape, operation)
    summed = tuple(axis for axes in spec[len(out_labels) :] for axis in axes)
    out_spec = spec[: len(out_labels)]
    parts_of_sum = math.prod(places.parts[len(out_labels) :])
    has_terms = internal.holds_complete_runs(work, parts_of_sum)
    if len(_plans) >= 4096:
        _plans.clear()
    _plans[key] = plan = _ContractionPlan(
        devices=devices,
        shape=shape[: len(out_labels)],
        sharding=sharding_with(devices.sharding, out_spec),
        work=work,
        places=places,
        indices=indices,
        targets=tuple(sharding_with(work, target) for target in targets),
        terms=_terms(places, shape, len(out_labels), indices) if parts_of_sum > 1 else (),
        partial=None if has_terms else sharding_with(devices.sharding, (summed, *out_spec)),
        products=math.prod(shape),
    )
    return plan


def _target(x: ArrayLike, spec: Spec, index: tuple[int, ...]) -> Spec:
    """Returns the spec of an operand to multiply: a label that it has twice is sharded in one dimension only."""
    own = spec_of(x) if isinstance(x, Array) else ()
    sharded: dict[int, int] = {}  # by label: that dimension
    for d, i in enumerate(index):
        if i >= 0 and (i not in sharded or (d < len(own) and own[d] == spec[i])):
            sharded[i] = d
    return tuple(spec[i] if sharded.get(i) == d else () for d, i in enumerate(index))


def _terms(
    places: Tiling, shape: tuple[int, ...], out_ndim: int, indices: Sequence[tuple[int, ...]]
) -> tuple[tuple[Box, ...], ...]:
    """Returns the box of each operand for each part of a sharded sum, in the order of the tiles."""
    everything = slice(None)
    parts = [
        [slice(min(number * side, size), min((number + 1) * side, size)) for number in range(count)]
        for size, side, count in zip(shape[out_ndim:], places.sides[out_ndim:], places.parts[out_ndim:], strict=True)
    ]
    return tuple(
        tuple(tuple(box[i - out_ndim] if i >= out_ndim else everything for i in index) for index in indices)
        for box in itertools.product(*parts)
    )


def _sizes(
    operation: str, operands: Sequence[Any], labels: Sequence[Labels], broadcast: Callable[[Hashable], bool]
) -> dict[Hashable, int]:
    """Returns the size of each label."""
    found: dict[Hashable, list[tuple[int, int, int]]] = {}
    for i, (x, own) in enumerate(zip(operands, labels, strict=True)):
        for d, label in enumerate(own):
            found.setdefault(label, []).append((x.shape[d], i, d))
    sizes: dict[Hashable, int] = {}
    wrong = []
    for label, uses in found.items():
        different = {size for size, _, _ in uses}
        if len(different) > 1 and broadcast(label):
            different.discard(1)
        if len(different) > 1:
            wrong.append(" but ".join(f"dimension {d} of operand {i} is {size}" for size, i, d in uses))
        sizes[label] = max(different) if different else 1
    if wrong:
        shapes = " and ".join(str(tuple(x.shape)) for x in operands)
        raise failure(
            ValueError,
            operation,
            "sizes do not match",
            expected="equal sizes where dimensions are indexed together",
            got=f"shapes {shapes}: {'; '.join(wrong)}",
            fix="transpose or reshape one of them",
        )
    return sizes


def contract(
    operation: str,
    operands: Sequence[Any],
    labels: Sequence[Labels],
    out_labels: Labels,
    dtype: np.dtype[Any],
    multiply: Multiply,
    *,
    broadcast: Callable[[Hashable], bool] = lambda label: False,
    blas: bool = True,
) -> Array:
    """Multiplies operands along their labels and sums over labels that are not in the result.

    A dimension of the result is sharded as in the operands. If a summed dimension is sharded, each device sums over its
    part, and the parts are added in the order of the tiles; the result is replicated over those axes. Processes send
    each other the parts that they need.

    `multiply` does this for one part of each operand. Dimensions of size 1 are broadcast if `broadcast(label)`. `blas`
    is whether `multiply` calls BLAS, which has its own threads, for float and complex numbers.
    """
    dtype = np.dtype(dtype)
    plan = _plan(operation, operands, labels, out_labels, broadcast)
    operands = [
        moved_to(operation, x, plan.devices, target)
        if isinstance(x, Array) and not x.sharding._same_devices(plan.work)
        else x
        for x, target in zip(operands, plan.targets, strict=True)
    ]
    quick = _compute_fused(operation, plan, operands, dtype, multiply, blas)
    if quick is not None:
        return quick
    places = plan.places
    parts = []
    for x, index, target in zip(operands, plan.indices, plan.targets, strict=True):
        boxes: list[Box] = [tuple(box[i] if i >= 0 else slice(0, 1, 1) for i in index) for box in places.boxes]
        parts.append(views_at(operation, x, plan.devices, places.positions, boxes, target))
    committed = plan.devices.committed
    if plan.partial is None:
        result, buffers = allocate(operation, plan.shape, dtype, plan.sharding, committed=committed)
    else:
        result, buffers, multiply = _allocate_terms(operation, plan, dtype, multiply)
    share = math.prod(part.stop - part.start for part in places.boxes[0]) if places.boxes else 0
    blas = blas and dtype.char in _BLAS_TYPES
    job = _Job(multiply, tuple(labels), out_labels, 0 if blas else share, len(plan.terms) or 1, dtype.itemsize)
    if plan.terms and plan.partial is None:
        out_places = tiling(result.sharding, plan.shape, operation)
        tasks, copies = _sums(job, parts, buffers, places, out_places, len(out_labels))
    else:
        tasks, copies = [], []
        for number, buffer in enumerate(buffers):
            tasks.extend(job.pieces(buffer, [[part[number] for part in parts]]))
    touched_bytes = max(share * len(tasks), sum(x.nbytes for x in (*operands, result)))
    # One thread of BLAS for each block: several would split rows into parts that are too small.
    is_parallel = blas and len(tasks) > 1 and share > _BLAS_THREADS_FROM
    with shared_cores(len(tasks)) if is_parallel else contextlib.nullcontext():
        run_all(tasks, touched_bytes)
    for copy in copies:
        copy()
    return result if plan.partial is None else _sum_of_terms(operation, plan, result, dtype)


def _allocate_terms(
    operation: str, plan: _ContractionPlan, dtype: np.dtype[Any], multiply: Multiply
) -> tuple[Array, list[NDArray[Any]], Multiply]:
    """Returns an Array of the stacked terms of a sharded sum, the term in each buffer, and how to write it."""
    assert plan.partial is not None
    wide = dtype.name in _NARROW
    kind, shape = (np.float32 if wide else dtype), (len(plan.terms), *plan.shape)
    stacked, blocks = allocate(operation, shape, kind, plan.partial, committed=plan.devices.committed)
    buffers = [blocks[number][0, ...] for number in buffers_at(plan.partial, plan.places.positions)]
    return stacked, buffers, (lambda out, parts, _: multiply(out, parts, True)) if wide else multiply


def _sum_of_terms(operation: str, plan: _ContractionPlan, stacked: Array, dtype: np.dtype[Any]) -> Array:
    """Sends all terms to the devices that need the sum, which add them in the order of the tiles, as _add_up does."""
    here = sharding_with(plan.sharding, ((), *spec_in(plan.sharding, len(plan.shape))))
    blocks = local_arrays(operation, moved_to(operation, stacked, plan.devices, here), False, True)
    result, buffers = allocate(operation, plan.shape, dtype, plan.sharding, committed=plan.devices.committed)
    numbers = buffers_at(here, tiling(plan.sharding, plan.shape, operation).positions)
    tasks = [
        functools.partial(_add_terms, buffer, blocks[number])
        for buffer, number in zip(buffers, numbers, strict=True)
        if buffer.size
    ]
    run_all(tasks, sum(block.nbytes for block in blocks))
    return result


def _add_terms(output: NDArray[Any], terms: NDArray[Any]) -> None:
    total = output if output.dtype == terms.dtype else np.empty_like(output, terms.dtype, order="C")
    np.copyto(total, terms[0, ...])
    for number in range(1, terms.shape[0]):
        np.add(total, terms[number, ...], out=total)
    if total is not output:
        np.copyto(output, total, casting="unsafe")


def _compute_fused(
    operation: str,
    plan: _ContractionPlan,
    operands: Sequence[Any],
    dtype: np.dtype[Any],
    multiply: Multiply,
    blas: bool,
) -> Array | None:
    """Computes one product, if operands and result are small."""
    if not is_small(math.prod(plan.shape) * dtype.itemsize, *(x.nbytes for x in operands)):
        return None
    if plan.products > _PIECE_PRODUCTS and not (blas and dtype.char in _BLAS_TYPES):
        return None
    parts = fused_values(operands)
    if parts is None:
        return None
    for x, target in zip(operands, plan.targets, strict=True):
        check_host_operand(operation, x, target)
    value = np.empty(plan.shape, dtype)
    if plan.terms and dtype.kind not in "biu":  # in the same order as large ones, because it changes the last digits
        _add_up(multiply, value, [[part[box] for part, box in zip(parts, term, strict=True)] for term in plan.terms])
    else:
        multiply(value, parts, False)
    return from_fused(operation, value, dtype, plan.sharding, committed=plan.devices.committed)


class _Job(NamedTuple):
    """One contraction of parts."""

    multiply: Multiply
    labels: tuple[Labels, ...]
    out_labels: Labels
    products: int  # number of multiplications of a part; 0 to leave it in one piece
    terms: int  # of the sum, in all processes: pieces depend on it, and the last digits on pieces
    itemsize: int  # of the result

    def pieces(self, output: NDArray[Any], tiles: Sequence[Sequence[NDArray[Any]]]) -> list[Callable[[], Any]]:
        """Calls that together write `output`, the sum over tiles: one, or several along its first dimension."""
        if not output.size:
            return []
        wanted = 0 if is_gpu_block(output) else self.terms * self.products // _PIECE_PRODUCTS
        if self.terms > 1 and not is_gpu_block(output):  # keeps terms in the caches until they are added
            wanted = max(wanted, output.size * self.itemsize // PIECE_BYTES)
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
        """Returns the part of an operand for these rows of the output."""
        cut = [label == self.out_labels[0] and part.shape[d] == size for d, label in enumerate(own)]
        return part[tuple(rows if here else slice(None) for here in cut)]


def _add_up(multiply: Multiply, output: NDArray[Any], tiles: Sequence[Sequence[NDArray[Any]]]) -> None:
    """Writes the sum of the products of one or several tiles, in their order."""
    if len(tiles) == 1:
        multiply(output, tiles[0], False)
        return
    wide = output.dtype.name in _NARROW
    total = np.empty_like(output, np.float32, order="C") if wide else output
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
    """Returns the tasks for each tile of the result, and the copies to other buffers of the tile that follow them."""
    terms = math.prod(places.parts[out_ndim:])
    number_of = places.first
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
