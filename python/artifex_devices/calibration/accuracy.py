# SPDX-License-Identifier: Apache-2.0
"""Comparison of predicted and measured seconds, for reshards and collectives that a calibration was not fitted to."""

from __future__ import annotations

import datetime
import json
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from artifex_devices._base.checks import check_int, wrong_value
from artifex_devices._base.leaf_types import Record
from artifex_devices._base.public_path import public
from artifex_devices._base.text import bytes_text, seconds_text, table_lines
from artifex_devices._base.timing import Repeats
from artifex_devices._core import Machine, Mesh, NamedSharding, PartitionSpec
from artifex_devices._runtime.devices import devices
from artifex_devices._runtime.world import simulate
from artifex_devices.calibration.cases import (
    BODIES,
    Case,
    collective_case,
    full_blocks,
    host_values,
    reshard_case,
    time_cases,
)
from artifex_devices.planner import plan_collective, plan_reshard
from artifex_devices.planner.calibration import Calibration

_REPEATS = 3
_MEMORY_SHARE = 16
_SHAPES = ((512, 512), (1024, 1024), (2048, 2048), (4096, 4096), (8192, 4096), (8192, 8192), (1 << 17, 256))
"""float32: 1 MiB, 4, 16, 64, 128 and 256 MiB, and 128 MiB of short rows."""

_PAIRS = (
    ("rows", "columns"),
    ("columns", "rows"),
    ("rows", "replicated"),
    ("columns", "replicated"),
    ("rows", "blocks"),
    ("blocks", "columns"),
    ("replicated", "columns"),
)
_COLLECTIVE_BYTES = (1 << 20, 16 << 20, 64 << 20, 256 << 20)
_WORLDS = (4, 8)


@public("artifex_devices.calibration")
@dataclass(frozen=True)
class CheckedRow:
    """One reshard or collective that was predicted, then measured.

    Attributes:
        name: Name of the measurement.
        kind: "reshard" or "collective".
        nbytes: Bytes of the global array; for a collective, of all devices' blocks together.
        devices: Number of devices.
        predicted: Seconds of its plan.
        measured: First quartile of the repeats, as other work on the machine can only make them slower.
        median: Median of the repeats, in seconds.
        spread: Seconds from the first quartile to the third.
    """

    name: str
    kind: str
    nbytes: int
    devices: int
    predicted: float
    measured: float
    median: float
    spread: float

    @property
    def error(self) -> float:
        """Relative error of the prediction: 0.1 is 10 % too slow."""
        return self.predicted / self.measured - 1


@public("artifex_devices.calibration")
@dataclass(frozen=True, eq=False)
class CalibrationCheck:
    """Predicted and measured seconds.

    Attributes:
        calibration: Calibration that made the predictions.
        rows: Reshards and collectives, with their errors.
        date: Date and time of the measurement in UTC, ISO 8601.
        notes: Measurements that were left out, and why.
    """

    LARGE: ClassVar[int] = 64 << 20

    calibration: Calibration
    rows: tuple[CheckedRow, ...]
    date: str
    notes: tuple[str, ...] = ()

    def median_error(self, *, least_bytes: int = LARGE, kind: str | None = None) -> float | None:
        """Returns the median absolute relative error of the rows of at least `least_bytes`, or None without such rows.

        Args:
            least_bytes: Size of the smallest row that counts, in bytes.
            kind: "reshard" or "collective", by default both.

        Raises:
            TypeError: `least_bytes` is not an int.
            ValueError: `least_bytes` is negative, or `kind` is unknown.
        """
        fix = "write least_bytes=0 for all rows"
        least_bytes = check_int("median_error", "least_bytes", least_bytes, fix, minimum=0)
        if kind not in (None, "reshard", "collective"):
            expected = "None or one of 'reshard', 'collective'"
            raise wrong_value("median_error", "kind", kind, expected, "leave it out for both")
        errors = [abs(row.error) for row in self.rows if row.nbytes >= least_bytes and kind in (None, row.kind)]
        return statistics.median(errors) if errors else None

    def __str__(self) -> str:
        """Formats the table, and the medians."""
        return format(self)

    def __format__(self, width: str) -> str:
        """Returns the table and the medians in lines of at most `width` characters: f"{check:80}"."""
        head = ("", "bytes", "devices", "predicted", "measured", "median", "spread", "error")
        rows = [
            (
                row.name,
                bytes_text(row.nbytes),
                str(row.devices),
                *map(seconds_text, (row.predicted, row.measured, row.median)),
                f"{100 * row.spread / row.measured:.0f} %",
                f"{100 * row.error:+.0f} %",
            )
            for row in self.rows
        ]
        lines: list[str] = []
        for text, kind in (("reshards", "reshard"), ("collectives", "collective"), ("all", None)):
            errors = (self.median_error(least_bytes=least, kind=kind) for least in (self.LARGE, 0))
            large, every = ("no rows" if error is None else f"{100 * error:.1f} %" for error in errors)
            lines.append(f"median error of {text}: {large} from {bytes_text(self.LARGE)} on, {every} of all sizes")
        conditions = self.calibration.conditions
        lines.append(
            f"calibrated {conditions.date}, checked {self.date} on {conditions.cpu_model}, {conditions.workers} workers"
        )
        texts = [(text,) for text in (*lines, *self.notes)]
        return "\n".join(table_lines([head, *rows, *texts], right=range(1, len(head)), width=int(width or 0)))

    def to_dict(self) -> Record:
        """Returns all rows and medians as dicts, lists, strings and numbers."""
        return {
            "date": self.date,
            "rows": [{**asdict(row), "error": row.error} for row in self.rows],
            "median_error_large": self.median_error(),
            "median_error": self.median_error(least_bytes=0),
            "large_bytes": self.LARGE,
            "notes": list(self.notes),
            "calibration": self.calibration.to_dict(),
        }

    def to_json(self) -> str:
        """Returns all rows and medians as JSON, with the calibration."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False)


_Prediction = tuple[Case, str, float]  # a case, its kind, and the predicted seconds


def check_rows(
    calibration: Calibration, *, rounds: int, max_bytes: int, step: Callable[[str, int], None]
) -> CalibrationCheck:
    """Predicts and measures the table; calls `step` with the name of each part and the number of parts."""
    date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    limit = min(Machine.live().usable_memory_bytes // _MEMORY_SHARE, max_bytes)
    shapes = [shape for shape in _SHAPES if 4 * math.prod(shape) <= limit]
    sizes = [size for size in _COLLECTIVE_BYTES if size <= limit]
    all_sizes = {4 * math.prod(shape) for shape in _SHAPES} | set(_COLLECTIVE_BYTES)
    left_out = ", ".join(bytes_text(size) for size in sorted(all_sizes) if size > limit)
    notes = (f"left out: arrays of {left_out}, more than {bytes_text(limit)}",) if left_out else ()
    host = host_values(max((size for size in all_sizes if size <= limit), default=4))
    rows: list[CheckedRow] = []
    total = rounds * len(_WORLDS) * (len(shapes) * len(_PAIRS) + len(sizes) * len(BODIES))
    for count in _WORLDS:
        with simulate(count):
            predictions = [*_reshards(calibration, host, shapes), *_collectives(calibration, host, sizes)]
            cases = [case for case, _, _ in predictions]
            seconds = time_cases(cases, rounds=rounds, repeats=_REPEATS, step=lambda name: step(name, total))
            for (case, kind, predicted), repeats in zip(predictions, map(Repeats, seconds), strict=True):
                times = (predicted, repeats.seconds, repeats.median, repeats.spread)
                rows.append(CheckedRow(case.name, kind, case.nbytes, case.devices, *times))
    return CalibrationCheck(calibration, tuple(rows), date, notes)


def _reshards(calibration: Calibration, host: NDArray[Any], shapes: Sequence[tuple[int, int]]) -> Iterator[_Prediction]:
    all_devices = np.array(devices())
    flat = Mesh(all_devices, ("x",))
    square = Mesh(all_devices.reshape(2, -1), ("x", "y"))
    shardings = {
        "rows": NamedSharding(flat, PartitionSpec("x")),
        "columns": NamedSharding(flat, PartitionSpec(None, "x")),
        "replicated": NamedSharding(flat, PartitionSpec()),
        "blocks": NamedSharding(square, PartitionSpec("x", "y")),
    }
    cache_bytes = calibration.conditions.model_cache_bytes
    for shape in shapes:
        for source, destination in _PAIRS:
            name = f"{shape[0]} x {shape[1]}, {source} to {destination}"
            ends = shardings[source], shardings[destination]
            plan = plan_reshard(shape, np.float32, *ends, calibration=calibration)
            yield reshard_case(name, host, shape, *ends, cache_bytes), "reshard", plan.seconds


def _collectives(calibration: Calibration, host: NDArray[Any], sizes: Sequence[int]) -> Iterator[_Prediction]:
    mesh = Mesh(np.array(devices()), ("i",))
    for size in sizes:
        for op in BODIES:
            blocks = full_blocks(op, mesh.size)
            case = collective_case(op, host, size // blocks, mesh, calibration.conditions.model_cache_bytes)
            plan = plan_collective(op, case.nbytes, "i", mesh, calibration=calibration)
            yield replace(case, nbytes=case.nbytes * blocks), "collective", plan.seconds
