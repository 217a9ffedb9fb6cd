# SPDX-License-Identifier: Apache-2.0
"""Calibrations and their checks as tables of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from artifex_devices._base.text import bytes_text, seconds_text

if TYPE_CHECKING:
    from artifex_devices.calibration.accuracy import CalibrationCheck
    from artifex_devices.planner.calibration_values import Calibration

__all__ = ["calibration_text", "check_text", "rate_text"]

_COPIED = {
    "alone": "copied by the calling thread",
    "cached": "copied by workers, in caches",
    "warm": "copied past caches that hold the source",
    "memory": "copied from memory to memory",
    "added in caches": "summed, from caches",
    "added from memory": "summed, from memory",
}


def rate_text(rate: float) -> str:
    """Bytes/s in GB/s.

    Example:
        >>> rate_text(2.05e10)
        '20.5 GB/s'
    """
    return f"{rate / 1e9:.3g} GB/s"


def calibration_text(found: Calibration) -> str:
    """The rates, the latencies, and how well they fit."""
    told = found.conditions
    rates = found.rates
    rows = [(text, rate_text(rates[name]) if name in rates else "nothing") for name, text in _COPIED.items()]
    rows += [
        (f"memory node {link.source} to {link.destination}", rate_text(link.rate))
        for link in (found.links if told.memory_nodes > 1 else ())
    ]
    coefficients = found.coefficients
    for side in ("read", "written"):
        costs = {name: cost for name, cost in coefficients.items() if name.startswith(f"{side} in ")}
        text = ", ".join(
            f"{name.removeprefix(f'{side} in ')}: {cost * 2**20 * 1e6:.3g}" for name, cost in costs.items()
        )
        rows.append((f"{side} in runs of", f"{text} us a MiB more"))
    rows += [
        (
            "a transfer",
            f"{seconds_text(coefficients['calls'])}; on workers {seconds_text(coefficients['calls on workers'])}",
        ),
        ("a copy of it", seconds_text(coefficients["copies"])),
        ("on fresh pages", f"{found.fresh_page_seconds * 2**20 * 1e6:.3g} us a MiB more"),
    ]
    for kind in ("cooperative", "threads"):
        once, each = (seconds_text(coefficients[f"{kind} {what}"]) for what in ("programs", "participants"))
        rows.append((f"a program, {kind}", f"{once} and {each} a participant"))
    rows.append(("a result of it", seconds_text(coefficients["results"])))
    between = found.processes
    if between is not None:
        shared = "in shared memory" if between.shared_memory else "by messages"
        rows += [
            (
                f"between {between.processes} processes",
                f"{rate_text(between.rate)}, {seconds_text(between.latency)} ({between.transport})",
            ),
            (f"sums of theirs, {shared}", f"{rate_text(between.sum_rate)}, {seconds_text(between.sum_latency)}"),
        ]
    rows.append(("fit", f"{len(found.samples)} samples, median error {100 * found.fit_error:.1f} %"))
    width = max(len(name) for name, _ in rows)
    rounds = f"{told.rounds} round{'s' * (told.rounds > 1)}"
    when = f"measured {told.date} in {told.seconds:.1f} s, {rounds}{', kept from then' if found.from_cache else ''}"
    nodes = f"{told.memory_nodes} memory node{'s' * (told.memory_nodes > 1)}"
    lines = [f"{told.cpu_model}, {told.workers} workers, {nodes}; {when}"]
    lines += [f"  {name:<{width}}  {text}" for name, text in rows]
    return "\n".join(lines + [f"  {note}" for note in found.notes])


def check_text(check: CalibrationCheck) -> str:
    """A row for each thing that was predicted and measured."""
    head = ("", "bytes", "devices", "predicted", "measured", "median", "spread", "error")
    rows = [
        (
            row.name,
            bytes_text(row.nbytes),
            str(row.devices),
            seconds_text(row.predicted),
            seconds_text(row.measured),
            seconds_text(row.median),
            f"{100 * row.spread / row.measured:.0f} %",
            f"{100 * row.error:+.0f} %",
        )
        for row in check.rows
    ]
    lines = table(head, rows)
    for text, kind in (("reshards", "reshard"), ("collectives", "collective")):
        lines.append(f"median error of {text}: {_medians(check, kind)}")
    lines.append(f"median error of all: {_medians(check, None)}")
    told = check.calibration.conditions
    lines.append(f"calibrated {told.date}, checked {check.date} on {told.cpu_model}, {told.workers} workers")
    return "\n".join([*lines, *check.notes])


def _medians(check: CalibrationCheck, kind: str | None) -> str:
    large, every = (check.median_error(least_bytes=least, kind=kind) for least in (check.LARGE, 0))
    shown = ["no rows" if error is None else f"{100 * error:.1f} %" for error in (large, every)]
    return f"{shown[0]} from {bytes_text(check.LARGE)} on, {shown[1]} of all sizes"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    return [
        "  ".join(
            f"{text:<{width}}" if i == 0 else f"{text:>{width}}"
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in (head, *rows)
    ]
