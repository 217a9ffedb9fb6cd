# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions on 8 shards, each waited for; the peers are NumPy on the global array and JAX without jit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from measure import Row
from ml_dtypes import bfloat16

from families.sources import SMALL, source

LONG = (4096, 8192)  # float32: 128 MiB
SIDE = 2048


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """Small calls, limited by Python, and large ones, limited by memory and cores."""
    host = source(SMALL, offset=16)
    square = np.random.default_rng(0).standard_normal((SIDE, SIDE)).astype(np.float32)
    long = np.random.default_rng(1).random(LONG, np.float32)
    weights = np.ones((SMALL[1], 4), np.float32)
    if peer.HAS_MESHES:
        mesh = peer.mesh(np.array(peer.devices()[:8]), ("x",))
        cut, columns, whole = peer.named(mesh, "x"), peer.named(mesh, None, "x"), peer.named(mesh)
        x, w, y = peer.put(host, cut), peer.put(weights, whole), peer.put(long, cut)
        left, top, right = peer.put(square, columns), peer.put(square, cut), peer.put(square, whole)
    else:
        x, w, y, left, top, right = host, weights, long, square, square, square
    for name, run in _small(peer.numpy, x, w, host).items():
        yield Row(f"{name} (8,16) f32, 8 shards", _waited(peer, run), calls=100, repeats=20)
    for name, run in _big(peer.numpy, y).items():
        yield Row(f"{name} 128 MiB, 8 shards", _waited(peer, run), bytes=long.nbytes, repeats=5)
    for dtype in (np.dtype(kind) for kind in (np.float32, np.float16, bfloat16, np.float64, np.int32, np.uint8)):
        numbers = _numbers(long, dtype)
        z = peer.put(numbers, cut) if peer.HAS_MESHES else numbers
        for name, run in _reductions(z).items():
            yield Row(f"{name} of {dtype.name}, 8 shards", _waited(peer, run), bytes=numbers.nbytes, repeats=5)
    if peer.NAME == "artifex_devices":
        for dtype in (np.float32, np.float64):
            numbers = long.reshape(-1)[: (64 << 20) // np.dtype(dtype).itemsize].astype(dtype)
            ratios = list(_exact_ratios(peer.put(numbers, cut), numbers, repeats=3 if quick else 15))
            yield Row(
                f"reproducible sum of {np.dtype(dtype)} 64 MiB, 8 shards / NumPy's sum", samples=ratios, unit="ratio"
            )
    yield Row(f"{SIDE}^3 f32 matmul, summed dimension over 8", _waited(peer, lambda: left @ top), repeats=5)
    yield Row(f"{SIDE}^3 f32 matmul, columns over 8", _waited(peer, lambda: right @ left), repeats=5)


def _numbers(long: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Returns 64 MiB of numbers."""
    if dtype in (np.float16, bfloat16):
        return long.astype(dtype)
    rows = LONG[0] * 2 // dtype.itemsize
    return (np.resize(long, (rows, LONG[1])) * (1 if dtype.kind == "f" else 100)).astype(dtype)


def _small(numpy_like: Any, x: Any, w: Any, host: np.ndarray) -> dict[str, Callable[[], Any]]:
    return {
        "x + ndarray": lambda: x + host,
        "x[0]": lambda: x[0],
        "x[2:4]": lambda: x[2:4],
        "sum": lambda: x.sum(),
        "std": lambda: x.std(),
        "argmax": lambda: x.argmax(),
        "cumsum": lambda: numpy_like.cumsum(x, axis=0),
        "sort": lambda: numpy_like.sort(x, axis=1),
        "allclose": lambda: numpy_like.allclose(x, x),
        "concatenate": lambda: numpy_like.concatenate([x, x], axis=1),
        "x @ w": lambda: x @ w,
    }


def _big(numpy_like: Any, y: Any) -> dict[str, Callable[[], Any]]:
    return {
        "argmax": lambda: y.argmax(),
        "max over dimension 0": lambda: y.max(axis=0),
        "std": lambda: y.std(),
        "where(y > 0.5, y, 0)": lambda: numpy_like.where(y > 0.5, y, 0),
    }


def _reductions(z: Any) -> dict[str, Callable[[], Any]]:
    return {
        "sum": lambda: z.sum(),
        "sum over dimension 0": lambda: z.sum(axis=0),
        "sum over dimension 1": lambda: z.sum(axis=1),
        "mean": lambda: z.mean(),
        "std": lambda: z.std(),
        "max": lambda: z.max(),
    }


def _exact_ratios(z: Any, numbers: np.ndarray, repeats: int) -> Iterator[float]:
    """Yields the time of the exact sum, divided by that of NumPy's on one core just before it."""
    from artifex_devices import reproducible

    with reproducible():
        for _ in range(repeats):
            begin = time.perf_counter()
            np.sum(numbers)
            middle = time.perf_counter()
            np.asarray(z.sum())
            yield (time.perf_counter() - middle) / (middle - begin)


def _waited(peer: Any, run: Callable[[], Any]) -> Callable[[Any], Any]:
    return (lambda _: peer.wait(run())) if peer.HAS_MESHES else (lambda _: run())
