# SPDX-License-Identifier: Apache-2.0
"""device_put of a 256 MiB Array to another sharding, waited for; the source is placed once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from measure import Row

from families.sources import BIG, placements, source


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """One row for each pair of shardings."""
    where = placements(peer)
    begin = "8 shards, dim 0"
    array = peer.put(source(BIG, offset=16), where[begin])
    for end in ("8 shards, last dim", "2x4 shards", "one device"):
        yield Row(
            f"reshard 256 MiB, {begin} -> {end}",
            lambda _, end=end: peer.put(array, where[end]),
            bytes=4 * BIG[0] * BIG[1],
        )
