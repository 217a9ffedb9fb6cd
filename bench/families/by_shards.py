# SPDX-License-Identifier: Apache-2.0
"""Curves against the number of shards: 64 MiB on 1 to 4,096 devices, one shard each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from measure import Row

from families.sources import source

SHAPE = (4096, 4096)
COUNTS = (1, 4, 16, 64, 256, 1024, 4096)


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """Placing and gathering."""
    value = source(SHAPE, offset=16)
    devices = np.array(peer.devices() if peer.HAS_MESHES else range(COUNTS[-1]))
    for count in COUNTS[::3] if quick else COUNTS:
        rows_of = peer.named(peer.mesh(devices[:count], ("x",)), "x")
        common = {"x": float(count), "repeats": 6}
        yield Row("device_put 64 MiB", lambda _, to=rows_of: peer.put(value, to), **common)
        yield Row("gather 64 MiB", peer.get, lambda to=rows_of: peer.put(value, to), **common)
