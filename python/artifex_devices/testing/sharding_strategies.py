# SPDX-License-Identifier: Apache-2.0
"""Strategies for partition specs, for shardings, and for arrays together with a sharding that fits them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.typing import DTypeLike

import artifex_devices as ad
from artifex_devices._base.public_path import public
from artifex_devices.testing.array_strategies import arrays
from artifex_devices.testing.mesh_strategies import meshes

Entry = Hashable | tuple[Hashable, ...] | None


@public("artifex_devices.testing")
@dataclass(frozen=True)
class ShardableArray:
    """An array and a sharding that fits its shape.

    Attributes:
        value: The array, with any dtype and memory layout.
        sharding: A sharding on which it can be placed.
    """

    value: np.ndarray
    sharding: ad.Sharding


@st.composite
def spec_entries(  # noqa: D417 - hypothesis gives draw
    draw: st.DrawFn, axis_names: Sequence[Hashable], *, min_rank: int = 0, max_rank: int = 4
) -> tuple[Entry, ...]:
    """Draws the entries of a valid PartitionSpec: each axis at most once, alone or in a tuple, and Nones.

    Args:
        axis_names: Axes of the mesh; some may stay unused.
        min_rank: Least number of entries.
        max_rank: Greatest number of entries.

    Returns:
        A strategy for tuples to pass as `PartitionSpec(*entries)`; trailing Nones and empty tuples occur.
    """
    rank = draw(st.integers(min_rank, max_rank), label="spec rank")
    groups: list[list[Hashable]] = [[] for _ in range(rank)]
    if rank:
        for name in draw(st.permutations(list(axis_names)), label="axis order"):
            slot = draw(st.integers(-1, rank - 1), label="dimension of the axis")
            if slot >= 0:
                groups[slot].append(name)
    entries: list[Entry] = []
    for group in groups:
        if len(group) > 1:
            entries.append(tuple(group))
        elif group:
            entries.append((group[0],) if draw(st.booleans(), label="one axis as a tuple") else group[0])
        else:
            entries.append(() if draw(st.integers(0, 7), label="None as ()") == 7 else None)
    return tuple(entries)


def specs(
    axis_names: Sequence[Hashable], *, min_rank: int = 0, max_rank: int = 4
) -> st.SearchStrategy[ad.PartitionSpec]:
    """Draws partition specs that are valid for a mesh with these axes. See spec_entries.

    Args:
        axis_names: Axes of the mesh.
        min_rank: Least number of entries.
        max_rank: Greatest number of entries.

    Returns:
        A strategy for PartitionSpec.
    """
    entries = spec_entries(axis_names, min_rank=min_rank, max_rank=max_rank)
    return entries.map(lambda drawn: ad.PartitionSpec(*drawn))


def partition_counts(entries: Sequence[Entry], sizes_by_name: Mapping[Hashable, int]) -> tuple[int, ...]:
    """Returns the number of parts that each dimension is sharded into.

    Args:
        entries: Entries of a spec.
        sizes_by_name: Sizes of the mesh's axes.

    Returns:
        One number for each entry.

    Example:
        >>> partition_counts(("x", None, ("y", "z")), {"x": 2, "y": 2, "z": 3})
        (2, 1, 6)
    """
    return tuple(
        1 if entry is None else math.prod(sizes_by_name[a] for a in (entry if isinstance(entry, tuple) else (entry,)))
        for entry in entries
    )


@st.composite
def fitting_shapes(  # noqa: D417 - hypothesis gives draw
    draw: st.DrawFn, parts: Sequence[int], *, max_rank: int = 4, max_side: int = 3, allow_empty: bool = True
) -> tuple[int, ...]:
    """Draws shapes that a spec with these numbers of parts divides evenly.

    Args:
        parts: Number of parts of each dimension in the spec; the shape has at least as many dimensions.
        max_rank: Greatest rank, if that is more than `len(parts)`.
        max_side: Greatest size of a dimension of one shard.
        allow_empty: Whether dimensions of size 0 occur.

    Returns:
        A strategy for shapes.
    """
    rank = draw(st.integers(len(parts), max(len(parts), max_rank)), label="rank")
    low = 0 if allow_empty and draw(st.integers(0, 5), label="may be empty") == 5 else 1
    sides = [draw(st.integers(low, max_side), label="shard side") for _ in range(rank)]
    return tuple(side * (parts[dimension] if dimension < len(parts) else 1) for dimension, side in enumerate(sides))


@st.composite
def shardings(  # noqa: D417 - hypothesis gives draw
    draw: st.DrawFn,
    *,
    devices: Sequence[ad.Device] | None = None,
    shape: Sequence[int] | None = None,
    max_rank: int = 4,
    single_device: bool = True,
) -> ad.Sharding:
    """Draws shardings: over a mesh, or on one device.

    Args:
        devices: Devices to draw from, by default all of the current world.
        shape: A shape that the shardings divide evenly, or None.
        max_rank: Greatest number of spec entries if `shape` is None.
        single_device: Whether SingleDeviceSharding occurs.

    Returns:
        A strategy for Sharding.
    """
    pool = list(ad.devices() if devices is None else devices)
    if single_device and draw(st.integers(0, 5), label="on one device") == 5:
        return ad.SingleDeviceSharding(draw(st.sampled_from(pool), label="device"))
    mesh = draw(meshes(devices=pool), label="mesh")
    rank = max_rank if shape is None else len(shape)
    entries = list(draw(spec_entries(mesh.axis_names, max_rank=rank), label="spec"))
    if shape is not None:
        sizes = dict(mesh.shape)
        for dimension, parts in enumerate(partition_counts(entries, sizes)):
            if shape[dimension] % parts:
                entries[dimension] = None
    return ad.NamedSharding(mesh, ad.PartitionSpec(*entries))


@st.composite
def shardable_arrays(  # noqa: D417 - hypothesis gives draw
    draw: st.DrawFn,
    *,
    devices: Sequence[ad.Device] | None = None,
    max_rank: int = 4,
    max_side: int = 3,
    dtype: DTypeLike | None = None,
) -> ShardableArray:
    """Draws arrays together with a sharding that fits them.

    Args:
        devices: Devices to draw from, by default all of the current world.
        max_rank: Greatest rank of the array.
        max_side: Greatest size of a dimension of one shard.
        dtype: A dtype or a strategy for one, by default any dtype that can be placed.

    Returns:
        A strategy for ShardableArray.
    """
    pool = list(ad.devices() if devices is None else devices)
    if draw(st.integers(0, 7), label="on one device") == 7:
        shape = tuple(draw(st.lists(st.integers(0, max_side * 2), max_size=max_rank), label="shape"))
        device = draw(st.sampled_from(pool), label="device")
        return ShardableArray(draw(arrays(shape, dtype)), ad.SingleDeviceSharding(device))
    mesh = draw(meshes(devices=pool), label="mesh")
    entries = draw(spec_entries(mesh.axis_names, max_rank=max_rank), label="spec")
    shape = draw(
        fitting_shapes(partition_counts(entries, dict(mesh.shape)), max_rank=max_rank, max_side=max_side), label="shape"
    )
    return ShardableArray(draw(arrays(shape, dtype)), ad.NamedSharding(mesh, ad.PartitionSpec(*entries)))
