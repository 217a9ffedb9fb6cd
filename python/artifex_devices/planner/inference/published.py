# SPDX-License-Identifier: Apache-2.0
"""Errors of `plan_inference` against published decode runs, by chip and kind of model."""

from __future__ import annotations

from artifex_devices._core import Cluster
from artifex_devices.planner.training import Efficiency
from artifex_devices.planner.training.published import PublishedError

# Written by bench/planner_accuracy.py: part of a chip's name, whether the models have experts, number of runs that are
# held out, and the median and the 90th percentile of their absolute errors with the default factors.
ROWS: tuple[tuple[str, bool, int, float, float], ...] = (
    ("A100 SXM 80GB", False, 11, 0.036, 0.113),
    ("A100 SXM 80GB", True, 2, 0.191, 0.241),
    ("H100", False, 9, 0.091, 0.142),
    ("H100", True, 2, 0.051, 0.054),
    ("H200", False, 4, 0.065, 0.088),
    ("H200", True, 1, 0.047, 0.047),
)


def published_decode_error(cluster: Cluster, *, has_experts: bool, efficiency: Efficiency) -> PublishedError | None:
    """Returns the error of the default factors on published decode runs of this chip and kind of model.

    Returns None for chips and kinds without runs, and for other factors.
    """
    name = str(cluster.parts["chip_name"])
    row = next((row for row in ROWS if row[0] in name and row[1] == has_experts), None)
    if row is None or efficiency != Efficiency.of(cluster):
        return None
    chip, _, runs, median, tail = row
    return PublishedError(chip, "experts" if has_experts else "dense", "any", runs, median, tail)


def decode_error_text(error: PublishedError | None, *, has_experts: bool) -> str:
    """Formats how far expected times of decoding were from published runs."""
    kind = "models with experts" if has_experts else "dense models"
    if error is None:
        return f"not known: no published decode run of {kind} on this chip was compared with these factors"
    if error.runs == 1:
        return f"{error.median:.1%} on the only published decode run of {kind} on {error.chip} [{error.source}]"
    return (
        f"median {error.median:.1%}, nine of ten within {error.tail:.1%} on {error.runs} published decode runs of "
        f"{kind} on {error.chip} that were not used to fit the factors [{error.source}]"
    )
