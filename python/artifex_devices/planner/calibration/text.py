# SPDX-License-Identifier: Apache-2.0
"""Calibrations as tables of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from artifex_devices._base.text import seconds_text
from artifex_devices.planner.report import Layout

if TYPE_CHECKING:
    from artifex_devices.planner.calibration.values import Calibration

_RATES = {
    "alone": "copied by the calling thread",
    "cached": "copied by workers, in caches",
    "warm": "copied past caches that hold the source",
    "memory": "copied from memory to memory",
    "added in caches": "summed, from caches",
    "added from memory": "summed, from memory",
}


def calibration_text(found: Calibration, width: int = 0) -> str:
    """Rates, latencies and the error of the fit, in lines of at most `width` characters, if it is not 0."""
    conditions, coefficients, rates = found.conditions, found.coefficients, found.rates
    rows = [(text, _rate_text(rates[name]) if name in rates else "nothing") for name, text in _RATES.items()]
    if conditions.memory_nodes > 1:
        rows += [(f"memory node {link.source} to {link.destination}", _rate_text(link.rate)) for link in found.links]
    for side in ("read", "written"):
        prefix = f"{side} in "
        costs = [
            f"{name.removeprefix(prefix)}: {_microseconds_per_mib(cost)}"
            for name, cost in coefficients.items()
            if name.startswith(prefix)
        ]
        rows.append((f"{side} in runs of", f"{', '.join(costs)} us a MiB more"))
    once, on_workers, copy, result = (
        seconds_text(coefficients[name]) for name in ("calls", "calls on workers", "copies", "results")
    )
    rows += [
        ("a transfer", f"{once}; on workers {on_workers}"),
        ("a copy of it", copy),
        ("on fresh pages", f"{_microseconds_per_mib(found.fresh_page_seconds)} us a MiB more"),
    ]
    for kind in ("cooperative", "threads"):
        program, participant = (seconds_text(coefficients[f"{kind} {what}"]) for what in ("programs", "participants"))
        rows.append((f"a program, {kind}", f"{program} and {participant} a participant"))
    rows.append(("a result of it", result))
    between = found.processes
    if between is not None:
        shared = "in shared memory" if between.shared_memory else "by messages"
        link = f"{_rate_text(between.rate)}, {seconds_text(between.latency)} ({between.transport})"
        sums = f"{_rate_text(between.sum_rate)}, {seconds_text(between.sum_latency)}"
        rows += [(f"between {between.processes} processes", link), (f"sums of theirs, {shared}", sums)]
    rows.append(("fit", f"{len(found.samples)} samples, median error {100 * found.fit_error:.1f} %"))
    rounds = f"{conditions.rounds} round{'s' * (conditions.rounds > 1)}"
    cached = ", read from the cache" if found.from_cache else ""
    nodes = f"{conditions.memory_nodes} memory node{'s' * (conditions.memory_nodes > 1)}"
    title = (
        f"{conditions.cpu_model}, {conditions.workers} workers, {nodes}; measured {conditions.date} in "
        f"{conditions.seconds:.1f} s, {rounds}{cached}"
    )
    return Layout(title, [*rows, *(("note", each) for each in found.notes)]).text(width)


def _rate_text(rate: float) -> str:
    return f"{rate / 1e9:.3g} GB/s"


def _microseconds_per_mib(seconds_per_byte: float) -> str:
    return f"{seconds_per_byte * 2**20 * 1e6:.3g}"
