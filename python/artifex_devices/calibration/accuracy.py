# SPDX-License-Identifier: Apache-2.0
"""Predicted against measured: reshards and collectives that a calibration was not fitted to."""

from __future__ import annotations

import datetime
import json
import statistics
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import shown
from artifex_devices._base.text import bytes_text
from artifex_devices._base.timing import Repeats
from artifex_devices._core import Machine, Mesh, NamedSharding, PartitionSpec
from artifex_devices._runtime.devices import devices
from artifex_devices._runtime.world import simulate
from artifex_devices.calibration.cases import (
    BODIES,
    Case,
    collective_case,
    host_values,
    reshard_case,
    time_cases,
)
from artifex_devices.planner import plan_collective, plan_reshard
from artifex_devices.planner.calibration_text import check_text
from artifex_devices.planner.calibration_values import Calibration

__all__ = ["CalibrationCheck", "CheckedRow", "check_rows"]

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
_KINDS = ("reshard", "collective")


@public("artifex_devices.calibration")
@dataclass(frozen=True)
class CheckedRow:
    """One thing that was predicted, then measured.

    Attributes:
        name: What was done.
        kind: "reshard" or "collective".
        nbytes: Of the whole array; of a collective that of all devices' blocks together.
        devices: How many.
        predicted: Seconds of its plan.
        measured: First quartile of the repeats, as other work on the machine only ever makes them slower.
        median: Of the repeats.
        spread: From the first quartile to the third, in seconds.
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
        """Of the prediction, relative: 0.1 is 10 % too slow."""
        return self.predicted / self.measured - 1


@public("artifex_devices.calibration")
@dataclass(frozen=True, eq=False)
class CalibrationCheck:
    """Predicted against measured.

    Attributes:
        calibration: What predicted.
        rows: Each with its error.
        date: Of the measurement, UTC, ISO 8601.
        notes: What was left out, and why.
    """

    LARGE: ClassVar[int] = 64 << 20

    calibration: Calibration
    rows: tuple[CheckedRow, ...]
    date: str
    notes: tuple[str, ...] = ()

    def median_error(self, *, least_bytes: int = LARGE, kind: str | None = None) -> float | None:
        """Median of the absolute relative errors of the rows from `least_bytes` on; None where there are none.

        Args:
            least_bytes: Smaller rows do not count.
            kind: "reshard" or "collective"; None is both.

        Raises:
            TypeError: `least_bytes` is no int.
            ValueError: It is negative, or `kind` is none of these.
        """
        if isinstance(least_bytes, bool) or not isinstance(least_bytes, (int, np.integer)):
            raise TypeError(
                f"median_error: least_bytes is {shown(least_bytes)} ({type(least_bytes).__name__}); expected an int; "
                "say least_bytes=0 for all rows"
            )
        if least_bytes < 0:
            raise ValueError(
                f"median_error: least_bytes is {shown(least_bytes)}; expected 0 or more; say least_bytes=0 for all rows"
            )
        if kind is not None and kind not in _KINDS:
            raise ValueError(
                f"median_error: kind is {shown(kind)}; expected None or one of {', '.join(map(repr, _KINDS))}; leave "
                "it out for both"
            )
        errors = [abs(row.error) for row in self.rows if row.nbytes >= least_bytes and kind in (None, row.kind)]
        return statistics.median(errors) if errors else None

    def __str__(self) -> str:
        """The table, and the medians."""
        return check_text(self)

    def to_dict(self) -> dict[str, Any]:
        """All rows and medians as dicts, lists, strings and numbers."""
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
        """All rows and medians as JSON, with the calibration."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False)


@dataclass(frozen=True)
class _Predicted:
    case: Case
    kind: str
    seconds: float


def check_rows(
    found: Calibration, *, rounds: int, most_bytes: int, step: Callable[[str, int], None]
) -> CalibrationCheck:
    """Predicts and measures the table; `step` is told what is done and how much there is to do."""
    date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    room = min(Machine.live().usable_memory_bytes // _MEMORY_SHARE, most_bytes)
    sizes = {4 * shape[0] * shape[1] for shape in _SHAPES} | set(_COLLECTIVE_BYTES)
    left_out = sorted(size for size in sizes if size > room)
    notes = (
        [f"left out: arrays of {', '.join(map(bytes_text, left_out))}, more than {bytes_text(room)}"]
        if left_out
        else []
    )
    fitting = [size for size in sizes if size <= room]
    host = host_values(max(fitting, default=4))
    made: list[tuple[_Predicted, Repeats]] = []
    reshards = sum(1 for shape in _SHAPES if 4 * shape[0] * shape[1] <= room) * len(_PAIRS)
    collectives = sum(1 for size in _COLLECTIVE_BYTES if size <= room) * len(BODIES)
    total = rounds * len(_WORLDS) * (reshards + collectives)
    for count in _WORLDS:
        with simulate(count):
            own = [*_reshards(found, host, room), *_collectives(found, host, room)]
            seconds = time_cases(
                [each.case for each in own], rounds=rounds, repeats=_REPEATS, step=lambda name: step(name, total)
            )
            made += zip(own, map(Repeats, seconds), strict=True)
    return CalibrationCheck(found, tuple(_row(*each) for each in made), date, tuple(notes))


def _row(predicted: _Predicted, timed: Repeats) -> CheckedRow:
    case = predicted.case
    return CheckedRow(
        case.name,
        predicted.kind,
        case.nbytes,
        case.devices,
        predicted.seconds,
        timed.seconds,
        timed.median,
        timed.spread,
    )


def _reshards(found: Calibration, host: Any, room: int) -> Iterator[_Predicted]:
    world = np.array(devices())
    flat = Mesh(world, ("x",))
    square = Mesh(world.reshape(2, -1), ("x", "y"))
    ways = {
        "rows": NamedSharding(flat, PartitionSpec("x")),
        "columns": NamedSharding(flat, PartitionSpec(None, "x")),
        "replicated": NamedSharding(flat, PartitionSpec()),
        "blocks": NamedSharding(square, PartitionSpec("x", "y")),
    }
    for shape in _SHAPES:
        if 4 * shape[0] * shape[1] > room:
            continue
        for source, destination in _PAIRS:
            name = f"{shape[0]} x {shape[1]}, {source} to {destination}"
            case = reshard_case(name, host, shape, ways[source], ways[destination])
            plan = plan_reshard(shape, np.float32, ways[source], ways[destination], calibration=found)
            yield _Predicted(case, "reshard", plan.seconds)


def _collectives(found: Calibration, host: Any, room: int) -> Iterator[_Predicted]:
    mesh = Mesh(np.array(devices()), ("i",))
    for size in _COLLECTIVE_BYTES:
        if size > room:
            continue
        for op in BODIES:
            whole = op in ("all_reduce", "reduce_scatter")
            case = collective_case(
                op, host, size // mesh.size if whole else size, mesh, found.conditions.model_cache_bytes
            )
            plan = plan_collective(op, case.nbytes, "i", mesh, calibration=found)
            all_blocks = case.nbytes * mesh.size if whole else case.nbytes
            yield _Predicted(Case(case.name, all_blocks, case.devices, case.prepare), "collective", plan.seconds)
