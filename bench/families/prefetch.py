# SPDX-License-Identifier: Apache-2.0
"""Prefetched batches, compared with perfect overlap and with a plain loop.

The producer's cost is measured alone with placing, the consumer's is made equal to it by calibration, and the ideal is
the larger of the two per batch. NumPy's peer is the plain loop. JAX has no prefetcher of its own: its rows are a thread
with a queue of two batches around `device_put`, as its users write one.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from measure import Row

from families.sources import SMALL, source

SHAPE = (1024, 1024)  # 4 MiB of float32
PIECE = 16  # rows that the consumer works on at once: 64 KiB
SLEEP_S = 5e-3
BATCHES = 16
TINY_BATCHES = 2000


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """Equal costs of both kinds, then nothing to overlap."""
    place = peer.devices()[0]
    random = np.random.default_rng(0)

    def draw() -> np.ndarray:
        return random.standard_normal(SHAPE, np.float32)

    kept = source(SHAPE, offset=16)

    def nap() -> np.ndarray:
        time.sleep(SLEEP_S)
        return kept

    def free() -> np.ndarray:
        return kept

    cost = min(_alone(lambda: peer.put(draw(), place)) for _ in range(2))
    compute = _computing(peer, cost, _each([peer.put(kept, place) for _ in range(BATCHES)]))
    yield from _against_ideal(peer, "CPU time of one core", draw, compute, place, quick)
    yield from _against_ideal(peer, "sleep", nap, lambda _: time.sleep(SLEEP_S), place, quick)
    tiny = source(SMALL, offset=16)
    for what, produce, consume, batches in (
        ("no consumer work: 4 MiB read", draw, _nothing, BATCHES),
        ("no producer work: 4 MiB used", free, compute, BATCHES),
        ("no work: (8,16) f32", lambda: tiny, _nothing, TINY_BATCHES),
    ):
        yield from _beside_a_loop(peer, what, produce, consume, place, batches, quick)


def _nothing(batch: Any) -> None:
    pass


def _alone(run: Callable[[], Any]) -> float:
    """The median time of a call, after some that do not count."""
    times = []
    for _ in range(12):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return float(np.median(times[3:]))


def _each(arrays: list[Any]) -> Callable[[], Any]:
    """Yields the arrays in turn, so that a placed batch is not in the caches of the consumer's core."""
    return itertools.cycle(arrays).__next__


def _computing(peer: Any, cost: float, next_array: Callable[[], Any]) -> Callable[[Any], None]:
    """Work of one core on a placed batch that takes `cost` seconds."""
    out = np.empty((PIECE, SHAPE[1]), np.float32)
    pieces = SHAPE[0] // PIECE

    def work(array: Any, count: int) -> None:
        view = peer.get(array)
        for i in range(count):
            at = i % pieces * PIECE
            np.tanh(view[at : at + PIECE], out=out)

    one = _alone(lambda: work(next_array(), pieces)) / pieces
    count = max(1, round(cost / one))
    return lambda given: work(given, count)


def _against_ideal(
    peer: Any, kind: str, produce: Callable[[], Any], consume: Callable[[Any], Any], place: Any, quick: bool
) -> Iterator[Row]:
    """The time of a batch and its ratio to perfect overlap, with the separate costs measured in between."""
    name = f"prefetch, producer and consumer of equal {kind}"
    times, ratios = [], []
    for _ in range(3 if quick else 6):
        next_array = _each([peer.put(produce(), place) for _ in range(BATCHES)])
        producing = _alone(lambda: peer.put(produce(), place))
        alone = max(producing, _alone(lambda each=next_array: consume(each())))
        took = _run(peer.prefetch, produce, consume, place, BATCHES)
        times.append(took)
        ratios.append(took / alone)
    yield Row(f"{name}, per batch", samples=times, notes=peer.PREFETCH)
    yield Row(f"{name}, times the ideal", samples=ratios, unit="ratio")


def _beside_a_loop(
    peer: Any,
    what: str,
    produce: Callable[[], Any],
    consume: Callable[[Any], Any],
    place: Any,
    batches: int,
    quick: bool,
) -> Iterator[Row]:
    """Prefetching, in turns with the library's own device_put in the loop."""
    ahead, plain = [], []
    for _ in range(4 if quick else 8):
        ahead.append(_run(peer.prefetch, produce, consume, place, batches))
        plain.append(
            _run(lambda source, place: (peer.put(each, place) for each in source), produce, consume, place, batches)
        )
    if peer.HAS_MESHES:
        yield Row(f"prefetch, {what}, per batch", samples=ahead[1:], notes=peer.PREFETCH)
    yield Row(f"plain loop, {what}, per batch", samples=plain[1:])


def _run(
    prefetch: Callable[[Iterator[Any], Any], Iterator[Any]],
    produce: Callable[[], Any],
    consume: Callable[[Any], Any],
    place: Any,
    batches: int,
) -> float:
    """Seconds per batch from the second one on, because the first cannot be prefetched."""
    stream = prefetch((produce() for _ in range(batches + 1)), place)
    consume(next(stream))
    begin = time.perf_counter()
    for batch in stream:
        consume(batch)
    return (time.perf_counter() - begin) / batches
