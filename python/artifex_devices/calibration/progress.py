# SPDX-License-Identifier: Apache-2.0
"""A progress bar on standard error while a calibration measures."""

from __future__ import annotations

import sys
from typing import Any, TextIO

_LINES = 10  # of progress without a terminal


class Progress:
    """Progress of a measurement, which shows nothing; a context manager."""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def step(self, name: str, total: int) -> None:
        """Records that the next of `total` parts begins."""


class _Lines(Progress):
    """A line for each tenth."""

    def __init__(self, operation: str, stream: TextIO) -> None:
        self._operation = operation
        self._stream = stream
        self._done = 0

    def step(self, name: str, total: int) -> None:
        self._done += 1
        if self._done * _LINES // total > (self._done - 1) * _LINES // total:
            percent = 100 * self._done // total
            print(f"{self._operation}: {percent} %, {name}", file=self._stream, flush=True)


class _Bar(Progress):
    """A bar, drawn between the measurements so as not to disturb them."""

    def __init__(self, operation: str, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        columns: list[Any] = [TextColumn(operation), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
        columns.append(TextColumn("{task.description}"))
        self._bar = RichProgress(*columns, console=Console(file=stream), auto_refresh=False, transient=True)
        self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> _Bar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def step(self, name: str, total: int) -> None:
        self._bar.update(self._task, advance=1, total=total, description=name, refresh=True)


def progress_on(operation: str, show: bool | None, stream: TextIO | None = None) -> Progress:
    """A bar on a terminal if rich is installed; elsewhere lines if `show` is True, and nothing if it is None.

    `operation` names the bar; a `show` of False shows nothing; `stream` None means sys.stderr.
    """
    stream = sys.stderr if stream is None else stream
    if show is False or stream is None:
        return Progress()
    if stream.isatty():
        try:
            return _Bar(operation, stream)
        except ImportError:
            pass
    return _Lines(operation, stream) if show else Progress()
