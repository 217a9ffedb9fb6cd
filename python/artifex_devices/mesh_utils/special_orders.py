# SPDX-License-Identifier: Apache-2.0
"""Orders that JAX 0.10.2 has for small TPU slices, where a ring through all chips is known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices.mesh_utils.torus_places import Places

# By what JAX 0.10.2 gives for such devices (tests/oracle/test_mesh_utils.py asks it).
_TRAY = (0, 1, 2, 3, 6, 7, 4, 5)  # eight cores on four chips
_RING_OF_4 = (0, 1, 3, 2)
_RING_OF_2X4 = (0, 1, 2, 3, 7, 6, 5, 4)
_ORDER_OF_2X2X2 = (0, 4, 2, 6, 1, 5, 3, 7)
_RING_OF_4X4 = (0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4)
_RING_OF_CUBE = (0, 1, 3, 2, 6, 7, 5, 4)


def special_order(places: Places, shape: tuple[int, ...]) -> NDArray[Any] | None:
    """Positions in the list for each place of the mesh, or None where no such order is known."""
    kind, count = places.device_kind, len(places.ids)
    if kind in ("TPU v2", "TPU v3"):
        return _on_trays(count, shape)
    if kind in ("TPU v4 lite", "TPU8i") and count == 4:
        return np.array(_RING_OF_4)
    if kind in ("TPU7x", "TPU7") and count % 8 == 0 and count <= 32 and (places.sizes()[:2] <= 2).all():
        return (np.arange(count).reshape(-1, 8)[:, list(_TRAY)]).ravel()
    if kind in ("TPU v5 lite", "TPU v6 lite"):
        ring = _ring_of_lite(places, shape)
    elif kind == "TPU v5p" and count == 8 and places.is_box(2, 2, 2):
        ring = _RING_OF_CUBE
    else:
        ring = None
    return None if ring is None else places.by_coords()[list(ring)]


def _on_trays(count: int, shape: tuple[int, ...]) -> NDArray[Any]:
    if count == 8:
        return np.array(_TRAY)
    order = np.arange(count)
    if shape and shape[-1] == 8:
        return order.reshape(-1, 8)[:, list(_TRAY)].ravel()
    return order


def _ring_of_lite(places: Places, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    count = len(places.ids)
    if count == 4 and places.is_box(2, 2, 1):
        return _RING_OF_4
    if count == 8:
        return _ORDER_OF_2X2X2 if places.is_box(2, 2, 2) else _RING_OF_2X4
    if count == 16 and places.is_box(4, 4, 1) and 16 in shape:
        return _RING_OF_4X4
    return None
