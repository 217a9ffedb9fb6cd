# SPDX-License-Identifier: Apache-2.0
"""A progress bar on standard error: rich's if that is installed, otherwise a line of text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator

from artifex_devices._base.raised_exceptions import context_manager
from artifex_devices._base.rich_console import rich_console

_Report = Callable[[int], None]


@context_manager
def progress_bar(what: str, total: int, *, is_wanted: bool = True) -> Generator[_Report | None, None, None]:
    """Yields a function of the number of finished parts out of `total`; None if the bar is not shown.

    The bar has the title `what`. It is shown if standard error is a terminal, and removed at the end.
    """
    stream = sys.stderr
    if not is_wanted or total < 1 or stream is None or not stream.isatty():
        yield None
        return
    try:
        from rich.progress import Progress

        console = rich_console(stderr=True)
    except ImportError:
        yield _line(what, total)
        stream.write("\r\x1b[K")
        stream.flush()
        return
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)


def _line(what: str, total: int) -> Callable[[int], None]:
    shown = -1

    def show(done: int) -> None:
        nonlocal shown
        percent = min(100 * done // total, 100)
        if percent != shown and sys.stderr is not None:
            shown = percent
            sys.stderr.write(f"\r{what}: {percent} %")
            sys.stderr.flush()

    return show
