# SPDX-License-Identifier: Apache-2.0
"""Repeated timings and their statistics."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Generator, Sequence

from artifex_devices._base.raised_exceptions import context_manager


@context_manager
def without_garbage_collection() -> Generator[None, None, None]:
    """Disables the collector while calls are timed, and enables it again if it was."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Repeats:
    """Statistics of the seconds of repeated calls, at least one.

    `seconds` is the first quartile: other work on the machine only slows calls down, and one best call may be an
    error of measurement.
    """

    def __init__(self, seconds: Sequence[float]) -> None:
        self.count = len(seconds)
        quartiles = statistics.quantiles(seconds, n=4, method="inclusive") if len(seconds) > 1 else [*seconds] * 3
        self.seconds, self.median, third = quartiles
        self.spread = third - self.seconds
