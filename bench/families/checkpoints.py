# SPDX-License-Identifier: Apache-2.0
"""Saves and restores over 8 devices, beside plain writes and reads of the same bytes on the same disk, and Orbax.

The peer NumPy writes and reads one file in pieces of 8 MiB in one thread, and waits for the storage after a write, as
a save does. Reads come from the page cache of the system. Extra memory is the growth of resident memory at its peak,
without the restored arrays. Orbax is measured with `--against numpy,orbax`, where it is installed:
`.venv-oracle/bin/python -m pip install orbax-checkpoint`.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measure import Row

BYTES = 256 << 20
ARRAYS = 64
LEAVES = 1000
SAMPLES = 3  # of rows of memory and of bytes read


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """Rows and columns of a matrix, a tree of arrays, then the calls of a tree of many leaves."""
    if not hasattr(peer, "save"):
        return
    size = BYTES >> 4 if quick else BYTES
    mesh = peer.mesh(np.array(peer.devices()), ("x",))
    by_row = peer.named(mesh, "x")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield from _matrix_rows(peer, folder, mesh, size)
        if not hasattr(peer, "save_tree"):
            return
        value = np.random.default_rng(1).integers(0, 256, (1024, size // ARRAYS // 1024), np.uint8)
        yield from _tree_rows(peer, folder / "arrays", {str(i): peer.put(value, by_row) for i in range(ARRAYS)}, size)
        tree = {str(i): peer.put(np.ones((8, 8)), by_row) for i in range(LEAVES)}
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


def _matrix_rows(peer: Any, folder: Path, mesh: Any, size: int) -> Iterator[Row]:
    """One array over all devices by rows and by columns."""
    value = np.random.default_rng(0).integers(0, 256, (1024, size // 1024), np.uint8)
    text = f"{size >> 20} MiB"
    for axis, entries in (("rows", ("x",)), ("columns", (None, "x"))):
        sharding = peer.named(mesh, *entries)
        array = peer.put(value, sharding)
        path = folder / axis

        def save(_: Any, path: Path = path, array: Any = array) -> None:
            peer.save(path, array)

        def restore(_: Any, path: Path = path, sharding: Any = sharding, array: Any = array) -> Any:
            return peer.restore(path, sharding, array)

        yield Row(f"save {text} over 8 devices, {axis}", save, bytes=size, repeats=5)
        yield Row(f"restore {text} over 8 devices, {axis}", restore, bytes=size, repeats=5)
        ratios = [bytes_read(lambda restore=restore: restore(None)) / size for _ in range(SAMPLES)]
        yield Row(f"bytes read to restore {text}, {axis}, of those of the shards", samples=ratios, unit="ratio")


def _tree_rows(peer: Any, path: Path, tree: dict[str, Any], size: int) -> Iterator[Row]:
    """A tree of equal arrays over all devices: times and memory."""
    text = f"a tree of {ARRAYS} arrays, {size >> 20} MiB"
    yield Row(f"save {text}", lambda _: peer.save_tree(path, tree), bytes=size, repeats=5)
    yield Row(f"restore {text}", lambda _: peer.restore_tree(path, tree), bytes=size, repeats=5)
    saves = [extra_memory(peer, lambda: peer.save_tree(path, tree)) for _ in range(SAMPLES)]
    yield Row(f"extra memory of a save of {text}", samples=[float(each) for each in saves], unit="bytes")
    restores = [extra_memory(peer, lambda: peer.restore_tree(path, tree)) - size for _ in range(SAMPLES)]
    yield Row(f"extra memory of a restore of {text}", samples=[float(each) for each in restores], unit="bytes")


def bytes_read(work: Callable[[], Any]) -> int:
    """Bytes that this process reads from files and other descriptors in a call."""

    def so_far() -> int:
        return int(Path("/proc/self/io").read_text().split()[1])

    before = so_far()
    work()
    return so_far() - before


def extra_memory(peer: Any, work: Callable[[], Any]) -> int:
    """Bytes by which the resident memory of this process grows at most in a call."""

    def status(name: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])

    getattr(peer, "forget_memory", gc.collect)()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins again
    before = status("VmRSS")
    made = work()
    grown = status("VmHWM") - before
    del made
    return grown
