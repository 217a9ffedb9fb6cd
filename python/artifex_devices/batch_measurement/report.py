# SPDX-License-Identifier: Apache-2.0
"""Texts of a measurement: the report, and the progress on standard error."""

from __future__ import annotations

import sys
import textwrap
from contextlib import suppress
from operator import itemgetter
from typing import Any, TextIO

from artifex_devices._base.text import bytes_text, seconds_text
from artifex_devices.batch_measurement.memory import HOST
from artifex_devices.batch_measurement.probe import BatchProbe
from artifex_devices.batch_measurement.result import BatchSizeMeasurement

COLUMNS = ("batch", "examples/s", "best", "median", "spread", "calls", "device peak", "host peak", "")
_WIDTH = 100
_DIGITS = 3  # of seconds


def text_of(found: BatchSizeMeasurement) -> str:
    """Returns answer, evidence and notes."""
    share = f"{found.target:.0%} of the throughput"
    by = {
        "model, probed": "by the fitted model, and a probe of it agrees",
        "model": "by the fitted model, not probed itself",
        "measured": "from the sizes that ran; see the notes",
    }[found.recommended_by]
    lines = [f"Recommended batch size {found.recommended_batch_size:,} ({share}; {by})"]
    if found.recommended_range is not None:
        low, high = found.recommended_range
        lines.append(f"  {low:,} to {high:,} when any one probe is left out")
    fastest = f"{found.fastest_batch_size:,}: {found.fastest_examples_per_s:,.0f} examples/s (measured)"
    lines.append(f"Fastest         {fastest}")
    model = found.model
    if model is not None and found.critical_batch_size is not None:
        least = seconds_text(max(model.fixed_s, model.floor_s), _DIGITS)
        larger = f"larger ones approach {model.examples_per_s:,.0f} examples/s (model)"
        knee = f"{found.critical_batch_size:,}: smaller batches also cost {least} a call, {larger}"
        lines.append(f"Knee            {knee}")
    on = ", ".join(f"{name} {value}" for name, value in found.measured_on.items())
    lines += [
        _memory_text(found),
        f"Confidence      {found.confidence}: {found.confidence_because}",
        f"Measured        {found.measured_at} in {found.seconds:.1f} s; {on}",
        "",
    ]
    marks = {"recommended": found.recommended_batch_size, "fastest": found.fastest_batch_size}
    rows: list[tuple[str, ...]] = [COLUMNS]
    for probe in sorted(found.evidence, key=lambda each: each.batch_size):
        *cells, error = row_of(probe)
        rows.append((*cells, error or ", ".join(mark for mark, size in marks.items() if size == probe.batch_size)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        lines.append("  ".join(["", *cells, row[-1]]).rstrip())
    sources = {name: use.source for probe in found.evidence for name, use in probe.memory.items()}
    notes = list(found.notes)
    if HOST in sources:
        notes.append(f"Host peak: {sources[HOST]}.")
    if devices := [name for name in sources if name != HOST]:
        notes.append(f"Device peak: {sources[devices[0]]}; of {len(devices)}, the highest.")
    lines.append("")
    for note in notes:
        lines += textwrap.wrap(note, _WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False)
    return "\n".join(lines)


def row_of(probe: BatchProbe) -> tuple[str, ...]:
    """Returns the cells of COLUMNS; the last one is the error."""
    devices = [use.peak for name, use in probe.memory.items() if name != HOST and use.peak is not None]
    host = probe.memory[HOST].peak if HOST in probe.memory else None
    rate = probe.examples_per_s
    return (
        f"{probe.batch_size:,}",
        "-" if rate is None else f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}",
        "-" if probe.best_s is None else seconds_text(probe.best_s, _DIGITS),
        "-" if probe.median_s is None else seconds_text(probe.median_s, _DIGITS),
        "-" if probe.spread is None else f"{probe.spread:.1%}",
        str(probe.calls),
        bytes_text(max(devices)) if devices else "-",
        "-" if host is None else bytes_text(host),
        probe.error or ("" if probe.outcome == "measured" else probe.outcome),
    )


def _memory_text(found: BatchSizeMeasurement) -> str:
    if found.max_memory_batch_size is None:
        return "Memory          no bound on the batch was found"
    largest = found.max_memory_batch_size
    ran = any(probe.batch_size == largest and probe.outcome == "measured" for probe in found.evidence)
    how = "fits (it ran)" if ran else "is predicted to fit (not tried)"
    text = f"Memory          {largest:,} is the largest batch that {how}"
    limiting = [(fit.max_batch_size, fit) for fit in found.memory if fit.max_batch_size is not None]
    if not limiting:
        return text
    _, fit = min(limiting, key=itemgetter(0))
    bound = "" if fit.bound_bytes is None else f", bound {bytes_text(fit.bound_bytes)}"
    base, each = bytes_text(max(0, round(fit.base_bytes))), bytes_text(round(fit.bytes_per_example))
    return f"{text}: {fit.memory} takes {base} + {each} an example{bound} (fit of the measured peaks)"


class Progress:
    """Progress of a measurement; this class shows nothing."""

    def starting(self, size: int) -> None:
        """Shows the start of a probe."""

    def finished(self, probe: BatchProbe) -> None:
        """Shows a finished probe."""

    def close(self) -> None:
        """Ends the display."""


class _Plain(Progress):
    """Prints a line for each probe."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def finished(self, probe: BatchProbe) -> None:
        size, rate, best, _, spread, _, device, host, wrong = row_of(probe)
        peaks = f"peak of a device {device}, of the host {host}"
        text = wrong or f"{rate} examples/s, {best} a call (spread {spread}), {peaks}"
        print(f"measure_batch_size: batch {size}: {text}", file=self._stream, flush=True)


class _Rich(Progress):
    """Draws a growing table between the probes, because drawing during a probe would disturb its times."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.table import Table

        self._table: Any = Table(box=None, header_style="bold")
        for name in COLUMNS[:-1]:
            self._table.add_column(name, justify="right")
        self._table.add_column(COLUMNS[-1], overflow="fold")
        # Errors of a step are shown verbatim: "[data]" in them is not markup.
        console = Console(file=stream, markup=False, emoji=False, highlight=False)
        self._live = Live(self._table, console=console, auto_refresh=False, transient=True, redirect_stdout=False)
        self._live.start()

    def starting(self, size: int) -> None:
        self._table.caption = f"probing a batch of {size:,}"
        self._live.refresh()

    def finished(self, probe: BatchProbe) -> None:
        self._table.add_row(*row_of(probe))
        self._live.refresh()

    def close(self) -> None:
        self._live.stop()


def progress_on(stream: TextIO | None = None, *, shown: bool = True) -> Progress:
    """Returns a table with rich on a terminal, lines elsewhere, or nothing; the default stream is sys.stderr."""
    stream = sys.stderr if stream is None else stream
    if not shown or stream is None:
        return Progress()
    with suppress(ImportError):
        if stream.isatty():
            return _Rich(stream)
    return _Plain(stream)
