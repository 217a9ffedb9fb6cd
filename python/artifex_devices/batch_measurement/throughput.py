# SPDX-License-Identifier: Apache-2.0
"""The model of a step's time over batch sizes, and its robust fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from artifex_devices._base.public_path import public

# Errors below this share of a time count as zero.
_NO_ERROR = 1e-3


@public("artifex_devices.batch_measurement")
@dataclass(frozen=True)
class ThroughputModel:
    """seconds(batch) = max(floor_s, fixed_s + batch / examples_per_s), fitted to measured times.

    Attributes:
        fixed_s: Seconds of each call besides the work on its examples, at least 0.
        floor_s: Minimum seconds of a call for any batch; 0 if no floor was observed.
        examples_per_s: Throughput that large batches approach.
        residual: Median of `abs(model - measured) / measured` over the sizes.
        worst_residual: Maximum of `abs(model - measured) / measured` over the sizes.
    """

    fixed_s: float
    floor_s: float
    examples_per_s: float
    residual: float
    worst_residual: float

    def seconds(self, batch_size: int) -> float:
        """Returns the seconds of one call."""
        return max(self.floor_s, self.fixed_s + batch_size / self.examples_per_s)

    @property
    def critical(self) -> float:
        """Batch whose work takes as long as the constant cost of a call; smaller ones are bound by latency."""
        return max(self.fixed_s, self.floor_s) * self.examples_per_s

    def size_reaching(self, throughput: float) -> float:
        """Returns the smallest batch with that many examples per second, not rounded; math.inf if none reaches it."""
        share = throughput / self.examples_per_s
        if share >= 1 and not (share == 1 and self.fixed_s == 0):
            return math.inf
        by_work = 0.0 if self.fixed_s == 0 else share / (1 - share) * self.fixed_s * self.examples_per_s
        return max(throughput * self.floor_s, by_work)


def fit_throughput(times: Sequence[tuple[int, float]]) -> ThroughputModel | None:
    """Fits the model to (batch size, seconds) by least absolute relative error, which is robust against outliers.

    Returns None for fewer than 3 sizes, or if time does not grow with the batch.
    """
    if len(times) < 3:
        return None
    points = np.array(sorted(times), dtype=np.float64)
    sizes, seconds = points[:, 0], points[:, 1]
    fixed, slope = _candidates(sizes, seconds)
    errors, best = _best(0.0, fixed, slope, sizes, seconds)
    floor, line = 0.0, (fixed[best], slope[best])
    # A floor is an additional parameter: it must explain much more than the line alone.
    for count in range(2, len(sizes) - 1):
        level = float(np.median(seconds[:count]))
        beyond_fixed, beyond_slope = _candidates(sizes[count:], seconds[count:])
        with_floor, at = _best(level, beyond_fixed, beyond_slope, sizes, seconds)
        if len(sizes) * math.log(max(errors, _NO_ERROR) / max(with_floor, _NO_ERROR)) > (3 if floor == 0 else 0):
            errors, floor, line = with_floor, level, (beyond_fixed[at], beyond_slope[at])
    if line[1] <= 0:
        return None
    if floor <= line[0]:
        floor = 0.0
    relative = np.abs(np.maximum(floor, line[0] + line[1] * sizes) / seconds - 1)
    residuals = (float(np.median(relative)), float(np.max(relative)))
    return ThroughputModel(float(line[0]), floor, float(1 / line[1]), *residuals)


def _candidates(sizes: np.ndarray, seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns fixed seconds and seconds per example of lines through the origin, a point or two points."""
    fixed, slope = candidate_lines(sizes, seconds)
    possible = fixed > 0
    return np.append(np.zeros(len(sizes)), fixed[possible]), np.append(seconds / sizes, slope[possible])


def _best(
    floor: float, fixed: np.ndarray, slope: np.ndarray, sizes: np.ndarray, seconds: np.ndarray
) -> tuple[float, int]:
    """Returns the smallest mean relative error of the candidates, and its index."""
    predicted = np.maximum(floor, fixed[:, None] + slope[:, None] * sizes)
    errors = np.abs(predicted / seconds - 1).mean(axis=1)
    return float(errors.min()), int(errors.argmin())


def candidate_lines(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns base and slope of lines through one or two points, one of which has the least absolute error."""
    i, j = np.triu_indices(len(x), 1)
    slope = (y[j] - y[i]) / (x[j] - x[i])
    rises = slope > 0
    return np.append(y, (y[i] - slope * x[i])[rises]), np.append(np.zeros(len(y)), slope[rises])
