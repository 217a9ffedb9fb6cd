# SPDX-License-Identifier: Apache-2.0
"""Statistics of repeated timings."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


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
