# SPDX-License-Identifier: Apache-2.0
"""shard_map and its collectives, call to result; JAX's is compiled by jit before it is timed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from measure import Row

TINY = (2, 8, 64, 256)  # devices
BLOCK_BYTES = 4 << 20


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """The smallest program on 2 to 256 devices, then collectives of 4 MiB blocks on 8."""
    if not peer.HAS_MESHES:
        return
    for count in TINY:
        mesh = peer.mesh(np.array(peer.devices()[:count]), ("i",))
        x = peer.put(np.ones((count, 16), np.float32), peer.named(mesh, "i"))
        mapped = peer.mapped(lambda block: peer.lax.psum(block, "i"), mesh, peer.P("i"), peer.P())
        yield Row(
            f"shard_map + psum of 16 floats, {count} devices",
            lambda _, f=mapped, x=x: peer.wait(f(x)),
            calls=max(1, 400 // count),
            repeats=20,
        )
    mesh = peer.mesh(np.array(peer.devices()[:8]), ("i",))
    floats = BLOCK_BYTES // 4
    x = peer.put(np.ones((8 * floats,), np.float32), peer.named(mesh, "i"))
    for name, body, out in (
        ("psum", lambda block: peer.lax.psum(block, "i"), peer.P()),
        ("all_gather", lambda block: peer.lax.all_gather(block, "i", tiled=True), peer.P()),
        ("psum_scatter", lambda block: peer.lax.psum_scatter(block, "i", tiled=True), peer.P("i")),
    ):
        mapped = peer.mapped(body, mesh, peer.P("i"), out)
        yield Row(f"{name} of 4 MiB x 8 under shard_map", lambda _, f=mapped: peer.wait(f(x)), bytes=8 * BLOCK_BYTES)
