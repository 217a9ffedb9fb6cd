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


def fits_text(needed: int, available: int, *, close: bool) -> str:
    """Formats whether a plan fits: "fits", "fits, but is close (within 10 %, the error of the model)"."""
    text = "fits" if needed <= available else "does not fit"
    return f"{text}, but is close (within 10 %, the error of the model)" if close else text


def margin_text(memory: int, reserved: int, runtime: int) -> str:
    """Formats the parts of the needed bytes: "50.0 GiB allocated, 5.0 GiB cached by the allocator"."""
    parts = [f"{bytes_text(memory)} allocated"]
    if reserved > memory:
        parts.append(f"{bytes_text(reserved - memory)} cached by the allocator")
    if runtime:
        parts.append(f"{bytes_text(runtime)} for the runtime and communicators")
    return ", ".join(parts)
