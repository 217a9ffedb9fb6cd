# SPDX-License-Identifier: Apache-2.0
"""Shardings of DTensors of torch, read by their attributes."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from artifex_devices._core import PartitionSpec


def is_tensor(value: Any) -> bool:
    """Returns whether a value has the attributes of a DTensor."""
    return hasattr(value, "device_mesh") and hasattr(value, "placements")


def tensor_sharding(mesh: Any, placements: Iterable[Any]) -> tuple[dict[str, int], PartitionSpec]:
    """Returns the sizes of the axes of a DeviceMesh, and the axes of each dimension of a tensor.

    Axes without names are "dim_0", "dim_1" and so on. The first mesh axis that shards a dimension is the major one,
    but a strided shard, which FSDP of tensor-parallel parameters has, lies inside the shards of the later axes. A
    partial tensor counts as replicated: every device holds a summand of the same shape.
    """
    sizes = tuple(map(operator.index, tuple(mesh.shape)))
    names = getattr(mesh, "mesh_dim_names", None) or tuple(f"dim_{i}" for i in range(len(sizes)))
    entries: dict[int, list[str]] = {}
    strided: dict[int, list[str]] = {}
    for name, placement in zip(names, placements, strict=True):
        dimension = getattr(placement, "dim", None)
        if dimension is not None:
            target = strided if hasattr(placement, "split_factor") else entries
            target.setdefault(operator.index(dimension), []).append(str(name))
    rank = max((*entries, *strided), default=-1) + 1
    spec = ((*entries.get(i, ()), *strided.get(i, ())) or None for i in range(rank))
    return dict(zip(map(str, names), sizes, strict=True)), PartitionSpec(*spec)
