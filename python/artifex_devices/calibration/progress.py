# SPDX-License-Identifier: Apache-2.0
"""A progress bar on standard error while a calibration measures."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Protocol, TextIO

__all__ = ["Progress", "progress_on"]

_PARTS = 10  # lines that there are without a terminal


class Progress(Protocol):
    """What is told while a measurement runs; a context manager."""

    def __enter__(self) -> Progress:
        """Begins to show it."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends to show it, however it ended."""

    def step(self, name: str, total: int) -> None:
        """The next of `total` parts begins."""


class _Silent:
    def __enter__(self) -> _Silent:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def step(self, name: str, total: int) -> None:
        pass


class _Plain(_Silent):
    """A line for each tenth."""

    def __init__(self, operation: str, stream: TextIO) -> None:
        self._operation = operation
        self._stream = stream
        self._done = 0

    def step(self, name: str, total: int) -> None:
        self._done += 1
        if self._done * _PARTS // total > (self._done - 1) * _PARTS // total:
            part = 100 * self._done // total
            print(f"{self._operation}: {part} %, {name}", file=self._stream, flush=True)


class _Rich(_Silent):
    """A bar; drawn between the measurements only, as drawing beside them would disturb their times."""

    def __init__(self, operation: str, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns: list[Any] = [TextColumn(operation), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
        columns.append(TextColumn("{task.description}"))
        self._bar = Bar(*columns, console=Console(file=stream), auto_refresh=False, transient=True)
        self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> _Rich:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def step(self, name: str, total: int) -> None:
        self._bar.update(self._task, advance=1, total=total, description=name, refresh=True)


def progress_on(operation: str, shown: bool | None, stream: TextIO | None = None) -> Progress:
    """A bar on a terminal where rich is installed; elsewhere lines if `shown` is True, nothing if it is None.

    Args:
        operation: Its name stands before the bar.
        shown: False shows nothing.
        stream: None is sys.stderr.
    """
    stream = sys.stderr if stream is None else stream
    if shown is False or stream is None:
        return _Silent()
    if stream.isatty():
        try:
            return _Rich(operation, stream)
        except ImportError:
            pass
    return _Plain(operation, stream) if shown else _Silent()
