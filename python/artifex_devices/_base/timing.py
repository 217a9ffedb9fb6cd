# SPDX-License-Identifier: Apache-2.0
"""What counts of the times of one thing that was done again and again."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

__all__ = ["Repeats"]


class Repeats:
    """Seconds of repeats of one thing, and what counts of them.

    Other work on the machine only ever makes a call slower, so that the first quartile counts: what it takes where
    nothing else runs, without trusting the one best.
    """

    def __init__(self, seconds: Sequence[float]) -> None:
        """At least one."""
        self.count = len(seconds)
        quartiles = statistics.quantiles(seconds, n=4, method="inclusive") if len(seconds) > 1 else [*seconds] * 3
        self.seconds, self.median, third = quartiles
        self.spread = third - self.seconds
