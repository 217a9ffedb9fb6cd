# SPDX-License-Identifier: Apache-2.0
"""Operators outside shard_map, each waited for; the peer of large ones is NumPy on the global array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from measure import Row

from families.sources import BIG, SMALL, placements, source


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """Small and big sums, a reduction, a product of matrices."""
    small = source(SMALL, offset=16)
    big = source(BIG, offset=16)
    square = np.random.default_rng(0).standard_normal((2048, 2048)).astype(np.float32)
    if not peer.HAS_MESHES:
        yield Row("x + x (8,16) f32, 8 shards", lambda _: small + small, calls=200, repeats=30, notes="one array")
        yield Row("x + x 256 MiB, 8 shards", lambda _: big + big, bytes=big.nbytes, notes="one array, fresh memory")
        yield Row("x + x 256 MiB, one device", lambda _: big + big, bytes=big.nbytes, notes="fresh memory")
        out = np.empty_like(big)
        yield Row("x + x 256 MiB, into warm memory", lambda _: np.add(big, big, out=out), bytes=big.nbytes)
        yield Row("sum of 256 MiB, 8 shards", lambda _: big.sum(), bytes=big.nbytes, notes="one array")
        yield Row("2048^3 f32 matmul, rows over 8 shards", lambda _: square @ square, notes="one array")
        return
    where = placements(peer)
    x = peer.put(small, where["8 shards, dim 0"])
    yield Row("x + x (8,16) f32, 8 shards", lambda _: peer.wait(x + x), calls=200, repeats=30)
    yield Row("x + 1 (8,16) f32, 8 shards", lambda _: peer.wait(x + 1), calls=200, repeats=30)
    for place in ("8 shards, dim 0", "one device"):
        many = peer.put(big, where[place])
        yield Row(
            f"x + x 256 MiB, {place.split(',')[0]}", lambda _, many=many: peer.wait(many + many), bytes=big.nbytes
        )
    cut = peer.put(big, where["8 shards, dim 0"])
    yield Row("sum of 256 MiB, 8 shards", lambda _: peer.wait(cut.sum()), bytes=big.nbytes)
    left, right = peer.put(square, where["8 shards, dim 0"]), peer.put(square, where["replicated 8"])
    yield Row("2048^3 f32 matmul, rows over 8 shards", lambda _: peer.wait(left @ right))
