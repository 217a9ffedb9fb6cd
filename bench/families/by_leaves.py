# SPDX-License-Identifier: Apache-2.0
"""Curves against the leaves of a tree: a dict of 1 to 4,096 arrays of (8,16) float32."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from measure import Row

from families.sources import SMALL, placements, source

COUNTS = (1, 4, 16, 64, 256, 1024, 4096)


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """Placing a tree with two shardings, and reading it."""
    where = placements(peer)
    for count in COUNTS[::3] if quick else COUNTS:
        tree = {f"leaf {number:04}": source(SMALL, offset=16) for number in range(count)}
        common = {"x": float(count), "repeats": 10}
        calls = max(1, 64 // count)
        for name, place in (("one device", "one device"), ("8 shards each", "8 shards, dim 0")):
            yield Row(
                f"device_put of a tree, {name}",
                lambda _, to=where[place], tree=tree: peer.put(tree, to),
                calls=calls,
                **common,
            )
        yield Row(
            "device_get of a tree, 8 shards each",
            lambda trees: [peer.get_tree(tree) for tree in trees],
            lambda tree=tree, calls=calls: [peer.put(tree, where["8 shards, dim 0"]) for _ in range(calls)],
            per=calls,
            **common,
        )
