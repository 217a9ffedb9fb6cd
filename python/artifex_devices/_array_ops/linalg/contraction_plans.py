# SPDX-License-Identifier: Apache-2.0
"""Plans of contractions: the sharding of each label and of each operand, computed once for each kind of call."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from artifex_devices import _core
from artifex_devices._array_ops.core.blocks import Box, Tiling, tiling
from artifex_devices._array_ops.core.layout import Placement, common_placement, sharding_with
from artifex_devices._base.clearable_cache import clearable
from artifex_devices._core import Array, Sharding

# One label for each dimension; dimensions with the same label are indexed together.
Labels = tuple[Hashable, ...]


class Plan(NamedTuple):
    """How operands are contracted. The "work" has one dimension for each label, those of the result first."""

    placement: Placement
    shape: tuple[int, ...]  # of the result
    sharding: Sharding  # of the result
    work: Sharding
    places: Tiling  # of the work
    indices: tuple[tuple[int, ...], ...]  # by operand and dimension: its dimension of the work; -1 if it is broadcast
    targets: tuple[Sharding, ...]  # by operand: its sharding if it must be moved
    terms: tuple[tuple[Box, ...], ...]  # for each part of a sharded sum: the box of each operand
    products: int  # number of multiplications


_plans: dict[Any, Plan] = clearable({})  # by all that plan_contraction depends on


def plan_contraction(
    operation: str,
    operands: Sequence[Any],
    labels: Sequence[Labels],
    out_labels: Labels,
    broadcast: Callable[[Hashable], bool],
) -> Plan:
    """The Plan for operands like these."""
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
    placement = common_placement(operation, arrays)
    spec = _core._contract_specs(
        operation,
        placement.sharding,
        arrays,
        [own for own, x in zip(numbers, operands, strict=True) if isinstance(x, Array)],
        shape,
        len(out_labels),
    )
    work = sharding_with(placement.sharding, spec)
    indices = tuple(
        tuple(i if size == shape[i] else -1 for i, size in zip(own, x.shape, strict=True))
        for x, own in zip(operands, numbers, strict=True)
    )
    targets = (
        tuple(spec[i] if i >= 0 and i not in index[:d] else () for d, i in enumerate(index)) for index in indices
    )
    places = tiling(work, shape, operation)
    if len(_plans) >= 4096:
        _plans.clear()
    _plans[key] = plan = Plan(
        placement=placement,
        shape=shape[: len(out_labels)],
        sharding=sharding_with(placement.sharding, spec[: len(out_labels)]),
        work=work,
        places=places,
        indices=indices,
        targets=tuple(sharding_with(work, target) for target in targets),
        terms=_terms(places, len(out_labels), indices) if any(spec[len(out_labels) :]) else (),
        products=math.prod(shape),
    )
    return plan


def _terms(places: Tiling, out_ndim: int, indices: Sequence[tuple[int, ...]]) -> tuple[tuple[Box, ...], ...]:
    """For each part of a sharded sum, in the order of the tiles: the box of each operand."""
    everything = slice(None)
    return tuple(
        tuple(tuple(box[i] if i >= out_ndim else everything for i in index) for index in indices)
        for box in (places.boxes[places.tiles.index(term)] for term in range(math.prod(places.parts[out_ndim:])))
    )


def _sizes(
    operation: str, operands: Sequence[Any], labels: Sequence[Labels], broadcast: Callable[[Hashable], bool]
) -> dict[Hashable, int]:
    """The size of each label."""
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
        raise ValueError(
            f"{operation}: sizes do not match; expected equal sizes where dimensions are indexed together, got shapes "
            f"{shapes}: {'; '.join(wrong)}; transpose or reshape one of them"
        )
    return sizes
