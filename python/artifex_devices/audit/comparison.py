# SPDX-License-Identifier: Apache-2.0
"""audit.compare: a program beside the plan that it should follow."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from artifex_devices._base import html
from artifex_devices._base.checks import check_type, wrong_type
from artifex_devices._base.public_path import public
from artifex_devices._base.text import bytes_text, printable, seconds_text, table_lines
from artifex_devices.audit.program import Program, axes_text, total_of
from artifex_devices.audit.values import Collective
from artifex_devices.planner.reshard import ReshardPlan
from artifex_devices.planner.step import StepPlan
from artifex_devices.planner.training import TrainingPlan

_OPERATION = "audit.compare"
_ANY = "any"  # the axes of plans that name none
_HEAD = ("kind", "axes", "planned runs", "found", "planned bytes", "found", "extra seconds")
_ROUNDING = 1.01  # bytes above the plan that are not extra: padding and rounding
_MOVES = {"permute": "collective_permute", "all_to_all": "all_to_all", "all_gather": "all_gather"}


@public("artifex_devices.audit")
@dataclass(frozen=True)
class ComparedRow:
    """Messages of one kind along the same axes, planned and found.

    Attributes:
        kind: "all_gather" and so on.
        axes: Axes such as "data,model"; "any" for plans that name none.
        planned_runs: Number of collectives in one execution by the plan; not whole where a training plan computes a
            part of a stage's layers again.
        found_runs: Number in the program; None if a trip count is unknown.
        planned_bytes: Bytes that one device receives in one execution by the plan.
        found_bytes: Bytes that one device of the program sends, and receives, in one execution.
        at_least: Whether the program may send more, because a trip count or a size is unknown.
        extra_seconds: Seconds of the bytes above the plan, at the seconds per byte of the plan's messages along these
            axes (model); 0 where there are none, None where the plan has no such messages to derive it from.
    """

    kind: str
    axes: str
    planned_runs: float
    found_runs: int | None
    planned_bytes: float
    found_bytes: int
    at_least: bool
    extra_seconds: float | None

    @property
    def is_extra(self) -> bool:
        """Whether the program sends at least 1 % more than the plan."""
        return self.found_bytes > self.planned_bytes * _ROUNDING

    @property
    def is_missing(self) -> bool:
        """Whether the plan has messages of which the program has none."""
        return self.planned_runs > 0 and self.found_runs == 0


@public("artifex_devices.audit")
@dataclass(frozen=True, repr=False)
class Comparison(html.NotebookText):
    """A program beside a plan; `print` shows it.

    Attributes:
        name: Name of the program.
        rows: Messages by kind and axes, most extra bytes first.
    """

    name: str
    rows: tuple[ComparedRow, ...]

    @property
    def extra(self) -> tuple[ComparedRow, ...]:
        """The rows of which the program sends at least 1 % more than the plan."""
        return tuple(row for row in self.rows if row.is_extra)

    @property
    def missing(self) -> tuple[ComparedRow, ...]:
        """The rows of the plan that the program lacks."""
        return tuple(row for row in self.rows if row.is_missing)

    @property
    def extra_seconds(self) -> float:
        """Seconds of the bytes above the plan (model), where they are known."""
        return math.fsum(row.extra_seconds or 0.0 for row in self.rows)

    def __str__(self) -> str:
        """Returns a readable table."""
        return "\n  ".join([self._title(), *table_lines([_HEAD, *self._texts()], right=(2, 3, 4, 5, 6))])

    def __repr__(self) -> str:
        return f"<Comparison {self._title()}>"

    def _repr_html_(self) -> str:
        return html.page(self._title(), html.table(_HEAD, self._texts()))

    def _title(self) -> str:
        extra, missing = len(self.extra), len(self.missing)
        return printable(f"program {self.name} and its plan: {extra} extra, {missing} missing")

    def _texts(self) -> list[tuple[str, ...]]:
        return [
            (
                row.kind,
                printable(row.axes or "one device"),
                str(round(row.planned_runs, 2)),
                "?" if row.found_runs is None else str(row.found_runs),
                bytes_text(round(row.planned_bytes)),
                f"{'at least ' if row.at_least else ''}{bytes_text(row.found_bytes)}",
                "?" if row.extra_seconds is None else seconds_text(row.extra_seconds) if row.is_extra else "",
            )
            for row in self.rows
        ]


def compare(program: Program, plan: StepPlan | TrainingPlan | ReshardPlan) -> Comparison:
    """Compares the collectives of a program with those that a plan expects, by kind and mesh axes.

    Args:
        program: A result of `audit.program`, with the plan's mesh: of `plan_step` the mesh that it was given, of
            `plan_training` the axes "pipeline", "data", "context" and "tensor" that have more than one device, in this
            order. Messages between stages and along rings are permutes.
        plan: A result of `plan_step`, of `plan_training`, whose messages are `TrainingPlan.collectives`, or of
            `plan_reshard`, whose steps name no axes: then only kinds are compared.

    Returns:
        A Comparison; `print` shows it.

    Raises:
        TypeError: An argument has the wrong type.

    Example:
        >>> import artifex_devices as ad
        >>> from artifex_devices import audit
        >>> from artifex_devices.planner import plan_reshard
        >>> with ad.simulate(8):
        ...     mesh = ad.make_mesh((8,), ("x",))
        ...     plan = plan_reshard((64, 64), "float32", ad.NamedSharding(mesh, ad.P("x", None)),
        ...                         ad.NamedSharding(mesh, ad.P(None, None)), way="collectives")
        >>> gather = audit.Collective("all-gather", "all_gather", bytes=7 * 2048, axes=("x",))
        >>> program = audit.Program("HLO text", "step", 8, None, True, (("x", 8),), (gather,))
        >>> audit.compare(program, plan)
        <Comparison program step and its plan: 0 extra, 0 missing>
    """
    check_type(_OPERATION, "program", program, Program, "a Program", "write audit.program(compiled)")
    if not isinstance(plan, (StepPlan, TrainingPlan, ReshardPlan)):
        raise wrong_type(
            _OPERATION, "plan", plan, "a plan of plan_step, plan_training or plan_reshard", "write plan_step(...)"
        )
    has_axes = not isinstance(plan, ReshardPlan)
    planned: dict[tuple[str, str], list[tuple[float, float, float | None]]] = {}
    for kind, axes, *numbers in _planned(plan):
        planned.setdefault((kind, axes), []).append(tuple(numbers))  # type: ignore[arg-type]
    found: dict[tuple[str, str], list[Collective]] = {}
    for each in program.collectives:
        found.setdefault((each.kind, axes_text(each) if has_axes else _ANY), []).append(each)
    rows = []
    for kind, axes in dict.fromkeys([*planned, *found]):
        expected = planned.get((kind, axes), [])
        total = total_of(found.get((kind, axes), []))
        nbytes = math.fsum(runs * size for runs, size, _ in expected)
        extra = total.bytes - nbytes
        rate = _seconds_per_byte([each for key, list_ in planned.items() if key[1] == axes for each in list_])
        seconds = 0.0 if extra <= nbytes * (_ROUNDING - 1) else None if rate is None else extra * rate
        count = sum(runs for runs, *_ in expected)
        rows.append(ComparedRow(kind, axes, count, total.runs, nbytes, total.bytes, total.at_least, seconds))
    rows.sort(key=lambda row: (row.planned_bytes - row.found_bytes, row.kind, row.axes))
    return Comparison(program.name, tuple(rows))


def _planned(plan: StepPlan | TrainingPlan | ReshardPlan) -> Iterator[tuple[str, str, float, float, float | None]]:
    """Yields kind, axes, runs, bytes that one device receives in one run, and seconds of a run."""
    if isinstance(plan, ReshardPlan):
        for step in plan.steps:
            if step.move in _MOVES:
                seconds = None if step.estimate is None else step.estimate.seconds
                yield _MOVES[step.move], _ANY, 1, step.busiest_bytes, seconds
        return
    if isinstance(plan, TrainingPlan):
        for message in plan.collectives:
            kind = "collective_permute" if message.op == "send" else message.op
            seconds = message.seconds / message.count
            yield kind, ",".join(message.axes), message.count, message.bytes_sent, seconds
        return
    order = list(plan.mesh_shape)
    for each in plan.collectives:
        axes = ",".join(str(axis) for axis in sorted(each.axes, key=order.index))
        yield each.op, axes, each.count, each.bytes_received, each.estimate.seconds


def _seconds_per_byte(messages: list[tuple[float, float, float | None]]) -> float | None:
    nbytes = math.fsum(runs * size for runs, size, seconds in messages if seconds is not None)
    return (
        math.fsum(runs * seconds for runs, _, seconds in messages if seconds is not None) / nbytes if nbytes else None
    )
