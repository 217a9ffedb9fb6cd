# SPDX-License-Identifier: Apache-2.0
"""Runs the bodies of a session by one of the executors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from artifex_devices._spmd.session import Executor, Session
from artifex_devices._spmd.watchdog import unwatch, watch


def run(
    session: Session, function: Callable[..., Any], rows: list[Any], executor: str, timeout_s: float | None = None
) -> list[Any]:
    """Runs the function for each participant, in a copy of the caller's context, and returns the results in order.

    `rows` is passed to Session.open; `executor` is "cooperative" or "threads". Raises the errors of Session.outcome.
    """
    make = _executor(executor)
    try:
        session.open(rows, timeout_s)
        watch(session)
        make(session, function).run()
        return session.outcome()
    finally:
        unwatch(session)
        session.close()


@functools.cache
def _executor(name: str) -> Callable[[Session, Callable[..., Any]], Executor]:
    """Imports the class of an executor at its first use."""
    if name == "threads":
        from artifex_devices._spmd.threaded import ThreadedExecutor

        return ThreadedExecutor
    from artifex_devices._spmd.cooperative import CooperativeExecutor

    return CooperativeExecutor
