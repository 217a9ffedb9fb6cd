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
from artifex_devices._core import Array, Sharding
from artifex_devices.array_ops.blocks import Box, Tiling, allocate, blocks_at, moved_to, run_all, tiling
from artifex_devices.array_ops.layout import Home, any_explicit, cuts_in, cuts_of, home_of, sharding_with, specs_text
from artifex_devices.blas_threads import shared_cores
from artifex_devices.errors import ShardingTypeError

__all__ = ["Labels", "Multiply", "contract"]

# One label a dimension; dimensions with the same label run together.
Labels = tuple[Hashable, ...]
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
    arrays = [x for x in operands if isinstance(x, Array)]
    sizes = _sizes(operation, operands, labels, broadcast)
    home = home_of(operation, arrays)
    summed = tuple(label for label in sizes if label not in out_labels)
    every = (*out_labels, *summed)
    cuts = _choose_cuts(operation, home, operands, labels, out_labels, every, sizes)
    out_cuts = tuple(cuts.get(label, ()) for label in out_labels)
    work = sharding_with(home.sharding, tuple(cuts.get(label, ()) for label in every))
    shape = tuple(sizes[label] for label in out_labels)
    places = tiling(work, tuple(sizes[label] for label in every), operation)
    parts = [
        _parts(operation, x, own, home, work, places, every, sizes) for x, own in zip(operands, labels, strict=True)
    ]
    result, buffers = allocate(
        operation, shape, dtype, sharding_with(home.sharding, out_cuts), committed=home.committed
    )
    share = math.prod(_length(part) for part in places.boxes[0])
    blas = blas and result.dtype.char in _BLAS_TYPES
    job = _Job(multiply, tuple(labels), out_labels, 0 if blas else share)
    if any(cuts.get(label) for label in summed):
        out_places = tiling(result.sharding, shape, operation)
        tasks, copies = _sums(job, parts, buffers, places, out_places, len(out_labels))
    else:
        tasks, copies = [], []
        for number, buffer in enumerate(buffers):
            tasks.extend(job.pieces(buffer, [part[number] for part in parts], wide=False))
    touched_bytes = max(share * len(tasks), sum(x.nbytes for x in (*arrays, result)))
    if blas and len(tasks) > 1 and share > _BLAS_THREADS_FROM:
        with shared_cores(len(tasks)):  # each block by one thread: its own threads would split rows too few for them
            run_all(tasks, touched_bytes)
    else:
        run_all(tasks, touched_bytes)
    for copy in copies:
        copy()
    return result


def _length(part: slice) -> int:
    return int(part.stop - part.start)


def _sizes(
    operation: str, operands: Sequence[Any], labels: Sequence[Labels], broadcast: Callable[[Hashable], bool]
) -> dict[Hashable, int]:
    seen: dict[Hashable, list[tuple[int, int, int]]] = {}
    for i, (x, own) in enumerate(zip(operands, labels, strict=True)):
        for d, label in enumerate(own):
            seen.setdefault(label, []).append((x.shape[d], i, d))
    sizes: dict[Hashable, int] = {}
    wrong = []
    for label, found in seen.items():
        others = {size for size, _, _ in found}
        if len(others) > 1 and broadcast(label):
            others.discard(1)
        if len(others) > 1:
            wrong.append(" but ".join(f"dimension {d} of operand {i} is {size}" for size, i, d in found))
        sizes[label] = max(others) if others else 1
    if wrong:
        shapes = " and ".join(str(tuple(x.shape)) for x in operands)
        raise ValueError(
            f"{operation}: sizes do not match; expected equal sizes where dimensions run together, got shapes "
            f"{shapes}: {'; '.join(wrong)}; transpose or reshape one of them"
        )
    return sizes


def _choose_cuts(
    operation: str,
    home: Home,
    operands: Sequence[Any],
    labels: Sequence[Labels],
    out_labels: Labels,
    every: Labels,
    sizes: dict[Hashable, int],
) -> dict[Hashable, tuple[Hashable, ...]]:
    """How each label is cut: as in the biggest operand that cuts it, by axes that no label before it has."""
    wishes: dict[Hashable, list[tuple[int, tuple[Hashable, ...]]]] = {}
    for x, own in zip(operands, labels, strict=True):
        if not isinstance(x, Array) or not home.holds(x):
            continue
        for d, axes in enumerate(cuts_of(x)):
            if axes and x.shape[d] == sizes[own[d]]:
                wishes.setdefault(own[d], []).append((x.nbytes, axes))
    chosen: dict[Hashable, tuple[Hashable, ...]] = {}
    owner: dict[Hashable, Hashable] = {}
    wrong = []
    for label in every:
        wished = wishes.get(label, [])
        different = {axes for _, axes in wished}
        if len(different) > 1 and any(any_explicit(home.sharding, axes) for axes in different):
            wrong.append(
                f"{_named(label, out_labels)} is cut over {' and over '.join(map(str, sorted(different, key=str)))}"
            )
        for _, axes in sorted(wished, key=lambda wish: -wish[0]):
            if label in chosen:
                break
            rivals = {owner[name] for name in axes if name in owner}
            if not rivals:
                chosen[label] = axes
                owner.update(dict.fromkeys(axes, label))
            elif label in out_labels and any_explicit(home.sharding, axes):
                told = " and ".join(_named(rival, out_labels) for rival in (*rivals, label))
                wrong.append(f"{axes} would cut {told}")
    if wrong:
        arrays = [x for x in operands if isinstance(x, Array)]
        raise ShardingTypeError(
            f"{operation}: the operands disagree about Explicit axes: {'; '.join(wrong)}; expected each dimension cut "
            f"one way and each axis in one dimension of the result, got {specs_text(arrays)}; move one first: "
            "reshard(y, sharding)"
        )
    return chosen


def _named(label: Hashable, out_labels: Labels) -> str:
    if label in out_labels:
        return f"dimension {out_labels.index(label)} of the result"
    return "a dimension that is summed over"


def _parts(
    operation: str,
    x: Any,
    own: Labels,
    home: Home,
    work: Sharding,
    places: Tiling,
    every: Labels,
    sizes: dict[Hashable, int],
) -> list[NDArray[Any]]:
    """What each tile of the work needs of one operand: views; of another Array where x lies elsewhere."""
    index = [every.index(label) if size == sizes[label] else -1 for label, size in zip(own, x.shape, strict=True)]
    boxes: list[Box] = [tuple(box[i] if i >= 0 else slice(0, 1, 1) for i in index) for box in places.boxes]
    if not isinstance(x, Array):
        if x.ndim:
            _core._check_transfer("host_to_device", False, x.shape, x.dtype, "host", work, operation)
        return [x[box] for box in boxes]
    if x.sharding._same_devices(work):
        views = blocks_at(x, places.positions, boxes, operation)
        if views is not None:
            return views
    cuts = cuts_in(work, len(every))
    target = tuple(cuts[i] if i >= 0 and i not in index[:d] else () for d, i in enumerate(index))
    views = blocks_at(moved_to(operation, x, home, sharding_with(work, target)), places.positions, boxes, operation)
    assert views is not None
    return views


class _Job(NamedTuple):
    """One contraction: what to do for a part."""

    multiply: Multiply
    labels: tuple[Labels, ...]
    out_labels: Labels
    products: int  # how many multiplications a part takes; 0: leave it whole

    def pieces(self, output: NDArray[Any], parts: Sequence[NDArray[Any]], *, wide: bool) -> list[Callable[[], Any]]:
        """Calls that together fill `output`: one, or several along its first dimension."""
        if not output.size:
            return []
        count = min(self.products // _PIECE_PRODUCTS, output.shape[0]) if output.ndim else 1
        if count <= 1:
            return [functools.partial(self.multiply, output, parts, wide)]
        size = output.shape[0]
        step = -(-size // count)
        tasks: list[Callable[[], Any]] = []
        for start in range(0, size, step):
            rows = slice(start, min(start + step, size))
            some = [
                part[
                    tuple(
                        rows if label == self.out_labels[0] and part.shape[d] == size else slice(None)
                        for d, label in enumerate(own)
                    )
                ]
                for part, own in zip(parts, self.labels, strict=True)
            ]
            tasks.append(functools.partial(self.multiply, output[rows], some, wide))
        return tasks

    def add_up(self, output: NDArray[Any], tiles: Sequence[Sequence[NDArray[Any]]]) -> None:
        """The sum of the products of several tiles, in their order."""
        wide = output.dtype.name in _NARROW
        total = np.empty(output.shape, np.float32) if wide else output
        self.multiply(total, tiles[0], wide)
        term = np.empty_like(total)
        for parts in tiles[1:]:
            self.multiply(term, parts, wide)
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
    """One task a tile of the result, and then its copies to the other memories that hold it."""
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
        tasks.append(functools.partial(job.add_up, buffer, [[part[n] for part in parts] for n in numbers]))
    return tasks, copies
