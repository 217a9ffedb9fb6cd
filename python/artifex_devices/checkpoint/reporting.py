# SPDX-License-Identifier: Apache-2.0
"""Reports of the bytes that saves, restores and conversions have written or read so far."""

from __future__ import annotations

import threading
from collections.abc import Callable

from artifex_devices._base.checks import check_callable
from artifex_devices._base.daemon_thread import DaemonThread

_INTERVAL_S = 0.1


def check_progress(operation: str, progress: object) -> None:
    """Raises TypeError for a `progress` that is neither None nor callable."""
    if progress is not None:
        check_callable(operation, "progress", progress)


def run_reported(work: Callable[[], object], count: Callable[[], int], progress: Callable[[int], None] | None) -> None:
    """Calls `work`; meanwhile a thread calls progress(count()) ten times a second, and the caller once at the end.

    Raises:
        BaseException: The error of `work`, else the error of `progress`, after which `work` continues without reports.
    """
    if progress is None:
        work()
        return
    is_done = threading.Event()
    errors: list[BaseException] = []

    def report() -> None:
        try:
            while not is_done.wait(_INTERVAL_S):
                progress(count())
        except BaseException as error:
            errors.append(error)

    reporter = DaemonThread("artifex_devices-progress", report)
    reporter.start()
    try:
        work()
    finally:
        is_done.set()
        reporter.join()
    if errors:
        raise errors[0]
    progress(count())
