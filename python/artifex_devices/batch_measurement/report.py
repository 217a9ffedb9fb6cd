# SPDX-License-Identifier: Apache-2.0
"""Rows of probes, and the progress of a measurement on standard error."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any, TextIO

from artifex_devices._base.rich_console import rich_console
from artifex_devices._base.text import bytes_text, seconds_text
from artifex_devices.batch_measurement.memory import HOST
from artifex_devices.batch_measurement.probe import BatchProbe

COLUMNS = ("batch", "examples/s", "best", "median", "spread", "calls", "device peak", "host peak", "")
DIGITS = 3  # of seconds


def row_of(probe: BatchProbe) -> tuple[str, ...]:
    """Returns the cells of COLUMNS; the last one is the error."""
    devices = [use.peak for name, use in probe.memory.items() if name != HOST and use.peak is not None]
    host = probe.memory[HOST].peak if HOST in probe.memory else None
    rate = probe.examples_per_s
    return (
        f"{probe.batch_size:,}",
        "-" if rate is None else f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}",
        "-" if probe.best_s is None else seconds_text(probe.best_s, DIGITS),
        "-" if probe.median_s is None else seconds_text(probe.median_s, DIGITS),
        "-" if probe.spread is None else f"{probe.spread:.1%}",
        str(probe.calls),
        bytes_text(max(devices)) if devices else "-",
        "-" if host is None else bytes_text(host),
        probe.error or ("" if probe.outcome == "measured" else probe.outcome),
    )


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
        from rich.live import Live
        from rich.table import Table

        self._table: Any = Table(box=None, header_style="bold")
        for name in COLUMNS[:-1]:
            self._table.add_column(name, justify="right")
        self._table.add_column(COLUMNS[-1], overflow="fold")
        # Errors of a step are shown verbatim: "[data]" in them is not markup.
        console = rich_console(file=stream, markup=False, emoji=False, highlight=False)
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
