# SPDX-License-Identifier: Apache-2.0
"""Pictures of meshes on their torus or on their nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._base.public_path import public
from artifex_devices._base.svg import Picture


@public("artifex_devices.unpickle")
@dataclass(frozen=True, eq=False)
class PlacedMesh:
    """A mesh with the places of its devices.

    Attributes:
        title: The mesh and its network.
        axes: Name, size and links of each axis.
        network: "torus", "switch" or "full mesh".
        wraps: Whether x, y and z of a torus wrap.
        platform: "tpu", "gpu", ...
        table: Rows (id, slice, x, y, z, core) of shape (devices, 6), in row-major order of the mesh; without a torus x
            is the number of the device in its slice.
    """

    title: str
    axes: tuple[tuple[str, int, str], ...]
    network: str
    wraps: tuple[bool, bool, bool]
    platform: str
    table: NDArray[np.int64]

    def to_svg(self, max_cells: int = 2048) -> Picture:
        """Draws about `max_cells` devices at most."""
        places = [(row[0], row[1], (row[2], row[3], row[4]), row[5]) for row in self.table.tolist()]
        picture = _core._placed_mesh_svg(
            self.title, list(self.axes), self.network, list(self.wraps), self.platform, places, max_cells
        )
        return Picture(picture)
