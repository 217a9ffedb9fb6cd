# SPDX-License-Identifier: Apache-2.0
"""device_put: small, a tree, and 256 MiB. Every call is followed by block_until_ready.

Sources start 16 bytes after a multiple of 64 (where NumPy's allocator puts big arrays), because JAX on CPU does not
copy aligned ones; the row "aligned" shows the difference, and the row "may_alias=True" asks both libraries to share.
Results are dropped before the next call, so both libraries may reuse their memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from measure import Row

from families.sources import BIG, SMALL, placements, shares_memory, source

SHARED = "shares the source's memory, no copy"


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """Rows from small to big."""
    where = placements(peer)
    small = source(SMALL, offset=16)
    for place in ("one device", "8 shards, dim 0", "replicated 8"):
        yield Row(
            f"device_put (8,16) f32, {place}",
            lambda _, place=place: peer.put(small, where[place]),
            calls=200,
            repeats=30,
        )
    tree = {f"leaf {number:03}": source(SMALL, offset=16) for number in range(200)}
    yield Row(
        "device_put tree of 200 x (8,16) f32, 8 shards each",
        lambda _: peer.put(tree, where["8 shards, dim 0"]),
        calls=2,
        repeats=30,
    )
    big = source(BIG, offset=16)
    for place in ("one device", "8 shards, dim 0", "2x4 shards", "8 shards, last dim"):
        yield _big_row(peer, f"device_put 256 MiB, {place}", big, where[place])
    del big
    aligned = source(BIG, offset=0)
    yield _big_row(peer, "device_put 256 MiB, one device, aligned source", aligned, where["one device"])
    if hasattr(peer, "share"):
        yield Row(
            "device_put 256 MiB, one device, may_alias=True",
            lambda _: peer.share(aligned, where["one device"]),
            calls=200,
            repeats=30,
            notes=SHARED,
        )


def _big_row(peer: Any, name: str, value: Any, where: Any) -> Row:
    shared = shares_memory(peer, peer.put(value, where), value)
    return Row(
        name,
        lambda _: peer.put(value, where),
        bytes=value.nbytes,
        notes=SHARED if shared else "",
    )
