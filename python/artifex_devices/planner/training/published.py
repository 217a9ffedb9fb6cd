# SPDX-License-Identifier: Apache-2.0
"""Errors of `plan_training` against published training runs, by kind of run."""

from __future__ import annotations

from dataclasses import dataclass

from artifex_devices._core import Cluster
from artifex_devices.planner.shape import TransformerShape
from artifex_devices.planner.training.config import TrainingConfig
from artifex_devices.planner.training.efficiency import Efficiency

# Written by bench/planner_accuracy.py: chip (empty: all chips), kind of run, precision of products, number of runs that
# are held out, and the median and the 90th percentile of their absolute errors, with published factors and with fitted
# ones.
ROWS: tuple[tuple[str, str, str, int, tuple[float, float], tuple[float, float]], ...] = (
    ("", "context-parallel", "bfloat16", 1, (0.210, 0.210), (0.065, 0.065)),
    ("", "context-parallel", "float8", 2, (0.122, 0.189), (0.050, 0.055)),
    ("", "dense", "bfloat16", 61, (0.190, 0.392), (0.065, 0.191)),
    ("", "dense", "float8", 9, (0.219, 0.347), (0.082, 0.231)),
    ("", "dense, not compiled", "bfloat16", 1, (0.450, 0.450), (0.239, 0.239)),
    ("", "experts", "bfloat16", 2, (0.149, 0.226), (0.296, 0.415)),
    ("", "experts", "float8", 6, (0.262, 0.631), (0.114, 0.435)),
    ("A100", "dense", "bfloat16", 29, (0.184, 0.393), (0.065, 0.200)),
    ("B200", "dense", "float8", 1, (0.219, 0.219), (0.025, 0.025)),
    ("B200", "experts", "bfloat16", 1, (0.245, 0.245), (0.148, 0.148)),
    ("H100", "context-parallel", "bfloat16", 1, (0.210, 0.210), (0.065, 0.065)),
    ("H100", "context-parallel", "float8", 2, (0.122, 0.189), (0.050, 0.055)),
    ("H100", "dense", "bfloat16", 16, (0.332, 0.424), (0.072, 0.160)),
    ("H100", "dense", "float8", 8, (0.220, 0.350), (0.104, 0.233)),
    ("H100", "dense, not compiled", "bfloat16", 1, (0.450, 0.450), (0.239, 0.239)),
    ("H100", "experts", "bfloat16", 1, (0.054, 0.054), (0.445, 0.445)),
    ("H100", "experts", "float8", 6, (0.262, 0.631), (0.114, 0.435)),
    ("TPU v4", "dense", "bfloat16", 2, (0.030, 0.049), (0.043, 0.069)),
    ("TPU v5e", "dense", "bfloat16", 8, (0.051, 0.155), (0.063, 0.166)),
    ("TPU v5p", "dense", "bfloat16", 5, (0.097, 0.151), (0.065, 0.172)),
    ("TPU v6e (Trillium)", "dense", "bfloat16", 1, (0.108, 0.108), (0.106, 0.106)),
)

# Parts of the names of chips, and the chip whose processors they have.
FAMILIES = {"A100": "A100", "H100": "H100", "H200": "H100", "H800": "H100", "B200": "B200"}
_PRECISIONS = {"float16": "bfloat16", "int8": "float8"}  # formats with the same published rate


@dataclass(frozen=True)
class RunKind:
    """What published runs must have in common with a plan.

    Attributes:
        chip: Chip, or the chip whose processors it has: "H100" for an H200.
        kind: "dense", "experts" or "context-parallel", with ", not compiled" where operations are not fused.
        precision: Number format of products.
    """

    chip: str
    kind: str
    precision: str

    def __str__(self) -> str:
        return f"{self.kind}, {self.precision}, on {self.chip}"


@dataclass(frozen=True)
class PublishedError:
    """Relative error of expected seconds on published runs that were not used to fit the factors.

    Attributes:
        chip: Chip of the runs, or None for runs of this kind on all chips.
        kind: Kind of the runs.
        precision: Number format of their products; "any" for decode runs, which are of several.
        runs: Number of runs.
        median: Error that half of the runs do not exceed.
        tail: Error that nine of ten do not exceed.
        source: Page with all runs.
    """

    chip: str | None
    kind: str
    precision: str
    runs: int
    median: float
    tail: float
    source: str = "docs/planner_accuracy.md"


def run_kind(shape: TransformerShape, cluster: Cluster, config: TrainingConfig) -> RunKind:
    """Returns the kind of a run: experts come before the context axis."""
    kind = "experts" if shape.experts else "context-parallel" if config.context > 1 else "dense"
    if not config.compiled:
        kind += ", not compiled"
    return kind_on(cluster, kind, config.dtype)


def kind_on(cluster: Cluster, kind: str, dtype: str) -> RunKind:
    """Returns a kind of run on a cluster's chips, with products in the number format `dtype`."""
    name = str(cluster.parts["chip_name"])
    chip = next((family for part, family in FAMILIES.items() if part in name), name)
    return RunKind(chip, kind, _PRECISIONS.get(dtype, dtype))


def published_error(kind: RunKind, cluster: Cluster, efficiency: Efficiency) -> PublishedError | None:
    """Returns the error of these factors on published runs of a kind, on the same chip or else on all chips.

    Returns None for kinds without runs, and for factors other than `Efficiency.of(cluster)` and
    `Efficiency.published(cluster)`, which were not compared with runs.
    """
    is_published = efficiency == Efficiency.published(cluster)
    if not is_published and efficiency != Efficiency.of(cluster):
        return None
    for chip in (kind.chip, ""):
        for row in ROWS:
            if row[:3] == (chip, kind.kind, kind.precision):
                _, _, _, runs, published, fitted = row
                return PublishedError(
                    chip or None, kind.kind, kind.precision, runs, *(published if is_published else fitted)
                )
    return None
