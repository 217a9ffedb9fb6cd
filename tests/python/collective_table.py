# SPDX-License-Identifier: Apache-2.0
"""One row for each collective: the call, and what NumPy makes of the blocks of a group.

The rows run in one process, in simulated processes, under mpiexec and in JAX: tests/python/spmd/test_collectives.py,
tests/distributed/test_collectives.py and tests/oracle/test_collectives.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

ORDERED = ("bool", "int8", "uint16", "int64", "float16", "bfloat16", "float32", "float64")
DTYPES = (*ORDERED, "complex64", "complex128")
FEW = ("bool", "bfloat16", "float32", "complex128")  # one of each size, for what only moves
NUMBERS = ("int8", "int64", "bfloat16", "float32", "complex64")


@dataclass(frozen=True)
class Row:
    """One collective.

    Attributes:
        call: Gets `lax`, a block, the axes and the number of members of a group.
        expected: Gets the blocks of a group in the order of its members, and the index of one; returns its result.
        dtypes: Dtypes of the blocks.
        is_jaxs: Whether JAX has it.
    """

    call: Callable[[Any, Any, tuple[str, ...], int], Any]
    expected: Callable[[list[np.ndarray], int], np.ndarray]
    dtypes: tuple[str, ...] = FEW
    is_jaxs: bool = True


def total(blocks: Sequence[np.ndarray]) -> np.ndarray:
    """The sum in the order of the members; bools are counted, halves added in float32."""
    dtype = blocks[0].dtype
    wide = {"bool": np.int32, "float16": np.float32, "bfloat16": np.float32}.get(dtype.name, dtype)
    result = sum((block.astype(wide) for block in blocks[1:]), start=blocks[0].astype(wide))
    return result if dtype.name == "bool" else result.astype(dtype)


def moved(blocks: list[np.ndarray], i: int) -> np.ndarray:
    return blocks[i - 1] if i else np.zeros_like(blocks[0])


TABLE = {
    "psum": Row(lambda lax, x, axes, n: lax.psum(x, axes), lambda g, i: total(g), DTYPES),
    "pmean": Row(
        lambda lax, x, axes, n: lax.pmean(x, axes), lambda g, i: total(g) / len(g), ("float32", "float64", "complex64")
    ),
    "psum, reproducible": Row(
        lambda lax, x, axes, n: lax.psum(x, axes, reproducible=True), lambda g, i: total(g), DTYPES, is_jaxs=False
    ),
    "pmean, reproducible": Row(
        lambda lax, x, axes, n: lax.pmean(x, axes, reproducible=True),
        lambda g, i: total(g) / len(g),
        ("float32", "float64", "complex64"),
        is_jaxs=False,
    ),
    "psum_scatter, reproducible": Row(
        lambda lax, x, axes, n: lax.psum_scatter(x, axes, reproducible=True),
        lambda g, i: total(g)[i],
        NUMBERS,
        is_jaxs=False,
    ),
    "sum_over": Row(
        lambda lax, x, axes, n: lax.sum_over(x, axes, 1),
        lambda g, i: np.sum(total(g), 1),
        ("int64", "float32", "complex64"),
        is_jaxs=False,
    ),
    "pmax": Row(lambda lax, x, axes, n: lax.pmax(x, axes), lambda g, i: np.max(g, axis=0), ORDERED),
    "pmin": Row(lambda lax, x, axes, n: lax.pmin(x, axes), lambda g, i: np.min(g, axis=0), ORDERED),
    "all_gather": Row(lambda lax, x, axes, n: lax.all_gather(x, axes), lambda g, i: np.stack(g), DTYPES),
    "all_gather at 1": Row(lambda lax, x, axes, n: lax.all_gather(x, axes, axis=1), lambda g, i: np.stack(g, 1)),
    "all_gather at -3": Row(lambda lax, x, axes, n: lax.all_gather(x, axes, axis=-3), lambda g, i: np.stack(g, -3)),
    "all_gather, tiled": Row(
        lambda lax, x, axes, n: lax.all_gather(x, axes, axis=-1, tiled=True), lambda g, i: np.concatenate(g, -1)
    ),
    "psum_scatter": Row(lambda lax, x, axes, n: lax.psum_scatter(x, axes), lambda g, i: total(g)[i], NUMBERS),
    "psum_scatter, tiled": Row(
        lambda lax, x, axes, n: lax.psum_scatter(x, axes, scatter_dimension=1, tiled=True),
        lambda g, i: total(g)[:, 2 * i : 2 * i + 2],
        NUMBERS,
    ),
    "all_to_all": Row(
        lambda lax, x, axes, n: lax.all_to_all(x, axes, 0, 2), lambda g, i: np.stack([b[i] for b in g], 2)
    ),
    "all_to_all in place": Row(
        lambda lax, x, axes, n: lax.all_to_all(x, axes, 0, 0), lambda g, i: np.stack([b[i] for b in g])
    ),
    "all_to_all, tiled": Row(
        lambda lax, x, axes, n: lax.all_to_all(x, axes, 1, 0, tiled=True),
        lambda g, i: np.concatenate([b[:, 2 * i : 2 * i + 2] for b in g]),
        DTYPES,
    ),
    "pswapaxes": Row(
        lambda lax, x, axes, n: lax.pswapaxes(x, axes, 0), lambda g, i: np.stack([b[i] for b in g]), is_jaxs=False
    ),
    "ppermute": Row(lambda lax, x, axes, n: lax.ppermute(x, axes, [(i, i + 1) for i in range(n - 1)]), moved),
    "pshuffle": Row(lambda lax, x, axes, n: lax.pshuffle(x, axes, [*range(n)][::-1]), lambda g, i: g[len(g) - 1 - i]),
    "pbroadcast": Row(lambda lax, x, axes, n: lax.pbroadcast(x, axes, n - 1), lambda g, i: g[-1], is_jaxs=False),
    "axis_index": Row(
        lambda lax, x, axes, n: x + lax.axis_index(axes) * 100 + lax.axis_size(axes),
        lambda g, i: g[i] + i * 100 + len(g),
        ("int64",),
    ),
}


def size_of(sizes: dict[str, int], axes: tuple[str, ...]) -> int:
    return math.prod(sizes[name] for name in axes)


def blocks_for(dtype: str, count: int, n: int) -> list[np.ndarray]:
    """A block for each participant, of small whole numbers: sums are exact in every dtype and order."""
    drawn = np.random.default_rng(n).integers(0, 2 if dtype == "bool" else 9, (count, n, 2 * n, 3))
    return list(drawn.astype(getattr(ml_dtypes, dtype, dtype)))


def expected(name: str, blocks: list[np.ndarray], sizes: dict[str, int], axes: tuple[str, ...]) -> list[np.ndarray]:
    """The result of each participant, in the order of the mesh."""
    n, results = size_of(sizes, axes), [blocks[0]] * len(blocks)
    places = [list(sizes).index(name) for name in axes]
    grid = np.arange(len(blocks)).reshape(tuple(sizes.values()))
    for group in np.moveaxis(grid, places, range(-len(axes), 0)).reshape(-1, n).tolist():
        for i, member in enumerate(group):
            results[member] = TABLE[name].expected([blocks[each] for each in group], i)
    return results
