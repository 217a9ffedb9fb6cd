# SPDX-License-Identifier: Apache-2.0
"""Compares plan_inference with the measured decoding of bench/published_decode.json; bench/planner_accuracy.py runs it.

Of the runs of each chip, in the order of the file, each third one is held out: no factor is fitted to it. Three
factors are fitted to all other runs together: `stream`, `decode_layer_seconds` and `decode_expert_seconds`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from artifex_devices import cluster, models, planner
from artifex_devices.planner import Efficiency, InferencePlan
from artifex_devices.planner.training.efficiency_fit import quantile

ROOT = Path(__file__).resolve().parent.parent
ERRORS = ROOT / "python" / "artifex_devices" / "planner" / "inference" / "published.py"
DATA = json.loads((Path(__file__).resolve().parent / "published_decode.json").read_text(encoding="utf-8"))
CHIPS = {"h100": "H100", "h200": "H200", "a100": "A100 SXM 80GB", "a100-40gb": "A100 SXM 40GB"}  # names


@cache
def machine(chip: str, devices: int) -> cluster.Cluster:
    """So many GPUs of a node."""
    return cluster.gpus(chip, nodes=1, chips_per_node=devices)


@dataclass(frozen=True)
class DecodeRun:
    """A measured run: its row of the file, and whether it is held out."""

    row: dict[str, Any]
    is_held_out: bool

    @property
    def cluster(self) -> cluster.Cluster:
        """The GPUs of the run."""
        return machine(self.row["chip"], self.row["tensor"])

    @property
    def name(self) -> str:
        """What ran where."""
        row = self.row
        star = "*" if "assumed" in row else ""
        return f"{row['model']} {row['format']}, {row['tensor']} {row['chip']} [{row['source']}]{star}"

    @property
    def has_experts(self) -> bool:
        """Whether the model has experts."""
        return shape_of(self.row["model"]).experts > 0

    def plan(self, efficiency: Efficiency | None = None) -> InferencePlan:
        """The plan of the run."""
        arguments = dict(DATA["formats"][self.row["format"]])
        shape = shape_of(self.row["model"])
        if "quantized_bytes" in arguments:
            kinds = tuple(arguments.pop("quantized_kinds"))
            shape = replace(shape, quantized_bytes=arguments.pop("quantized_bytes"), quantized_kinds=kinds)
        sizes = {key: self.row[key] for key in ("batch", "prompt", "output", "tensor")}
        return planner.plan_inference(shape, self.cluster, **sizes, **arguments, efficiency=efficiency)

    def error(self, plan: InferencePlan) -> float:
        """Predicted time / measured time - 1."""
        published, seconds = self.row["published"], plan.expected
        if self.row["unit"] == "ms/token":
            return seconds.decode * 1e3 / published - 1
        if self.row["unit"] == "ms":
            return seconds.request * 1e3 / published - 1
        devices = self.row["tensor"] if self.row["unit"] == "tokens/s/GPU" else 1
        return float(published * devices / seconds.tokens_per_second - 1)


@cache
def shape_of(name: str) -> models.TransformerShape:
    """The shape of a model of the file, or of `models.SHAPES`."""
    if name in models.SHAPES:
        return models.SHAPES[name]
    return models.TransformerShape(name=name, **DATA["models"][name])


def decode_runs(*, outside: bool = False) -> list[DecodeRun]:
    """The runs in the order of the file: those that the planner describes, or those outside."""
    counts: dict[str, int] = {}
    runs = []
    for row in DATA["runs"]:
        if "outside" in row:
            if outside:
                runs.append(DecodeRun(row, True))
            continue
        number = counts[row["chip"]] = counts.get(row["chip"], 0) + 1
        if not outside:
            runs.append(DecodeRun(row, number % 3 == 0))
    return runs


def fit_decode() -> tuple[float, float, float]:
    """Finds the factors with the smallest mean absolute logarithm of predicted / measured on runs not held out."""
    runs = [run for run in decode_runs() if not run.is_held_out]
    defaults = {run.row["chip"]: Efficiency.of(run.cluster) for run in runs}

    def loss(stream: float, layer: float, expert: float) -> float:
        changed = {"stream": stream, "decode_layer_seconds": layer, "decode_expert_seconds": expert}
        factors = {chip: each.replaced(**changed) for chip, each in defaults.items()}
        return sum(abs(math.log1p(run.error(run.plan(factors[run.row["chip"]])))) for run in runs)

    stream, layer, expert = 0.85, 6e-5, 5e-5
    for _ in range(3):
        stream = least(partial(loss, layer=layer, expert=expert), 0.6, 1.0)
        layer = least(partial(loss, stream, expert=expert), 0.0, 2e-4)
        expert = least(partial(loss, stream, layer), 0.0, 3e-4)
    return stream, layer, expert


def least(function: Callable[[float], float], low: float, high: float) -> float:
    """Returns where a function with one valley between `low` and `high` is least, to 1/1000 of the interval."""
    part = (math.sqrt(5) - 1) / 2
    width = high - low
    points = [high - part * (high - low), low + part * (high - low)]
    values = [function(each) for each in points]
    while high - low > width / 1000:
        if values[0] < values[1]:
            high = points[1]
            points = [high - part * (high - low), points[0]]
            values = [function(points[0]), values[0]]
        else:
            low = points[0]
            points = [points[1], low + part * (high - low)]
            values = [values[1], function(points[1])]
    return (low + high) / 2


def decode_factor_lines() -> list[str]:
    """The constants of efficiency.cpp."""
    stream, layer, expert = fit_decode()
    count = sum(not run.is_held_out for run in decode_runs())
    return [
        f"constexpr double kFittedStream = {stream:.3g};",
        f"constexpr double kFittedDecodeLayer = {layer:.3g};",
        f"constexpr double kFittedDecodeExperts = {expert:.3g};",
        f"constexpr int kDecodeRuns = {count};",
    ]


@dataclass(frozen=True)
class DecodeOutcome:
    """A run with the errors of the planner's factors."""

    run: DecodeRun
    plan: InferencePlan
    start: float  # error with published factors
    fitted: float  # error with the default ones


def decode_outcomes(*, outside: bool = False) -> list[DecodeOutcome]:
    """Every run, with the published and with the default factors."""
    found = []
    for run in decode_runs(outside=outside):
        plan = run.plan()
        start = run.error(run.plan(Efficiency.published(run.cluster)))
        found.append(DecodeOutcome(run, plan, start, run.error(plan)))
    return found


def decode_errors_module() -> str:
    """The text of inference/published.py with the current rows: errors of the held-out runs, by chip and kind."""
    rows = []
    found = [each for each in decode_outcomes() if each.run.is_held_out]
    for chip, has_experts in dict.fromkeys((each.run.row["chip"], each.run.has_experts) for each in found):
        errors = [
            abs(each.fitted) for each in found if (each.run.row["chip"], each.run.has_experts) == (chip, has_experts)
        ]
        median, tail = quantile(errors, 0.5), quantile(errors, 0.9)
        rows.append(f'    ("{CHIPS[chip]}", {has_experts}, {len(errors)}, {median:.3f}, {tail:.3f}),\n')
    start, row, rest = ERRORS.read_text(encoding="utf-8").partition("float], ...] = (\n")
    return start + row + "".join(sorted(rows)) + ")\n" + rest.partition("\n)\n")[2]


def decode_part(summary: Callable[[list[float]], str], percent: Callable[[float], str]) -> str:
    """The section of the page."""
    found = decode_outcomes()
    groups = [("all", found)]
    groups += [(text, [each for each in found if each.run.is_held_out == is_held])
               for text, is_held in (("fitted", False), ("held out", True))]  # fmt: skip
    for chip in dict.fromkeys(each.run.row["chip"] for each in found):
        for text, has_experts in (("dense models", False), ("models with experts", True)):
            some = [each for each in found if (each.run.row["chip"], each.run.has_experts) == (chip, has_experts)]
            groups.append((f"{chip}, {text}, held out", [each for each in some if each.run.is_held_out]))
    groups += [(key, [each for each in found if each.run.row["source"] == key]) for key in DATA["sources"]]
    lines = []
    for name, some in groups:
        if some:
            fitted = summary([each.fitted for each in some]).partition(" | ")[2]
            lines.append(f"| {name} | {summary([each.start for each in some])} | {fitted} |")
    outside = decode_outcomes(outside=True)
    held = [abs(each.fitted) for each in found if each.run.is_held_out]
    every = held + [abs(each.fitted) for each in outside]
    reasons = dict.fromkeys(f"{each.run.row['source']}: {each.run.row['outside']}" for each in outside)
    sources = [f"- {key}: {source['title']}: <{source['address']}>" for key, source in DATA["sources"].items()]
    return "\n".join([
        "| runs | number | median, published factors | 90th percentile | median, fitted | 90th percentile |",
        "|---|---|---|---|---|---|", *lines, "",
        *run_lines(found, percent), "",
        f"On the {len(held)} held-out runs the median error is {quantile(held, 0.5):.1%} and the 90th percentile is "
        f"{quantile(held, 0.9):.1%}. The planner does not describe {len(outside)} other runs, because their kernels "
        "read the cache once for each query head. If they are included, the numbers are "
        f"{quantile(every, 0.5):.1%} and {quantile(every, 0.9):.1%}.", "",
        *(f"- {reason}." for reason in reasons), "",
        *run_lines(outside, percent), "", "Sources:", "", *sources,
    ])  # fmt: skip


def run_lines(found: list[DecodeOutcome], percent: Callable[[float], str]) -> list[str]:
    """The table of runs."""
    lines = [
        "| run | batch | tokens in, out | published | bound | predicted | error | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for each in found:
        row = each.run.row
        published = f"{row['published']:,} {row['unit']}"
        predicted = row["published"] * (1 + each.fitted)
        bound = each.run.error(replace(each.plan, expected=each.plan.roofline)) + 1
        if not row["unit"].startswith("ms"):
            predicted, bound = row["published"] / (1 + each.fitted), 1 / bound
        bound *= row["published"]
        lines.append(
            f"| {each.run.name} | {row['batch']} | {row['prompt']}, {row['output']} | {published} | {bound:,.4g} | "
            f"{predicted:,.4g} | {percent(each.fitted)} | {'h' if each.run.is_held_out else ''} |"
        )
    return lines
