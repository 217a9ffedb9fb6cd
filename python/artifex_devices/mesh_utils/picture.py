# SPDX-License-Identifier: Apache-2.0
"""A mesh on its torus or on its nodes: what the core's drawing needs to know of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._base.svg import Picture
from artifex_devices.mesh_utils.torus_places import Places

__all__ = ["PlacedMesh", "placed_mesh"]


@dataclass(frozen=True, eq=False)
class PlacedMesh:
    """A mesh with the places of its devices.

    Attributes:
        title: The mesh and what it lies on.
        axes: Name, size and what it lies on, in words, of each axis.
        network: "torus", "switch" or "full mesh".
        wraps: Of a torus, whether the ends of x, y and z are joined.
        platform: "tpu", "gpu", ...
        table: (devices, 6) in row-major order of the mesh: id, slice, x, y, z, core; without a torus x is the number in
            the slice.
    """

    title: str
    axes: tuple[tuple[str, int, str], ...]
    network: str
    wraps: tuple[bool, bool, bool]
    platform: str
    table: NDArray[np.int64]

    def to_svg(self, max_cells: int = 2048) -> Picture:
        """The picture; at most about `max_cells` devices are drawn."""
        places = [(row[0], row[1], (row[2], row[3], row[4]), row[5]) for row in self.table.tolist()]
        picture = _core._placed_mesh_svg(
            self.title, list(self.axes), self.network, list(self.wraps), self.platform, places, max_cells
        )
        return Picture(picture)


def placed_mesh(
    title: str, axes: tuple[tuple[str, int, str], ...], network: str, wraps: list[bool], places: Places
) -> PlacedMesh:
    """The same of devices in the order of a mesh."""
    joined = [*wraps[:3], False, False, False]
    table = np.zeros((len(places.ids), 6), dtype=np.int64)
    table[:, 0], table[:, 1], table[:, 5] = places.ids, places.slices, places.cores
    if network == "torus" and places.coords is not None:
        table[:, 2:5] = places.coords
    else:
        table[:, 2], table[:, 5] = _numbers_in_slice(places), 0
    return PlacedMesh(title, axes, network, (joined[0], joined[1], joined[2]), places.platform, table)


def _numbers_in_slice(places: Places) -> NDArray[Any]:
    """Of each device how many of its slice have a smaller id."""
    order = np.lexsort((places.ids, places.slices))
    _, begins, counts = np.unique(places.slices[order], return_index=True, return_counts=True)
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.arange(len(order)) - np.repeat(begins, counts)
    return numbers
