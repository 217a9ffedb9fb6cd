# SPDX-License-Identifier: Apache-2.0
"""The parts of a step and of a device's memory as text."""

from __future__ import annotations

from artifex_devices._base.text import bytes_text, seconds_text
from artifex_devices.planner.training.values import MEMORY_PARTS, TIME_PARTS, TrainingSeconds, TrainingStage

WATERFALL_HEAD = ("part of a step", "expected", "bound", "share")


def waterfall_rows(expected: TrainingSeconds, bound: TrainingSeconds) -> list[tuple[str, ...]]:
    """Formats the parts of a step that take time, with their share of the expected seconds."""
    return [
        (text, seconds_text(value), seconds_text(bound.parts[name]), f"{value / expected.total:.1%}")
        for name, text in TIME_PARTS.items()
        if (value := expected.parts[name]) > 0 or bound.parts[name] > 0
    ]


def hidden_text(seconds: TrainingSeconds) -> str:
    """Formats the communication behind computation."""
    texts = (f"{name} {seconds_text(value)}" for name, value in seconds.hidden.items() if value > 0)
    return ", ".join(texts) or "nothing"


def memory_text(stage: TrainingStage) -> str:
    """Formats the bytes of a device by kind."""
    return ", ".join(f"{name} {bytes_text(getattr(stage, name))}" for name in MEMORY_PARTS if getattr(stage, name))
