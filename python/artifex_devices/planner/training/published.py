# SPDX-License-Identifier: Apache-2.0
"""Errors of `plan_training` against published training runs, by chip."""

from __future__ import annotations

from dataclasses import dataclass

from artifex_devices._core import Cluster
from artifex_devices.planner.training.efficiency import Efficiency

# Written by bench/planner_accuracy.py: part of a chip's name, number of runs that are held out, and the median and the
# 90th percentile of their absolute errors, with published factors and with fitted ones.
ROWS = (
    ("A100 SXM 40GB", 10, (0.260, 0.302), (0.063, 0.092)),
    ("A100 SXM 80GB", 19, (0.177, 0.405), (0.081, 0.254)),
    ("H100", 24, (0.347, 0.506), (0.088, 0.261)),
    ("H800", 1, (0.404, 0.404), (0.058, 0.058)),
    ("v4", 2, (0.030, 0.049), (0.043, 0.069)),
    ("v5e", 8, (0.051, 0.155), (0.063, 0.166)),
    ("v5p", 5, (0.097, 0.151), (0.065, 0.172)),
    ("v6e", 1, (0.108, 0.108), (0.106, 0.106)),
)


@dataclass(frozen=True)
class PublishedError:
    """Relative error of expected seconds on published runs that were not used to fit the factors.

    Attributes:
        chip: Chip of the runs.
        runs: Number of runs.
        median: Error that half of the runs do not exceed.
        tail: Error that nine of ten do not exceed.
        source: Page with all runs.
    """

    chip: str
    runs: int
    median: float
    tail: float
    source: str = "docs/planner_accuracy.md"


def published_error(cluster: Cluster, efficiency: Efficiency) -> PublishedError | None:
    """Returns the error of these factors on published runs of the cluster's chip.

    Returns None for chips without runs, and for factors other than `Efficiency.of(cluster)` and
    `Efficiency.published(cluster)`, which were not compared with runs. An H200 has the factors of the H100, and its
    error was measured with runs on H100.
    """
    name = str(cluster.parts["chip_name"]).replace("H200", "H100")
    row = next((row for row in ROWS if row[0] in name), None)
    if row is None:
        return None
    chip, runs, published, fitted = row
    if efficiency == Efficiency.of(cluster):
        return PublishedError(chip, runs, *fitted)
    return PublishedError(chip, runs, *published) if efficiency == Efficiency.published(cluster) else None
