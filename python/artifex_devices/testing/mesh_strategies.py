# SPDX-License-Identifier: Apache-2.0
"""Strategies for meshes, and for their plain descriptions."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

import artifex_devices as ad
from artifex_devices._base.public_path import public

AXIS_NAMES: tuple[str, ...] = ("x", "y", "z", "data", "model")


@public("artifex_devices.testing")
@dataclass(frozen=True)
class MeshLayout:
    """A mesh in plain numbers: device ids, axis sizes and axis names.

    Attributes:
        axis_names: Names of the axes, major to minor.
        axis_sizes: Number of devices along each axis.
        device_ids: The `prod(axis_sizes)` ids of the devices, row-major.

    Example:
        >>> MeshLayout(("x", "y"), (2, 1), (1, 0)).size
        2
    """

    axis_names: tuple[Hashable, ...]
    axis_sizes: tuple[int, ...]
    device_ids: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of devices."""
        return math.prod(self.axis_sizes)

    @property
    def sizes_by_name(self) -> dict[Hashable, int]:
        """The size of each axis by its name, in the axes' order."""
        return dict(zip(self.axis_names, self.axis_sizes, strict=True))

    def arrange(self, devices: Sequence[object]) -> np.ndarray:
        """Arranges `devices` in the shape of the mesh.

        Args:
            devices: Devices by id: `devices[i]` is the device with the id `i`.

        Returns:
            An object array of shape `axis_sizes`.
        """
        flat = np.empty(self.size, dtype=object)
        for position, device_id in enumerate(self.device_ids):
            flat[position] = devices[device_id]
        return flat.reshape(self.axis_sizes)

    def mesh(self, devices: Sequence[ad.Device] | None = None) -> ad.Mesh:
        """Builds the Mesh, on `devices` or on the current world's."""
        return ad.Mesh(self.arrange(ad.devices() if devices is None else devices), self.axis_names)


def _divisors(number: int) -> list[int]:
    return [candidate for candidate in range(1, number + 1) if number % candidate == 0]


@st.composite
def mesh_layouts(  # noqa: D417 - hypothesis gives draw
    draw: st.DrawFn,
    *,
    max_devices: int = 8,
    min_axes: int = 1,
    max_axes: int = 3,
    axis_names: Sequence[Hashable] = AXIS_NAMES,
) -> MeshLayout:
    """Draws meshes over any choice of devices in any order.

    Args:
        max_devices: Number of devices; ids are drawn from `range(max_devices)`.
        min_axes: Least number of axes.
        max_axes: Greatest number of axes, at most the number of names.
        axis_names: Names to draw from.

    Returns:
        A strategy for MeshLayout; axes of size 1 occur often.
    """
    rank = draw(st.integers(min_axes, max_axes), label="mesh rank")
    names = draw(st.permutations(list(axis_names)), label="axis names")[:rank]
    left = draw(st.integers(1, max_devices), label="devices in the mesh") if rank else 1
    sizes = []
    for axis in range(rank):
        size = left if axis == rank - 1 else draw(st.sampled_from(_divisors(left)), label="axis size")
        sizes.append(size)
        left //= size
    ids = draw(st.permutations(range(max_devices)), label="device order")[: math.prod(sizes)]
    return MeshLayout(tuple(names), tuple(sizes), tuple(ids))


def meshes(
    *,
    devices: Sequence[ad.Device] | None = None,
    min_axes: int = 1,
    max_axes: int = 3,
    axis_names: Sequence[Hashable] = AXIS_NAMES,
) -> st.SearchStrategy[ad.Mesh]:
    """Draws meshes over some or all of the devices, in any order.

    Args:
        devices: Devices to draw from, by default all of the world in which the example runs.
        min_axes: Least number of axes.
        max_axes: Greatest number of axes.
        axis_names: Names to draw from.

    Returns:
        A strategy for Mesh.
    """

    def draw_mesh(draw: st.DrawFn) -> ad.Mesh:
        pool = list(ad.devices() if devices is None else devices)
        layout = draw(
            mesh_layouts(max_devices=len(pool), min_axes=min_axes, max_axes=max_axes, axis_names=axis_names),
        )
        return layout.mesh(pool)

    return st.composite(draw_mesh)()
