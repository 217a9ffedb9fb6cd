# SPDX-License-Identifier: Apache-2.0
"""Timing: warm-up, repeats, median and quartiles."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

LONG_S = 6.0  # a row that takes longer is timed at most LEAST times
LEAST = 3


@dataclass
class Row:
    """One line of the table.

    Attributes:
        name: What is done, with shapes.
        run: The timed work; gets what `prepare` returned. Its result is dropped outside the timing.
        prepare: Makes a fresh input for each timing, not timed.
        bytes: Bytes of the value that is moved; 0 where a rate means nothing.
        calls: Calls of `run` in one timing; the time is divided by it.
        per: Things of the row's kind that one call does; the time is divided by it, too.
        repeats: Timings after the warm-up.
        notes: What a reader must know to compare.
        samples: Filled with times that were measured elsewhere; then `run` is not called.
        x: Where the row stands on the axis of its curve, for curves.py.
        unit: "s"; "bytes", "count" or "ratio" for samples that are not times.
    """

    name: str
    run: Callable[[Any], Any] | None = None
    prepare: Callable[[], Any] = lambda: None
    bytes: int = 0
    calls: int = 1
    per: int = 1
    repeats: int = 15
    notes: str = ""
    samples: list[float] = field(default_factory=list)
    unit: str = "s"
    x: float = 0.0


def time_row(row: Row, *, quick: bool) -> list[float]:
    """Times of one call in seconds; the first ones are discarded as warm-up."""
    if row.samples or row.run is None:
        return row.samples
    repeats = max(row.repeats // 3, 3) if quick else row.repeats
    warm_up = 1 if quick else 3
    times: list[float] = []
    begun = time.perf_counter()
    for repeat in range(warm_up + repeats):
        is_long = time.perf_counter() - begun > LONG_S
        if is_long and len(times) >= LEAST:
            break
        given = row.prepare()
        gc.collect() if row.bytes >= 1 << 20 else None
        gc.disable()
        begin = time.perf_counter()
        for _ in range(row.calls):
            made = row.run(given)
        end = time.perf_counter()
        gc.enable()
        del made, given
        if repeat >= warm_up or is_long:
            times.append((end - begin) / (row.calls * row.per))
    return times


def summary(samples: list[float]) -> dict[str, float]:
    """Median, quartiles and their distance."""
    if len(samples) < 2:
        first = third = samples[0]
    else:
        first, _, third = statistics.quantiles(samples, n=4, method="inclusive")
    return {
        "median": statistics.median(samples),
        "first_quartile": first,
        "third_quartile": third,
        "spread": third - first,
        "least": min(samples),
        "repeats": len(samples),
    }
