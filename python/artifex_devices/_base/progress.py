# SPDX-License-Identifier: Apache-2.0
"""A progress bar on standard error: rich's if that is installed, otherwise a line of text."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from typing import TextIO

from artifex_devices._base.raised_exceptions import context_manager
from artifex_devices._base.rich_console import rich_console
from artifex_devices._base.text import bytes_text

_Report = Callable[[int], None]
_Rate = Callable[[int], float]
_DELAY_S = 2.0


@context_manager
def progress_bar(
    what: str, total: int, *, is_wanted: bool = True, is_bytes: bool = False
) -> Generator[_Report | None, None, None]:
    """Yields a function of the number of finished parts out of `total`; None if standard error is not a terminal.

    The bar has the title `what`, and the time left; if the parts are bytes, also their rate. It appears at the first
    call of the function after 2 seconds, and is removed at the end.
    """
    stream = sys.stderr
    if not is_wanted or total < 1 or stream is None or not stream.isatty():
        yield None
        return
    begin = time.monotonic()
    first: list[tuple[float, int]] = []  # time and number of the first call
    shown: list[tuple[_Report, Callable[[], None]]] = []

    def rate(done: int) -> float:
        """Returns bytes per second, without parts of an earlier process."""
        before_s, before = first[0]
        return max(done - before, 0) / max(time.monotonic() - before_s, 1e-9)

    def show(done: int) -> None:
        if not shown:
            first.append((time.monotonic(), done))
            if time.monotonic() - begin < _DELAY_S:
                return
            shown.append(_bar(what, total, stream, rate if is_bytes else None))
        update, _ = shown[0]
        update(done)

    try:
        yield show
    finally:
        for _, remove in shown:
            remove()


def _bar(what: str, total: int, stream: TextIO, rate: _Rate | None) -> tuple[_Report, Callable[[], None]]:
    """Shows a bar, and returns functions that update and remove it."""
    try:
        from rich.progress import Progress, TextColumn

        console = rich_console(stderr=True)
    except ImportError:
        return _line(what, total, stream, rate)
    columns = [] if rate is None else [TextColumn("{task.fields[rate]}")]
    progress = Progress(*Progress.get_default_columns(), *columns, console=console, transient=True)
    progress.start()
    task = progress.add_task(what, total=total, rate="")

    def update(done: int) -> None:
        text = "" if rate is None else f"{bytes_text(round(rate(done)))}/s"
        progress.update(task, completed=done, rate=text)

    return update, progress.stop


def _line(what: str, total: int, stream: TextIO, rate: _Rate | None) -> tuple[_Report, Callable[[], None]]:
    shown = ""

    def update(done: int) -> None:
        nonlocal shown
        text = f"{what}: {min(100 * done // total, 100)} %"
        if rate is not None and (speed := rate(done)):
            text += f", {bytes_text(round(speed))}/s, {max(0, total - done) / speed:,.0f} s left\x1b[K"
        if text != shown and sys.stderr is not None:
            shown = text
            sys.stderr.write(f"\r{text}")
            sys.stderr.flush()

    def remove() -> None:
        stream.write("\r\x1b[K")
        stream.flush()

    return update, remove
