# SPDX-License-Identifier: Apache-2.0
"""Pictures of plans of training runs."""

from __future__ import annotations

from collections.abc import Sequence

from artifex_devices import _planner
from artifex_devices._base.svg import Picture
from artifex_devices._base.text import bytes_text, seconds_text
from artifex_devices._core import internal
from artifex_devices.planner.training.config import TrainingConfig
from artifex_devices.planner.training.values import MEMORY_PARTS, TIME_PARTS, TrainingSeconds, TrainingStage

PICTURES = ("waterfall", "memory", "schedule")
_MOST_TILES = 2**14
_KINDS = ("computation", "communication that is not hidden", "waiting and the rest")
_KIND_OF = {  # parts of a step that are not computation
    **dict.fromkeys(("tensor", "context", "expert", "pipeline", "data", "offload"), _KINDS[1]),
    **dict.fromkeys(("bubble", "fixed"), _KINDS[2]),
}
_SECONDS_FROM = "seconds: model, published rates with the factors of Efficiency"


def waterfall_svg(title: str, expected: TrainingSeconds, roofline: float) -> Picture:
    """Draws the parts of a step of `expected` seconds next to a bound."""
    bars = []
    for name, text in TIME_PARTS.items():
        value = expected.parts[name]
        if value > 0:
            kind = _KINDS.index(_KIND_OF.get(name, _KINDS[0]))
            values = [value if i == kind else 0.0 for i in range(len(_KINDS))]
            shown = f"{seconds_text(value)}, {value / expected.total:.1%}"
            bars.append((name, values, [text] * len(_KINDS), shown, False))
    hidden = {name: value for name, value in expected.hidden.items() if value > 0}
    for name, value in hidden.items():
        texts = [f"{name} communication behind computation"] * len(_KINDS)
        bars.append((f"hidden {name}", [0.0, value, 0.0], texts, seconds_text(value), True))
    notes = [_SECONDS_FROM, *(["dashed: communication that is hidden behind computation"] if hidden else [])]
    return Picture(internal.bar_chart_svg(title, list(_KINDS), bars, roofline, "roofline", True, notes))


def memory_svg(title: str, stages: Sequence[TrainingStage], available: int) -> Picture:
    """Draws the memory of each stage by part."""
    numbered = list(enumerate(stages))
    shown = numbered if len(numbered) <= 64 else [*numbered[:32], *numbered[-32:]]
    bars = []
    for number, stage in shown:
        values = [getattr(stage, name) for name in MEMORY_PARTS]
        texts = [f"{name} {bytes_text(value)}" for name, value in zip(MEMORY_PARTS, values, strict=True)]
        bars.append((f"stage {number}", list(map(float, values)), texts, bytes_text(stage.total), False))
    left = len(stages) - len(shown)
    notes = [
        "bytes of each device of a stage (model)",
        *([f"{left} stages in the middle are left out"] if left else []),
    ]
    name = "memory of a device"
    return Picture(internal.bar_chart_svg(title, list(MEMORY_PARTS), bars, float(available), name, False, notes))


def schedule_svg(title: str, config: TrainingConfig, stages: Sequence[TrainingStage], microbatches: int) -> Picture:
    """Draws the passes of each stage over time."""
    chunks = config.chunks
    most = max(1, _MOST_TILES // (2 * len(stages) * chunks))
    count = min(microbatches, most, max(2 * len(stages), 8))
    if chunks > 1:
        count = max(len(stages), count // len(stages) * len(stages))
    forward = [stage.forward for stage in stages]
    backward = [stage.backward for stage in stages]
    tasks = _planner.pipeline_timeline(config.schedule, count, chunks, forward, backward)
    tiles = [
        (
            task["stage"],
            2 * (task["chunk"] % 4) + task["is_backward"],
            task["start"],
            task["end"],
            str(task["microbatch"] + 1),
        )
        for task in tasks
    ]
    end = max(task["end"] for task in tasks)
    busy = sum(task["end"] - task["start"] for task in tasks) / len(stages)
    kinds = [
        f"{word}{f', chunk {chunk + 1}' if chunks > 1 else ''}"
        for chunk in range(min(chunks, 4))
        for word in ("forward", "backward")
    ]
    notes = [
        f"{count} of {microbatches} microbatches; idle {1 - busy / end:.1%} of the time shown; messages take no time",
        "numbers in the bars: the microbatch of each pass",
        _SECONDS_FROM,
    ]
    rows = [f"stage {i}" for i in range(len(stages))]
    return Picture(internal.schedule_svg(title, rows, kinds, tiles, notes))
