# SPDX-License-Identifier: Apache-2.0
"""How contractions lie: which axes cut each label, what each operand must look like; worked out once and kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from artifex_devices._array_ops.core.blocks import Box, Tiling, tiling
from artifex_devices._array_ops.core.layout import (
    Placement,
    any_explicit,
    common_placement,
    sharding_with,
    spec_of,
    specs_text,
)
from artifex_devices._base.clearable_cache import forgettable
from artifex_devices._core import Array, Sharding
from artifex_devices.errors import ShardingTypeError

# One label a dimension; dimensions with the same label run together.
Labels = tuple[Hashable, ...]


class Plan(NamedTuple):
    """How operands that lie so are contracted; "work" has a dimension for each label, those of the result first."""

    placement: Placement
    shape: tuple[int, ...]  # of the result
    sharding: Sharding  # of the result
    work: Sharding
    places: Tiling  # of the work
    indices: tuple[tuple[int, ...], ...]  # by operand and dimension: its number in the work; -1: it stretches
    targets: tuple[Sharding, ...]  # by operand: how it is laid out anew if it must be
    terms: tuple[tuple[Box, ...], ...]  # where a sum is cut: for each of its parts, what it takes of each whole operand
    products: int  # how many multiplications it takes


_plans: dict[Any, Plan] = forgettable({})  # by what plan_contraction looks at


def plan_contraction(
    operation: str,
    operands: Sequence[Any],
    labels: Sequence[Labels],
    out_labels: Labels,
    broadcast: Callable[[Hashable], bool],
) -> Plan:
    """The Plan for operands that lie like these.

    Raises:
        ValueError: Sizes differ, or committed Arrays lie on different devices.
        ShardingTypeError: Explicit axes cut one dimension in two ways, or two dimensions of the result.
    """
    seen = [(x.sharding, x.shape, x.committed, x.nbytes) if isinstance(x, Array) else x.shape for x in operands]
    key = (operation, *seen, *labels, out_labels)
    cached = _plans.get(key)
    if cached is not None:
        return cached
    sizes = _sizes(operation, operands, labels, broadcast)
    placement = common_placement(operation, [x for x in operands if isinstance(x, Array)])
    summed = tuple(label for label in sizes if label not in out_labels)
    every = (*out_labels, *summed)
    chosen = _choose_cuts(operation, placement, operands, labels, out_labels, every, sizes)
    spec = tuple(chosen.get(label, ()) for label in every)
    work = sharding_with(placement.sharding, spec)
    indices = tuple(
        tuple(every.index(label) if size == sizes[label] else -1 for label, size in zip(own, x.shape, strict=True))
        for x, own in zip(operands, labels, strict=True)
    )
    targets = (
        tuple(spec[i] if i >= 0 and i not in index[:d] else () for d, i in enumerate(index)) for index in indices
    )
    places = tiling(work, tuple(sizes[label] for label in every), operation)
    if len(_plans) >= 4096:
        _plans.clear()
    _plans[key] = plan = Plan(
        placement=placement,
        shape=tuple(sizes[label] for label in out_labels),
        sharding=sharding_with(placement.sharding, spec[: len(out_labels)]),
        work=work,
        places=places,
        indices=indices,
        targets=tuple(sharding_with(work, target) for target in targets),
        terms=_terms(places, len(out_labels), indices) if any(spec[len(out_labels) :]) else (),
        products=math.prod(sizes.values()),
    )
    return plan


def _terms(places: Tiling, out_ndim: int, indices: Sequence[tuple[int, ...]]) -> tuple[tuple[Box, ...], ...]:
    """For each part of a cut sum, in the order of the tiles: the part of each whole operand."""
    everything = slice(None)
    return tuple(
        tuple(tuple(box[i] if i >= out_ndim else everything for i in index) for index in indices)
        for box in (places.boxes[places.tiles.index(term)] for term in range(math.prod(places.parts[out_ndim:])))
    )


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
    placement: Placement,
    operands: Sequence[Any],
    labels: Sequence[Labels],
    out_labels: Labels,
    every: Labels,
    sizes: dict[Hashable, int],
) -> dict[Hashable, tuple[Hashable, ...]]:
    """How each label is cut: as in the biggest operand that spec it, by axes that no label before it has."""
    wishes: dict[Hashable, list[tuple[int, tuple[Hashable, ...]]]] = {}
    for x, own in zip(operands, labels, strict=True):
        if not isinstance(x, Array) or not placement.shares_mesh(x):
            continue
        for d, axes in enumerate(spec_of(x)):
            if axes and x.shape[d] == sizes[own[d]]:
                wishes.setdefault(own[d], []).append((x.nbytes, axes))
    chosen: dict[Hashable, tuple[Hashable, ...]] = {}
    owner: dict[Hashable, Hashable] = {}
    wrong = []
    for label in every:
        wished = wishes.get(label, [])
        different = {axes for _, axes in wished}
        if len(different) > 1 and any(any_explicit(placement.sharding, axes) for axes in different):
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
            elif label in out_labels and any_explicit(placement.sharding, axes):
                details = " and ".join(_named(rival, out_labels) for rival in (*rivals, label))
                wrong.append(f"{axes} would cut {details}")
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
