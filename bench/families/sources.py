# SPDX-License-Identifier: Apache-2.0
"""Host arrays to place, with a known alignment."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

SIDE = 8192  # SIDE * SIDE float32 are 256 MiB
BIG = (SIDE, SIDE)
SMALL = (8, 16)


def source(shape: tuple[int, ...], *, offset: int) -> np.ndarray:
    """Float32 ones whose address is `offset` bytes after a multiple of 64.

    JAX on CPU shows a 64-byte aligned source instead of copying it, so a copy is only timed at another offset.
    """
    size = 4 * math.prod(shape)
    memory = np.ones(size + 128, np.uint8)
    begin = -memory.ctypes.data % 64 + offset
    made = memory[begin : begin + size].view(np.float32).reshape(shape)
    made[...] = 1
    return made


def placements(peer: Any) -> dict[str, Any]:
    """The four shardings of a matrix over 8 devices."""
    devices = np.array(peer.devices())
    line, grid = peer.mesh(devices, ("x",)), peer.mesh(devices.reshape(2, 4), ("x", "y"))
    return {
        "one device": peer.devices()[0],
        "8 shards, dim 0": peer.named(line, "x"),
        "2x4 shards": peer.named(grid, "x", "y"),
        "8 shards, last dim": peer.named(line, None, "x"),
        "replicated 8": peer.named(line),
    }


def shares_memory(peer: Any, array: Any, value: np.ndarray) -> bool:
    """Whether a write to the source changes the placed Array."""
    before = value.flat[0]
    value.flat[0] = before + 1
    shared = bool(peer.get(array).flat[0] != before)
    value.flat[0] = before
    return shared
