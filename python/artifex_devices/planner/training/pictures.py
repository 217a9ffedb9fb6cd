# SPDX-License-Identifier: Apache-2.0
"""Pictures of plans of training runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from artifex_devices import _core, _planner
from artifex_devices._base.charts import axes_for
from artifex_devices._base.checks import check_choice
from artifex_devices._base.svg import Picture
from artifex_devices._base.text import bytes_text, seconds_text
from artifex_devices.planner.training.text import ways_text

if TYPE_CHECKING:
    from artifex_devices._base.charts import Axes
    from artifex_devices.planner.training.choices import TrainingSuggestions
    from artifex_devices.planner.training.values import TrainingPlan

PICTURES = ("waterfall", "memory", "schedule")
_MOST_TILES = 2**14
_KINDS = ("computation", "communication that is not hidden", "waiting and the rest")
_KIND_OF = {  # parts of a step that are not computation
    **dict.fromkeys(("tensor", "context", "expert", "pipeline", "data", "offload"), _KINDS[1]),
    **dict.fromkeys(("bubble", "fixed"), _KINDS[2]),
}
_SECONDS_FROM = "seconds: model, published rates with the factors of Efficiency"


def plan_svg(plan: TrainingPlan, kind: str, parts: dict[str, str], memory_parts: tuple[str, ...]) -> Picture:
    """Draws one of `PICTURES`."""
    check_choice("TrainingPlan.to_svg", "kind", kind, PICTURES)
    if kind == "memory":
        return _memory(plan, memory_parts)
    return _schedule(plan) if kind == "schedule" else _waterfall(plan, parts)


def _title(plan: TrainingPlan) -> str:
    return f"{plan.shape.name} on {plan.devices} devices of {plan.cluster.name}"


def _waterfall(plan: TrainingPlan, parts: dict[str, str]) -> Picture:
    bars = []
    for name, text in parts.items():
        value = plan.expected.parts[name]
        if value > 0:
            kind = _KINDS.index(_KIND_OF.get(name, _KINDS[0]))
            values = [value if i == kind else 0.0 for i in range(len(_KINDS))]
            shown = f"{seconds_text(value)}, {value / plan.seconds:.1%}"
            bars.append((name, values, [text] * len(_KINDS), shown, False))
    hidden = {name: value for name, value in plan.expected.hidden.items() if value > 0}
    for name, value in hidden.items():
        texts = [f"{name} communication behind computation"] * len(_KINDS)
        bars.append((f"hidden {name}", [0.0, value, 0.0], texts, seconds_text(value), True))
    notes = [_SECONDS_FROM, *(["dashed: communication that is hidden behind computation"] if hidden else [])]
    limit = plan.roofline.total
    title = f"{_title(plan)}: {seconds_text(plan.seconds)} a step, {plan.mfu:.1%} MFU"
    return Picture(_core._bar_chart_svg(title, list(_KINDS), bars, limit, "roofline", True, notes))


def _memory(plan: TrainingPlan, parts: tuple[str, ...]) -> Picture:
    numbered = list(enumerate(plan.stages))
    shown = numbered if len(numbered) <= 64 else [*numbered[:32], *numbered[-32:]]
    bars = []
    for number, stage in shown:
        values = [getattr(stage, name) for name in parts]
        texts = [f"{name} {bytes_text(value)}" for name, value in zip(parts, values, strict=True)]
        bars.append((f"stage {number}", list(map(float, values)), texts, bytes_text(stage.total), False))
    left = len(plan.stages) - len(shown)
    notes = [
        "bytes of each device of a stage (model)",
        *([f"{left} stages in the middle are left out"] if left else []),
    ]
    title = f"{_title(plan)}: memory by stage"
    return Picture(
        _core._bar_chart_svg(title, list(parts), bars, float(plan.available), "memory of a device", False, notes)
    )


def _schedule(plan: TrainingPlan) -> Picture:
    config = plan.config
    stages, chunks = config.pipeline, config.chunks
    most = max(1, _MOST_TILES // (2 * stages * chunks))
    count = min(plan.microbatches, most, max(2 * stages, 8))
    if chunks > 1:
        count = max(stages, count // stages * stages)
    forward = [stage.forward for stage in plan.stages]
    backward = [stage.backward for stage in plan.stages]
    tasks = _planner.pipeline_timeline(config.schedule, count, chunks, forward, backward)
    tiles = [
        (stage, 2 * (chunk % 4) + is_backward, start, end, str(microbatch + 1))
        for stage, microbatch, chunk, is_backward, start, end in tasks
    ]
    end = max(task[5] for task in tasks)
    busy = sum(task[5] - task[4] for task in tasks) / stages
    kinds = [
        f"{word}{f', chunk {chunk + 1}' if chunks > 1 else ''}"
        for chunk in range(min(chunks, 4))
        for word in ("forward", "backward")
    ]
    notes = [
        f"{count} of {plan.microbatches} microbatches; idle {1 - busy / end:.1%} of the time shown; "
        "messages take no time",
        _SECONDS_FROM,
    ]
    rows = [f"stage {i}" for i in range(stages)]
    return Picture(_core._schedule_svg(f"{_title(plan)}: {config.schedule}", rows, kinds, tiles, notes))


def plot_front(found: TrainingSuggestions, ax: Any) -> Axes:
    """Draws seconds over memory of the best configurations."""
    chosen = found.front or found.options or found.nearest
    if not chosen:
        raise ValueError(
            "TrainingSuggestions.plot: there are no configurations; expected one or more; change the batch or the "
            "pinned fields"
        )
    notes = ["no other configuration is better in seconds, memory and devices at once; seconds are of the model"]
    title = f"{found.shape.name} on {found.cluster.name}: seconds of a step over memory of a device"
    chart = axes_for("TrainingSuggestions.plot", ax, title, notes)
    chart.loglog()
    for devices in sorted({each.plan.devices for each in chosen}, reverse=True):
        plans = sorted((each.plan for each in chosen if each.plan.devices == devices), key=lambda plan: plan.seconds)
        points = [(plan.memory / 1e9, plan.seconds) for plan in plans]
        chart.plot(*zip(*points, strict=True), "o", label=f"{devices} devices")
        for i in {0, len(plans) - 1}:  # the fastest, and the one that needs the least memory
            chart.annotate(
                ways_text(plans[i].config), points[i], (6, 6), textcoords="offset points", fontsize="x-small"
            )
    chart.set_xlabel("GB of a device")
    chart.set_ylabel("seconds of a step")
    chart.legend(fontsize="small")
    chart.grid(alpha=0.3)
    return chart
