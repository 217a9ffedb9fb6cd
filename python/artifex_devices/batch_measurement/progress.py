# SPDX-License-Identifier: Apache-2.0
"""Shows the probes of a measurement while it runs, on standard error."""

from __future__ import annotations

import sys
from typing import Any, Protocol, TextIO

from artifex_devices.batch_measurement.probe import BatchProbe
from artifex_devices.batch_measurement.report import COLUMNS, row_of


class Progress(Protocol):
    """Progress of a measurement, shown while it runs."""

    def starting(self, size: int) -> None:
        """A probe of that size begins."""

    def finished(self, probe: BatchProbe) -> None:
        """It ended."""

    def close(self) -> None:
        """The measurement ended, however."""


class _Silent:
    def starting(self, size: int) -> None:
        pass

    def finished(self, probe: BatchProbe) -> None:
        pass

    def close(self) -> None:
        pass


class _Plain(_Silent):
    """A line for each probe."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def finished(self, probe: BatchProbe) -> None:
        size, rate, best, _, spread, _, device, host, wrong = row_of(probe)
        text = (
            wrong
            or f"{rate} examples/s, {best} a call (spread {spread}), peak of a device {device}, of the host {host}"
        )
        print(f"measure_batch_size: batch {size}: {text}", file=self._stream, flush=True)


class _Rich(_Silent):
    """A table that grows; drawn between the probes only, as drawing beside them would disturb their times."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.table import Table

        self._table: Any = Table(box=None, header_style="bold")
        for name in COLUMNS[:-1]:
            self._table.add_column(name, justify="right")
        self._table.add_column(COLUMNS[-1], overflow="fold")
        # What a step raised is shown as it is: "[data]" in it is not markup.
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
    """A table with rich on a terminal, lines elsewhere, nothing unless `shown`; `stream` is sys.stderr."""
    stream = sys.stderr if stream is None else stream
    if not shown or stream is None:
        return _Silent()
    if not stream.isatty():
        return _Plain(stream)
    try:
        return _Rich(stream)
    except ImportError:
        return _Plain(stream)
