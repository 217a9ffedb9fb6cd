# SPDX-License-Identifier: Apache-2.0
"""A progress bar on standard error while a calibration measures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO

_LINES = 10  # of progress without a terminal


@dataclass(frozen=True)
class Progress:
    """Progress of a measurement.

    Attributes:
        step: Records that the next part begins, by its name and the number of parts.
    """

    step: Callable[[str, int], None]


@contextmanager
def progress_on(operation: str, show: bool | None, stream: TextIO | None = None) -> Iterator[Progress]:
    """A bar on a terminal if rich is installed; elsewhere lines if `show` is True, and nothing if it is None.

    `operation` names the bar; a `show` of False shows nothing; `stream` None means sys.stderr.
    """
    stream = sys.stderr if stream is None else stream
    is_terminal = show is not False and stream is not None and stream.isatty()
    bar = _bar(operation, stream) if is_terminal else None
    if bar is None:
        yield _lines(operation, stream) if show and stream is not None else Progress(lambda name, total: None)
        return
    with bar:
        task = bar.add_task("", total=None)
        # Drawn between the measurements so as not to disturb them.
        yield Progress(lambda name, total: bar.update(task, advance=1, total=total, description=name, refresh=True))


def _bar(operation: str, stream: TextIO | None) -> Any:
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        return None
    columns: list[Any] = [TextColumn(operation), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    columns.append(TextColumn("{task.description}"))
    return Progress(*columns, console=Console(file=stream), auto_refresh=False, transient=True)


def _lines(operation: str, stream: TextIO) -> Progress:
    """A line for each tenth."""
    done = 0

    def step(name: str, total: int) -> None:
        nonlocal done
        done += 1
        if done * _LINES // total > (done - 1) * _LINES // total:
            print(f"{operation}: {100 * done // total} %, {name}", file=stream, flush=True)

    return Progress(step)
