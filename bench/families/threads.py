# SPDX-License-Identifier: Apache-2.0
"""Threads that allocate and free blocks of 2 MiB: the arena beside NumPy's allocator, and device_put beside a copy."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from measure import Row

from families.sources import source

BYTES = 2 << 20
THREADS = (1, 2, 8, 32)
BLOCKS = 6400  # in one timing, over all threads
PUTS = 320


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """Wall time by the number of blocks of all threads; this package and NumPy."""
    if not hasattr(peer, "allocate_and_free"):
        return
    value = source((BYTES // 4,), offset=16)
    device = peer.devices()[0]

    def put(times: int) -> None:
        for _ in range(times):
            peer.put(value, device)

    for name, touch in (("allocate and free 2 MiB", False), ("allocate, touch and free 2 MiB", True)):
        for threads in THREADS:
            yield _row(name, lambda times, touch=touch: peer.allocate_and_free(BYTES, times, touch), threads, BLOCKS)
    for threads in THREADS:
        yield _row("device_put 2 MiB", put, threads, PUTS)


def _row(name: str, work: Callable[[int], None], threads: int, total: int) -> Row:
    def run(_: None) -> None:
        started = [threading.Thread(target=work, args=(total // threads,)) for _ in range(threads)]
        for each in started:
            each.start()
        for each in started:
            each.join()

    return Row(f"{name}, {threads} thread{'s' if threads > 1 else ''}", run, per=total)
