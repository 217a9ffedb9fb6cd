# SPDX-License-Identifier: Apache-2.0
"""shard_map and its collectives, call to result; JAX's is compiled by jit before it is timed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from measure import Row
from ml_dtypes import bfloat16

DEVICE_COUNTS = (2, 8, 64, 256)
TOTAL_BYTES = 32 << 20  # of all blocks: 4 MiB each on 8 devices


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """The smallest program, then collectives of 32 MiB over all and a product, each on 2 to 256 devices."""
    if not peer.HAS_MESHES:
        return
    for count in DEVICE_COUNTS:
        mesh = peer.mesh(np.array(peer.devices()[:count]), ("i",))
        x = peer.put(np.ones((count, 16), np.float32), peer.named(mesh, "i"))
        mapped = peer.mapped(lambda block: peer.lax.psum(block, "i"), mesh, peer.P("i"), peer.P())
        yield Row(
            f"shard_map + psum of 16 floats, {count} devices",
            lambda _, f=mapped, x=x: peer.wait(f(x)),
            calls=max(1, 400 // count),
            repeats=20,
        )
    yield from _reductions_by_dtype(peer)
    square = np.random.default_rng(0).standard_normal((2048, 2048)).astype(np.float32)
    for count in DEVICE_COUNTS:
        yield from _collectives(peer, count, TOTAL_BYTES // count)
        mesh = peer.mesh(np.array(peer.devices()[:count]), ("i",))
        left, right = peer.put(square, peer.named(mesh, "i")), peer.put(square, peer.named(mesh))
        multiply = peer.mapped(lambda a, b: a @ b, mesh, (peer.P("i"), peer.P()), peer.P("i"))
        yield Row(
            f"2048^3 f32 matmul under shard_map, rows over {count} devices",
            lambda _, f=multiply, a=left, b=right: peer.wait(f(a, b)),
        )


def _reductions_by_dtype(peer: Any) -> Iterator[Row]:
    """16-bit floats beside float32: the same bytes, twice the numbers."""
    count, block_bytes = 8, 4 << 20
    mesh = peer.mesh(np.array(peer.devices()[:count]), ("i",))
    for dtype in (np.dtype(np.float32), np.dtype(np.float16), np.dtype(bfloat16)):
        host = np.ones(count * block_bytes // dtype.itemsize, dtype)
        x = peer.put(host, peer.named(mesh, "i"))
        for name in ("psum", "pmean", "pmax"):
            collective = getattr(peer.lax, name)
            mapped = peer.mapped(lambda block, c=collective: c(block, "i"), mesh, peer.P("i"), peer.P())
            yield Row(f"{name} of 4 MiB x 8, {dtype.name}", lambda _, f=mapped, x=x: peer.wait(f(x)), bytes=host.nbytes)


def _collectives(peer: Any, count: int, block_bytes: int) -> Iterator[Row]:
    mesh = peer.mesh(np.array(peer.devices()[:count]), ("i",))
    x = peer.put(np.ones((count * block_bytes // 4,), np.float32), peer.named(mesh, "i"))
    size = f"{block_bytes >> 20} MiB" if block_bytes >> 20 else f"{block_bytes >> 10} KiB"
    ring = [(i, (i + 1) % count) for i in range(count)]
    for name, body, out in (
        ("psum", lambda block: peer.lax.psum(block, "i"), peer.P()),
        ("all_gather", lambda block: peer.lax.all_gather(block, "i", tiled=True), peer.P()),
        ("psum_scatter", lambda block: peer.lax.psum_scatter(block, "i", tiled=True), peer.P("i")),
        ("all_to_all", lambda block: peer.lax.all_to_all(block, "i", 0, 0, tiled=True), peer.P("i")),
        ("ppermute", lambda block: peer.lax.ppermute(block, "i", ring), peer.P("i")),
    ):
        mapped = peer.mapped(body, mesh, peer.P("i"), out)
        yield Row(
            f"{name} of {size} x {count} under shard_map",
            lambda _, f=mapped: peer.wait(f(x)),
            bytes=TOTAL_BYTES,
            notes="passes blocks of arguments on, no copy"
            if name == "ppermute" and peer.NAME == "artifex_devices"
            else "",
        )
