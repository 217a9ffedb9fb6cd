# SPDX-License-Identifier: Apache-2.0
"""Saves and restores of one array over 8 devices, beside plain writes and reads of the same bytes on the same disk.

The peer NumPy writes and reads one file in pieces of 8 MiB in one thread, and waits for the storage after a write, as
a save does. Reads come from the page cache of the system. Only this library has the rows
of trees of 1,000 leaves.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measure import Row

BYTES = 256 << 20
LEAVES = 1000


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """Rows and columns of a matrix; then the calls of a tree of many leaves."""
    if not hasattr(peer, "save"):
        return
    size = BYTES >> 4 if quick else BYTES
    value = np.random.default_rng(0).integers(0, 256, (1024, size // 1024), np.uint8)
    mesh = peer.mesh(np.array(peer.devices()), ("x",))
    text = f"{size >> 20} MiB"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for axis, entries in (("rows", ("x",)), ("columns", (None, "x"))):
            sharding = peer.named(mesh, *entries)
            array = peer.put(value, sharding)
            path = folder / axis

            def save(_: Any, path: Path = path, array: Any = array) -> None:
                peer.save(path, array)

            def restore(_: Any, path: Path = path, sharding: Any = sharding) -> Any:
                return peer.restore(path, sharding)

            yield Row(f"save {text} over 8 devices, {axis}", save, bytes=size, repeats=5)
            yield Row(f"restore {text} over 8 devices, {axis}", restore, bytes=size, repeats=5)
        if not hasattr(peer, "save_async"):
            return
        tree = {str(i): peer.put(np.ones((8, 8)), peer.named(mesh, "x")) for i in range(LEAVES)}
        running: list[Any] = []

        def finish() -> None:
            while running:
                running.pop().wait()

        yield Row(
            f"save_async, the call only: a tree of {LEAVES:,} leaves",
            lambda _: running.append(peer.save_async(folder / "tree", tree)),
            prepare=finish,
        )
        finish()
        yield Row(f"metadata of {LEAVES:,} leaves", lambda _: peer.checkpoint_metadata(folder / "tree"))
