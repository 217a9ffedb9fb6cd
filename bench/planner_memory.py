# SPDX-License-Identifier: Apache-2.0
"""The part of docs/planner_accuracy.md that compares reserved memory with bench/published_memory.json."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artifex_devices import cluster, models, planner
from artifex_devices.planner import TrainingConfig, TrainingPlan
from artifex_devices.planner.training.efficiency_fit import quantile

HERE = Path(__file__).resolve().parent
DATA = json.loads((HERE / "published_memory.json").read_text(encoding="utf-8"))
TEXT = (HERE / "planner_memory.md").read_text(encoding="utf-8")
GIB = 2**30


@dataclass(frozen=True)
class MemoryCase:
    """A published figure with the plan of its run."""

    row: dict[str, Any]
    plan: TrainingPlan

    @property
    def available(self) -> float:
        """GiB of the device on which the run was measured."""
        size: float = self.row.get("device_gib", self.plan.available / GIB)
        return size

    @property
    def fits(self) -> bool:
        """Whether the planner says that it fits on that device."""
        return self.plan.needed <= self.available * GIB

    @property
    def error(self) -> float | None:
        """Relative error of the reserved bytes, or None where they are not published."""
        published = self.row.get("reserved_gib")
        return None if published is None else self.plan.reserved / GIB / published - 1


def memory_cases(**changes: object) -> list[MemoryCase]:
    """The cases of the file, with some fields of each configuration changed."""
    found = []
    for row in DATA["cases"]:
        described = {key: value for key, value in row["cluster"].items() if key != "kind"}
        machine = cluster.gpus(described.pop("chip"), **described)
        name = row["model"]
        shape = models.SHAPES.get(name) or models.TransformerShape(name=name, **DATA["models"][name])
        found.append(
            MemoryCase(row, planner.plan_training(shape, machine, TrainingConfig(**{**row["config"], **changes})))
        )
    return found


def errors_of(cases: list[MemoryCase], role: str) -> list[float]:
    """Absolute errors of the cases with a role."""
    return [abs(case.error) for case in cases if case.row["role"] == role and case.error is not None]


def verdict_of(case: MemoryCase) -> str:
    """What the planner says of a run on its device."""
    text = "fits" if case.fits else "does not fit"
    return f"{text}, close" if abs(case.plan.needed / (case.available * GIB) - 1) <= 0.1 else text


def memory_part() -> str:
    """The table of reserved memory."""
    cases = memory_cases()
    ratios = [case.row["reserved_gib"] * GIB / case.plan.memory for case in cases if case.row["role"] == "margin"]
    groups = [
        ("not used for a factor, with the framework", errors_of(cases, "held out")),
        ("not used for a factor, without a framework", errors_of(memory_cases(framework=None), "held out")),
        ("used for the factor of the allocator (m)", errors_of(cases, "margin")),
    ]
    out = [case for case in cases if not case.row["fits"]]
    refused = sum(not case.fits for case in out)
    lines = [
        TEXT.format(
            least=min(ratios), most=max(ratios), median=quantile(ratios, 0.5), refused=refused, out=len(out)
        ),
        "| rows | number | median error of the reserved bytes | 90th percentile |", "|---|---|---|---|",
    ]  # fmt: skip
    lines += [f"| {name} | {len(e)} | {quantile(e, 0.5):.1%} | {quantile(e, 0.9):.1%} |" for name, e in groups]
    lines += [
        "", "| run | published | before | allocated | reserved | error | needed | device | verdict | |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for case in cases:
        row, plan = case.row, case.plan
        error = "" if case.error is None else f"{round(100 * case.error):+d}%"
        numbers = [f"{number / GIB:.1f}" for number in (plan.memory, plan.reserved, plan.needed)]
        name = row["name"] + ("*" if "assumed" in row else "")
        lines.append(
            f"| {name} | {row['published']} | {row['before_gib']:.1f} | {numbers[0]} | {numbers[1]} | {error} | "
            f"{numbers[2]} | "
            f"{case.available:.0f} | {verdict_of(case)} | {'m' if row['role'] == 'margin' else ''} |"
        )
    lines += ["", "Sources of this table:", ""]
    lines += [
        f"- {source['title']}{': <' + source['address'] + '>' if source['address'] else ''}"
        for source in DATA["sources"].values()
    ]
    return "\n".join(lines) + "\n"
