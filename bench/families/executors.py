# SPDX-License-Identifier: Apache-2.0
"""The two executors of shard_map on blocks of growing size: where "auto" should change from one to the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from measure import Row

BLOCK_BYTES = (1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22)


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """A body that computes (tanh) and sums over devices, on 8 of them; this package only."""
    if peer.NAME != "artifex_devices":
        return
    mesh = peer.mesh(np.array(peer.devices()[:8]), ("i",))
    for size in BLOCK_BYTES:
        x = peer.put(np.ones((8 * size // 4,), np.float32), peer.named(mesh, "i"))
        for executor in ("cooperative", "threads"):
            run = peer.mapped(
                lambda block: peer.lax.psum(np.tanh(block), "i"), mesh, peer.P("i"), peer.P(), executor=executor
            )
            yield Row(
                f"tanh + psum of {size >> 10} KiB x 8, {executor}",
                lambda _, run=run, x=x: peer.wait(run(x)),
                calls=max(1, (1 << 18) // size),
                repeats=12,
            )
