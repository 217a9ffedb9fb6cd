# SPDX-License-Identifier: Apache-2.0
"""Time per device of tiny programs on 1,024 devices, divided by that on 8 devices in the same run.

A ratio above 1 means that a program costs more than in proportion to its devices. JAX would compile each program for
1,024 devices, which takes minutes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from measure import Row

FEW, MANY = 8, 1024


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """Every collective of blocks of 4 KiB, and programs without one; this package only."""
    if peer.NAME != "artifex_devices":
        return
    few, many = _programs(peer, FEW), _programs(peer, MANY)
    repeats = 3 if quick else 15
    for name, run in many.items():
        few[name](), run()
        ratios = [_seconds(run, 1) * FEW / (_seconds(few[name], MANY // FEW) * MANY) for _ in range(repeats)]
        yield Row(f"{name}: time per device, {MANY:,} devices / {FEW}", samples=ratios, unit="ratio")


def _seconds(run: Callable[[], Any], calls: int) -> float:
    begin = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - begin) / calls


def _programs(peer: Any, count: int) -> dict[str, Callable[[], Any]]:
    """Calls by name, on a line of devices."""
    lax = peer.lax
    mesh = peer.mesh(np.array(peer.devices()[:count]), ("i",))
    x = peer.put(np.ones((count, 1024), np.float32), peer.named(mesh, "i"))
    ring = [(i, (i + 1) % count) for i in range(count)]
    turned = [*range(1, count), 0]
    pairs = [[i, i + 1] for i in range(0, count, 2)]

    def mapped(body: Callable[[Any], Any]) -> Callable[[], Any]:
        run = peer.mapped(body, mesh, peer.P("i"), peer.P("i"))
        return lambda: peer.wait(run(x))

    return {
        "identity": mapped(lambda block: block),
        "psum": mapped(lambda block: lax.psum(block, "i")),
        "psum of a tree of 2": mapped(lambda block: lax.psum({"a": block, "b": block}, "i")),
        "psum over pairs": mapped(lambda block: lax.psum(block, "i", axis_index_groups=pairs)),
        "pmean": mapped(lambda block: lax.pmean(block, "i")),
        "pmax": mapped(lambda block: lax.pmax(block, "i")),
        "all_gather": mapped(lambda block: lax.all_gather(block[0, :16], "i")[:1]),
        "psum_scatter": mapped(lambda block: lax.psum_scatter(block, "i", scatter_dimension=1, tiled=True)),
        "all_to_all": mapped(lambda block: lax.all_to_all(block, "i", 1, 1, tiled=True)),
        "ppermute": mapped(lambda block: lax.ppermute(block, "i", ring)),
        "pshuffle": mapped(lambda block: lax.pshuffle(block, "i", turned)),
        "pbroadcast": mapped(lambda block: lax.pbroadcast(block, "i", 0)),
        "axis_index": mapped(lambda block: block + lax.axis_index("i")),
    }
