# SPDX-License-Identifier: Apache-2.0
"""Curves against the bytes of one array of float32, 1 KiB to 1 GiB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from measure import Row

from families.sources import placements, source

POWERS = range(10, 31, 2)
CACHED = 1 << 18  # up to this size a timing has several calls


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """Placing, gathering, moving and adding; and plain copies of the machine."""
    where = placements(peer)
    for power in POWERS[::4] if quick else POWERS:
        yield from _of_size(peer, 1 << power, where)


def _of_size(peer: Any, size: int, where: dict[str, Any]) -> Iterator[Row]:
    side = round((size / 4) ** 0.5)
    value = source((side, side), offset=16)
    rows_of, columns_of = where["8 shards, dim 0"], where["8 shards, last dim"]
    calls = max(1, min(64, CACHED // size))
    common = {"x": float(size), "repeats": 15 if size < 1 << 26 else 5}
    if peer.NAME == "artifex_devices":
        yield from _limits(value, calls, common)
    yield Row("device_put, one device", lambda _: peer.put(value, where["one device"]), calls=calls, **common)
    yield Row("device_put, 8 shards", lambda _: peer.put(value, rows_of), calls=calls, **common)
    yield Row(
        "gather from 8 shards",
        lambda arrays: [peer.get(array) for array in arrays],
        lambda: [peer.put(value, rows_of) for _ in range(calls)],
        per=calls,
        **common,
    )
    array = peer.put(value, rows_of)
    yield Row("reshard, rows to columns over 8", lambda _: peer.put(array, columns_of), calls=calls, **common)
    added = array if peer.HAS_MESHES else value
    wait = peer.wait if peer.HAS_MESHES else lambda made: made
    yield Row("x + x, 8 shards", lambda _: wait(added + added), calls=calls, **common)


def _limits(value: np.ndarray, calls: int, common: dict[str, Any]) -> Iterator[Row]:
    """Copies into existing memory: by one thread, and by all of the core's workers with streaming stores."""
    from artifex_devices import _core

    target = np.zeros_like(value)
    yield Row("limit, np.copyto", lambda _: np.copyto(target, value), calls=calls, **common)
    yield Row("limit, the core's copy", lambda _: _core.internal.copy_views([target], [value]), calls=calls, **common)
