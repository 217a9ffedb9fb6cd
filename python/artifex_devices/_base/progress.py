# SPDX-License-Identifier: Apache-2.0
"""A bar on standard error while something long is worked out: rich's where it is installed, else a line of text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(what: str, total: int, *, is_wanted: bool = True) -> Iterator[Callable[[int], None] | None]:
    """Hands out a function that takes how much is done; None where nobody would see it.

    It is shown on standard error, if that is a terminal; it is gone afterwards.

    Args:
        what: Is worked out, in a word or two.
        total: That `done` counts up to.
        is_wanted: False never shows it.
    """
    stream = sys.stderr
    if not is_wanted or total < 1 or stream is None or not stream.isatty():
        yield None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield _line(what, total)
        stream.write("\r\x1b[K")
        stream.flush()
        return
    with Progress(console=Console(stderr=True), transient=True) as progress:
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
