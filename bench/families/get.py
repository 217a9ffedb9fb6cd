# SPDX-License-Identifier: Apache-2.0
"""np.asarray of a 256 MiB Array: a fresh Array each time, so that no gathered value is cached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from measure import Row

from families.sources import BIG, SMALL, placements, source


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """One row for each sharding."""
    where = placements(peer)
    value = source(BIG, offset=16)
    for place in ("8 shards, dim 0", "2x4 shards", "8 shards, last dim"):
        yield Row(
            f"gather 256 MiB from {place}",
            peer.get,
            lambda place=place: peer.put(value, where[place]),
            bytes=value.nbytes,
        )
    small = source(SMALL, offset=16)
    yield Row(
        "gather of 100 Arrays (8,16) f32 from 8 shards",
        lambda arrays: [peer.get(array) for array in arrays],
        lambda: [peer.put(small, where["8 shards, dim 0"]) for _ in range(100)],
        repeats=30,
    )
