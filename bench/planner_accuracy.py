# SPDX-License-Identifier: Apache-2.0
"""Writes docs/planner_accuracy.md, which compares plan_training with the measured runs of bench/published_runs.json.

decode_accuracy.py compares plan_inference with bench/published_decode.json. The errors that plans show are written too:
the rows of published.py in python/artifex_devices/planner/training and in python/artifex_devices/planner/inference.

`split` of the data states which runs are held out: no factor is fitted to them.

Example:
    python bench/planner_accuracy.py            # write
    python bench/planner_accuracy.py --check    # status 1 if a committed file differs from the data
    python bench/planner_accuracy.py --factors  # print the rows of cpp/artifex_planner/cost/efficiency.cpp
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import decode_accuracy
from artifex_devices import _planner, cluster, models, planner
from artifex_devices.planner import Efficiency, EfficiencyFit, TrainingConfig, TrainingPlan
from artifex_devices.planner.training.efficiency_fit import quantile
from artifex_devices.planner.training.published import RunKind, run_kind
from planner_memory import memory_part

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "planner_accuracy.md"
ERRORS = HERE.parent / "python" / "artifex_devices" / "planner" / "training" / "published.py"
TEXT = (HERE / "planner_accuracy.md").read_text(encoding="utf-8")
DATA = json.loads((HERE / "published_runs.json").read_text(encoding="utf-8"))
COMPILED = json.loads((HERE / "compiled_memory.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Run:
    """A measured run: its row of the file, its chip, and whether it is held out."""

    row: dict[str, Any]
    chip: str
    kind: RunKind
    is_held_out: bool

    @property
    def framework(self) -> str:
        """Program that trained the model."""
        return str(DATA["sources"][self.row["source"]]["framework"])

    def plan(self, efficiency: Efficiency | None = None) -> TrainingPlan:
        """The plan, with the measured seconds."""
        config = TrainingConfig(**self.row["config"])
        return planner.plan_training(
            shape_of(self.row["model"]), cluster_of(self.row["cluster"]), config,
            efficiency=efficiency, measured=self.row["seconds"],
        )  # fmt: skip


def shape_of(name: str) -> models.TransformerShape:
    """The shape of a model of the file, or of `models.SHAPES`."""
    if name in models.SHAPES:
        return models.SHAPES[name]
    return models.TransformerShape(name=name, **DATA["models"][name])


def cluster_of(described: dict[str, Any]) -> cluster.Cluster:
    """The cluster of a run."""
    if described["kind"] == "tpu":
        return cluster.tpu(described["chip"], described["shape"], slices=described["slices"])
    more = {key: described[key] for key in ("network_bandwidth", "chips_per_node") if key in described}
    return cluster.gpus(described["chip"], nodes=described["nodes"], **more)


def run_of(row: dict[str, Any]) -> Run:
    """A row with what follows from it; held out."""
    machine = cluster_of(row["cluster"])
    kind = run_kind(shape_of(row["model"]), machine, TrainingConfig(**row["config"]))
    return Run(row, row["cluster"]["chip"], kind, True)


def all_runs() -> list[Run]:
    """The runs in the order of the file, without those outside the model."""
    counts: dict[object, int] = {}
    runs = []
    for row in DATA["runs"]:
        if row.get("outside"):
            continue
        run = run_of(row)
        is_new = row.get("set") == "2026"
        key = (run.kind.chip, run.kind.kind.partition(",")[0]) if is_new else run.chip
        number = counts[key] = counts.get(key, 0) + 1
        runs.append(replace(run, is_held_out=row.get("held_out", number % (2 if is_new else 3) == 0)))
    return runs


@dataclass(frozen=True)
class Outcome:
    """A run with the seconds that the planner gives for it."""

    run: Run
    roofline: float
    start: float
    fitted: float

    def error(self, which: str) -> float:
        """Relative error of "roofline", "start" or "fitted"."""
        ours: float = getattr(self, which)
        return ours / float(self.run.row["seconds"]) - 1


def fits() -> dict[str, EfficiencyFit]:
    """The fit of each chip to its runs that are not held out, from the published factors."""
    groups: dict[str, list[TrainingPlan]] = {}
    for run in all_runs():
        if not run.is_held_out:
            groups.setdefault(CHIPS.get(run.chip, run.chip), []).append(run.plan())
    return {name: fit_of(plans) for name, plans in groups.items()}


def fit_of(plans: list[TrainingPlan]) -> EfficiencyFit:
    """The fit to plans of chips with the same processors, from the published factors of the first."""
    start = Efficiency.published(plans[0].cluster)
    steps = [
        (vars(plan.model), plan.cluster, plan.config._described(plan.devices), float(plan.measured or 0))
        for plan in plans
    ]
    found = _planner.fit_training(steps, start._described())
    factors = start._fitted(found["efficiency"], found["fitted"])
    return EfficiencyFit(factors, found["fitted"], found["predicted"], tuple(step[3] for step in steps))


def outcomes(runs: list[Run] | None = None) -> list[Outcome]:
    """Every run, with the published and with the default factors."""
    found = []
    for run in runs or all_runs():
        plan = run.plan()
        start = run.plan(Efficiency.published(plan.cluster)).expected.total
        found.append(Outcome(run, plan.roofline.total, start, plan.expected.total))
    return found


def collective_rows() -> list[tuple[dict[str, Any], float, float]]:
    """Each measured collective with its seconds and ours."""
    rows = []
    for row in DATA["collectives"]:
        n = row["devices"]
        moved = row["bytes"] * (n - 1) / n * (2 if row["op"] == "all_reduce" else 1)
        kind = {"kind": "tpu", "slices": 1} if "shape" in row else {"kind": "gpus"}
        machine = cluster_of({**kind, **row})
        factors = Efficiency.published(machine)
        if row.get("algorithm") == "Ring":
            factors = factors.replaced(nvls=1e-6)  # as the measurement, not in the switch
        ours = _planner.training_collective_seconds(row["op"], row["bytes"], machine, n, factors._described())
        rows.append((row, moved / row["busbw"], ours))
    return rows


def percent(value: float) -> str:
    """A relative error as text."""
    return f"{value:+.0%}" if abs(value) >= 0.005 else "0%"


def summary(errors: list[float]) -> str:
    """Number, median and 90th percentile of absolute errors, as cells of a table."""
    if not errors:
        return "0 | | "
    sizes = [abs(error) for error in errors]
    return f"{len(sizes)} | {quantile(sizes, 0.5):.1%} | {quantile(sizes, 0.9):.1%}"


def chart(found: list[Outcome]) -> str:
    """Predicted over measured of the held-out runs of each kind, as text: one digit is so many runs."""
    least, columns = 0.4, 49
    lines = [f"{'':38} 0.4         0.63         1           1.6         2.5"]
    for kind in sorted({each.run.kind for each in found if each.run.is_held_out}, key=str):
        counts = [0] * columns
        for each in found:
            if each.run.kind == kind and each.run.is_held_out:
                ratio = min(max(1 + each.error("fitted"), least), 1 / least)
                counts[round((columns - 1) * (1 - math.log(ratio, least)) / 2)] += 1
        cells = [str(min(count, 9)) if count else "|" if i == columns // 2 else "." for i, count in enumerate(counts)]
        lines.append(f"{kind!s:38} {''.join(cells)}")
    return "\n".join(lines)


GOALS = {  # median and 90th percentile
    "dense": (0.07, 0.20), "experts": (0.15, 0.40), "context-parallel": (0.15, 0.35), "Blackwell": (0.12, 0.30)
}  # fmt: skip


def goals(found: list[Outcome]) -> str:
    """The table of held-out errors beside the goals; Blackwell counts apart."""
    lines = ["| held-out runs | number | median | goal | 90th percentile | goal |", "|---|---|---|---|---|---|"]
    for name, (median, tail) in GOALS.items():
        sizes = [
            abs(each.error("fitted"))
            for each in found
            if each.run.is_held_out
            and name == ("Blackwell" if each.run.kind.chip == "B200" else each.run.kind.kind.partition(",")[0])
        ]
        lines.append(
            f"| {name} | {len(sizes)} | {quantile(sizes, 0.5):.1%} | {median:.0%} | "
            f"{quantile(sizes, 0.9):.1%} | {tail:.0%} |"
        )
    return "\n".join(lines)


def page() -> str:
    """The text of the page."""
    found = outcomes()
    groups = [("all", found), ("fitted", [each for each in found if not each.run.is_held_out])]
    groups += [("held out", [each for each in found if each.run.is_held_out])]
    kinds = sorted({each.run.kind for each in found if each.run.is_held_out}, key=str)
    groups += [
        (f"{kind}, held out", [each for each in found if each.run.kind == kind and each.run.is_held_out])
        for kind in kinds
    ]
    frameworks = dict.fromkeys(each.run.framework for each in found)
    groups += [(name, [each for each in found if each.run.framework == name]) for name in frameworks]
    lines = []
    for name, some in groups:
        if some:
            start = summary([each.error("start") for each in some])
            fitted = summary([each.error("fitted") for each in some]).partition(" | ")[2]
            lines.append(f"| {name} | {start} | {fitted} |")
    held = [abs(each.error("fitted")) for each in found if each.run.is_held_out]
    median, tail = quantile(held, 0.5), quantile(held, 0.9)
    verdict = (
        f"On all {len(held)} held-out runs the median error is {median:.1%} and the 90th percentile is {tail:.1%}."
    )
    outside = outside_runs()
    every = held + [abs(each.error("fitted")) for each in outside]
    verdict += (
        f" If the {len(outside)} runs that the model does not describe are included, they are "
        f"{quantile(every, 0.5):.1%} and {quantile(every, 0.9):.1%}."
    )
    return TEXT.format(
        runs=len(found), collectives=len(DATA["collectives"]), verdict=verdict, table="\n".join(lines),
        chart=chart(found), goals=goals(found), median=median, tail=tail, held=len(held), runs_part=runs_part(found),
        outside_part=table_of(outside),
        factors_part=factors_part(), collectives_part=collectives_part(), compiled_part=compiled_part(),
        decode_part=decode_accuracy.decode_part(summary, percent),
        decode_runs=len(decode_accuracy.decode_runs()),
        memory_part=memory_part(),
        sources_part=sources_part(),
    )  # fmt: skip


def runs_part(found: list[Outcome]) -> str:
    """The table of runs."""
    lines = [
        "## Runs", "",
        '"Bound" is the roofline: the time at published rates without losses. "h" marks held-out runs.', "",
    ]  # fmt: skip
    return "\n".join(lines) + "\n" + table_of(found)


def outside_runs() -> list[Outcome]:
    """The runs that the model does not describe; they are in no table of errors."""
    return outcomes([run_of(row) for row in DATA["runs"] if row.get("outside")])


def table_of(found: list[Outcome]) -> str:
    """Rows of measured and predicted seconds."""
    lines = [
        "| run | kind | framework | published | measured s | bound s | published factors | error | fitted | error | |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for each in found:
        row = each.run.row
        name = row["name"] + ("*" if "assumed" in row else "")
        lines.append(
            f"| {name} | {each.run.kind.kind}, {each.run.kind.precision} | {each.run.framework} | {row['published']} | "
            f"{row['seconds']:.4g} | {each.roofline:.4g} | {each.start:.4g} | "
            f"{percent(each.error('start'))} | {each.fitted:.4g} | {percent(each.error('fitted'))} | "
            f"{'h' if each.run.is_held_out else ''} |"
        )
    return "\n".join(lines) + "\n"


FITTED = (
    "matmul", "matmul_float8", "attention_forward", "attention_backward", "memory", "links", "network", "layer_seconds",
    "step_seconds", "grouped", "dispatch", "expert_seconds",
)  # fmt: skip
CHIPS = {  # names in efficiency.cpp; chips with the same processors have one row
    "h100": "H100", "h200": "H100", "h800": "H100", "b200": "B200", "gb200": "B200", "a100": "A100 SXM 80GB",
    "a100-40gb": "A100 SXM 40GB",
}  # fmt: skip


def fitted_rows() -> list[str]:
    """Rows of the table of efficiency.cpp."""
    rows = []
    for chip, fit in fits().items():
        values = [f"{getattr(fit.efficiency, name):.3g}" if name in fit.fitted else "-1" for name in FITTED]
        rows.append(f'    {{"{chip}", {len(fit.predicted)}, {{{", ".join(values)}}}}},')
    return sorted(rows)


def errors_module() -> str:
    """The text of training/published.py with the current rows: errors of held-out runs by kind."""
    groups: dict[tuple[str, str, str], list[Outcome]] = {}
    for each in outcomes():
        kind = each.run.kind
        if each.run.is_held_out:
            for chip in (kind.chip, ""):
                groups.setdefault((chip, kind.kind, kind.precision), []).append(each)
    rows = []
    for key, held in groups.items():
        sizes = [[abs(each.error(which)) for each in held] for which in ("start", "fitted")]
        texts = [f"({quantile(each, 0.5):.3f}, {quantile(each, 0.9):.3f})" for each in sizes]
        names = ", ".join(f'"{name}"' for name in key)
        rows.append(f"    ({names}, {len(held)}, {', '.join(texts)}),\n")
    start, row, rest = ERRORS.read_text(encoding="utf-8").partition("...] = (\n")
    return start + row + "".join(sorted(rows)) + ")\n\n" + rest.partition(")\n\n")[2]


def factors_part() -> str:
    """The table of fitted factors."""
    lines = [
        "## Fitted factors",
        "",
        "Each cell shows the published factor, an arrow and the fitted factor. A dash means that the runs do not "
        "depend on the factor.",
        "",
    ]
    lines += [f"| chip | runs | {' | '.join(f'`{name}`' for name in FITTED)} |", f"|---|---|{'---|' * len(FITTED)}"]
    machines: dict[str, cluster.Cluster] = {}
    for run in all_runs():
        if not run.is_held_out:
            machines.setdefault(CHIPS.get(run.chip, run.chip), cluster_of(run.row["cluster"]))
    for chip, fit in fits().items():
        machine = machines[chip]
        start, fitted = Efficiency.published(machine), Efficiency.of(machine)
        is_fitted = {name: fitted.sources[name] != start.sources[name] for name in FITTED}
        cells = [
            f"{getattr(start, name):.3g} → {getattr(fitted, name):.3g}" if is_fitted[name] else "-" for name in FITTED
        ]
        lines.append(f"| {chip} | {len(fit.predicted)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def collectives_part() -> str:
    """The table of collectives."""
    lines = [
        "## Collectives", "",
        "The table compares the planner, with published factors, with measurements by nccl-tests, by "
        "`all_reduce_bench.py` and of gathers on TPUs. Some of its rows determine a factor: the all-reduces on 8 H200 "
        "that the switch computes (NVLS) determine `links_half_bytes` and `nvls` of GPUs, and the two gathers "
        "determine `links_half_bytes` of TPUs. No other row is used for a factor. On A100, 1 MiB took as long as 4 "
        "MiB; the planner has no such fixed cost.", "",
        "| collective | devices | bytes | algorithm | measured s | planner s | error |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    errors = []
    for row, measured, ours in collective_rows():
        errors.append(ours / measured - 1)
        lines.append(
            f"| {row['op']} | {row['devices']} x {row['chip']} | {row['bytes']:,} | {row.get('algorithm', '')} | "
            f"{measured:.3g} | {ours:.3g} | {percent(errors[-1])} |"
        )
    rows = [row for row, _, _ in collective_rows()]
    is_source = [row.get("algorithm") == "NVLS" or "shape" in row for row in rows]
    lines += ["", "| rows | number | median | 90th percentile |", "|---|---|---|---|"]
    lines.append(f"| all | {summary(errors)} |")
    lines.append(f"| used for a factor | {summary([e for e, own in zip(errors, is_source, strict=True) if own])} |")
    others = [e for e, own in zip(errors, is_source, strict=True) if not own]
    lines.append(f"| not used for a factor | {summary(others)} |")
    return "\n".join(lines) + "\n"


def compiled_part() -> str:
    """The table of steps that XLA compiled."""
    lines = [
        "### Compiled steps", "",
        f"XLA (JAX {COMPILED['jax']}, CPU devices) reports how much memory a compiled training step needs. The model "
        "is a transformer of 32 layers with the proportions of Llama 3 8B: embedding 256, MLP 896, 4 heads of 64, "
        "vocabulary 8,192. Each device has 2 sequences of 128 tokens. 'Twice the sizes' means embedding 512, MLP "
        "1,792, 8 heads, vocabulary 16,384 and 256 tokens. The dtype is float32 unless the row names another. The "
        "optimizer is AdamW, and flash attention is off. `tests/oracle/test_memory.py` compiles the steps and fails "
        "if XLA or the planner gives another number.", "",
        "Arguments are parameters, optimizer state and batch; XLA and the planner count the same bytes. Temporaries "
        "are gradients, activations and the working memory of one layer.", "",
        "| step | arguments, MB | temporaries by XLA, MB | by the planner, MB | error | error of all memory |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, row in COMPILED["rows"].items():
        total, own = (row[prefix + "arguments"] + row[prefix + "temporaries"] for prefix in ("", "planned_"))
        numbers = [row[key] / 1e6 for key in ("arguments", "temporaries", "planned_temporaries")]
        error = numbers[2] / numbers[1] - 1
        lines.append(
            f"| {name} | {' | '.join(f'{number:.1f}' for number in numbers)} | {error:+.1%} | {own / total - 1:+.1%} |"
        )
    return "\n".join(lines) + "\n"


def sources_part() -> str:
    """Sources of runs and collectives."""
    lines = ["## Sources", ""]
    lines += [f"- {source['title']}: <{source['address']}>" for source in DATA["sources"].values()]
    lines += ["", "How the seconds of a step follow from the published figure:", ""]
    lines += [f"- {name}: {text}." for name, text in DATA["conversions"].items()]
    return "\n".join(lines)


def main() -> int:
    """Writes or checks the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit with status 1 if a file differs from the data")
    parser.add_argument("--factors", action="store_true", help="print the rows of efficiency.cpp")
    arguments = parser.parse_args()
    if arguments.factors:
        print("\n".join([*fitted_rows(), *decode_accuracy.decode_factor_lines()]))
        return 0
    texts = {
        PAGE: page(), ERRORS: errors_module(), decode_accuracy.ERRORS: decode_accuracy.decode_errors_module(),
    }  # fmt: skip
    if not arguments.check:
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
        return 0
    stale = [path for path, text in texts.items() if path.read_text(encoding="utf-8") != text]
    for path in stale:
        print(f"planner_accuracy: {path.relative_to(HERE.parent)} differs from the data", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
