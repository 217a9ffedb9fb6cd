# SPDX-License-Identifier: Apache-2.0
"""Axes of a mesh for a plan: an axis for each parallelism, cut where ZeRO or experts use some of its ranks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from artifex_devices._base.checks import failure
from artifex_devices.planner.shape import TransformerShape
from artifex_devices.planner.training.config import TrainingConfig

Names = tuple[str, ...]


@dataclass(frozen=True)
class MeshAxes:
    """Axes of a mesh, slowest first, without axes of size 1, and the axes of each kind of parallelism.

    Attributes:
        sizes: Size of each axis by name.
        pipeline: Axes of the stages.
        data: Axes that share the batch.
        context: Axes that share a sequence.
        tensor: Axes that share a matrix.
        zero: Axes over which ZeRO shards.
        expert: Axes over which the experts of a layer are spread.
    """

    sizes: dict[str, int]
    pipeline: Names
    data: Names
    context: Names
    tensor: Names
    zero: Names
    expert: Names

    def count(self, names: Names) -> int:
        """Returns the number of devices along some axes."""
        return math.prod(self.sizes[name] for name in names)


def _parts_in_group(config: TrainingConfig, order: Names, devices: int) -> dict[str, int]:
    """Returns how many neighbouring ranks of each axis are in a group of `devices`, filled in an order of axes."""
    parts = {}
    for axis in order:
        size = getattr(config, axis)
        parts[axis] = math.gcd(size, devices)
        devices //= parts[axis]
    return parts


def mesh_axes(model: TransformerShape, config: TrainingConfig) -> MeshAxes:
    """Returns the axes of a mesh of a plan's devices, in the order of its ranks."""
    data = config.data or 1
    shards = (config.zero_shards or config.context * data) if config.zero else 1
    zero = _parts_in_group(config, ("context", "data"), shards)
    is_sharded = model.experts > 0 and (config.expert_tensor or 1) == config.tensor
    order = ("context", "data") if is_sharded else ("tensor", "context", "data")
    expert = _parts_in_group(config, order, config.expert)
    sizes: dict[str, int] = {}
    groups: dict[str, list[str]] = {"pipeline": [], "data": [], "context": [], "tensor": [], "zero": [], "expert": []}
    for axis in ("pipeline", "data", "context", "tensor"):
        whole = getattr(config, axis) or 1
        cuts = sorted({whole, *(part for part in (zero.get(axis, 1), expert.get(axis, 1)) if part > 1)}, reverse=True)
        for outer, inner in zip(cuts, [*cuts[1:], 1], strict=True):
            if outer == inner:
                continue
            if outer % inner:
                problem = f"ZeRO over {zero[axis]} and experts over {expert[axis]} ranks of {axis} do not nest"
                raise failure(
                    ValueError, "mesh_axes", problem, expected="one to divide the other", fix="change zero_shards"
                )
            in_zero, in_expert = outer <= zero.get(axis, 1), outer <= expert.get(axis, 1)
            name = _name(axis, is_cut=len(cuts) > 1, in_zero=in_zero, in_expert=in_expert, zero=zero.get(axis, 1))
            sizes[name] = outer // inner
            groups[axis].append(name)
            groups["zero"] += [name] * in_zero
            groups["expert"] += [name] * in_expert
    if not sizes:
        sizes, groups["data"] = {"data": 1}, ["data"]
    return MeshAxes(sizes, **{group: tuple(names) for group, names in groups.items()})


def _name(axis: str, *, is_cut: bool, in_zero: bool, in_expert: bool, zero: int) -> str:
    """Names a part of an axis: replicas that ZeRO does not shard over, ranks of experts, or the rest."""
    if not is_cut:
        return axis
    part = ("expert" if in_expert else "") + ("_" if in_expert and zero > 1 and not in_zero else "")
    part += "replica" if zero > 1 and not in_zero else ""
    if not part:
        return axis
    return part if axis == "data" else f"{axis}_{part}"
