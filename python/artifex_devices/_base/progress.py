# SPDX-License-Identifier: Apache-2.0
"""A progress bar on standard error: rich's if that is installed, otherwise a line of text."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from typing import TextIO

from artifex_devices._base.raised_exceptions import context_manager
from artifex_devices._base.rich_console import rich_console

_Report = Callable[[int], None]
_DELAY_S = 2.0


@context_manager
def progress_bar(what: str, total: int, *, is_wanted: bool = True) -> Generator[_Report | None, None, None]:
    """Yields a function of the number of finished parts out of `total`; None if standard error is not a terminal.

    The bar has the title `what`. It appears at the first call of the function after 2 seconds, and is removed at the
    end.
    """
    stream = sys.stderr
    if not is_wanted or total < 1 or stream is None or not stream.isatty():
        yield None
        return
    begin = time.monotonic()
    shown: list[tuple[_Report, Callable[[], None]]] = []

    def show(done: int) -> None:
        if not shown:
            if time.monotonic() - begin < _DELAY_S:
                return
            shown.append(_bar(what, total, stream))
        update, _ = shown[0]
        update(done)

    try:
        yield show
    finally:
        for _, remove in shown:
            remove()


def _bar(what: str, total: int, stream: TextIO) -> tuple[_Report, Callable[[], None]]:
    """Shows a bar, and returns functions that update and remove it."""
    try:
        from rich.progress import Progress

        console = rich_console(stderr=True)
    except ImportError:
        return _line(what, total, stream)
    progress = Progress(console=console, transient=True)
    progress.start()
    task = progress.add_task(what, total=total)
    return lambda done: progress.update(task, completed=done), progress.stop


def _line(what: str, total: int, stream: TextIO) -> tuple[_Report, Callable[[], None]]:
    shown = -1

    def update(done: int) -> None:
        nonlocal shown
        percent = min(100 * done // total, 100)
        if percent != shown and sys.stderr is not None:
            shown = percent
            sys.stderr.write(f"\r{what}: {percent} %")
            sys.stderr.flush()

    def remove() -> None:
        stream.write("\r\x1b[K")
        stream.flush()

    return update, remove
