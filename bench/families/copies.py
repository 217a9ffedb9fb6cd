# SPDX-License-Identifier: Apache-2.0
"""The copy engine by the shape of the source: host memory of 64 MiB of elements, strided, to one device.

A box is every other run of a dense source, so that half of the memory between its ends is used; where runs are shorter
than a cache line (64 bytes) all of it must be read anyway. Sources start 16 bytes after a multiple of 64 and are
warm; results are dropped before the next call, so a library may reuse their memory, except in the rows "fresh pages".
NumPy copies in one thread, into fresh memory of the system.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
from measure import Row

from families.sources import source

BYTES = 64 << 20


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """Contiguous, boxes, short runs, backwards, transposes, columns over 8 devices; fresh memory."""
    device = peer.devices()[0]

    def put(name: str, value: Any, where: Any = device, notes: str = "") -> Row:
        return Row(f"copy 64 MiB, {name}", lambda _: peer.put(value, where), bytes=value.nbytes, notes=notes)

    dense = source((BYTES // 4,), offset=16)
    yield put("contiguous", dense)
    if hasattr(peer, "forget_memory"):
        yield Row(
            "copy 64 MiB, contiguous, fresh pages",
            lambda _: peer.put(dense, device),
            prepare=peer.forget_memory,
            bytes=dense.nbytes,
            notes="other libraries may use fresh memory in each row",
        )
    double = source((BYTES // 2,), offset=16)
    for run in (4096, 1024, 256, 64):
        yield put(f"box with runs of {run} bytes", double.reshape(-1, 2, run // 4)[:, 0])
    for run in (16, 8, 4):
        yield put(f"runs of {run} bytes", double.reshape(-1, 2, run // 4)[:, 0])
    yield put("one byte of two", double.view(np.uint8)[::2])
    yield put("backwards, 4 bytes", dense[::-1])
    del double
    for dtype, side in ((np.uint8, 8192), (np.uint16, 8192), (np.float32, 4096), (np.complex64, 4096)):
        matrix = dense.view(dtype).reshape(-1, side)
        yield put(f"transpose of {matrix.itemsize}-byte items", matrix.T)
    if peer.NAME != "jax":  # JAX has 16-byte items only with jax_enable_x64
        yield put("transpose of 16-byte items", dense.view(np.complex128).reshape(-1, 2048).T)
    columns = peer.named(peer.mesh(np.array(peer.devices()), ("x",)), None, "x")
    for run in (4096, 512, 64, 16):
        yield put(f"columns of {run} bytes to each of 8 devices", dense.reshape(-1, 8 * run // 4), columns)
    gc.collect()
