# SPDX-License-Identifier: Apache-2.0
"""Profile: seconds of a training step on one device, by kind of operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.text import seconds_text
from artifex_devices.planner.profile.kinds import KINDS
from artifex_devices.planner.report import Report, Summary, picked

_SHOWN = 10
_MAX_NAME = 60


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False, repr=False)
class Profile(Report):
    """Seconds of a training step on one device, by kind of operation; `print` shows them.

    Kinds are "products", "attention_forward", "attention_backward", "attention" (of an unknown direction),
    "elementwise" (limited by the memory), "other" (names that no rule knows), "all_gather", "reduce_scatter",
    "all_reduce", "all_to_all", "send" and "host" (copies between host and device).

    Attributes:
        source: Name of the file.
        device: The device.
        devices: All devices of the trace.
        steps: Number of steps.
        steps_from: Where this number is from.
        seconds: Seconds of a step: from the first operation to the last one, over the steps.
        busy: Seconds of a step while operations of a kind run, by kind. Operations of one kind that run at the same
            time count once.
        alone: The part of these while no operation of an earlier kind runs: for messages, the part not hidden behind
            computation. With `idle` it sums to `seconds`.
        idle: Seconds of a step without an operation.
        operations: Number of operations in all steps.
        unknown: Names that match no rule, with their seconds in a step, longest first.
        notes: Facts that are missing from the trace.
    """

    source: str
    device: str
    devices: tuple[str, ...]
    steps: int
    steps_from: str
    seconds: float
    busy: Mapping[str, float]
    alone: Mapping[str, float]
    idle: float
    operations: int
    unknown: Mapping[str, float]
    notes: tuple[str, ...]

    def _summary(self) -> Summary:
        of = f" of {len(self.devices)} devices" if len(self.devices) > 1 else ""
        facts = [
            ("device", f"{self.device}{of}"),
            ("steps", f"{self.steps} [{self.steps_from}]"),
            ("step", f"{seconds_text(self.seconds)} from the first operation to the last one, over the steps"),
            ("alone", "without an operation of a kind above it; with idle it sums to the step"),
            *(("note", note) for note in self.notes),
        ]
        rows = [
            (kind, seconds_text(self.busy[kind]), seconds_text(self.alone[kind]), text)
            for kind, text in KINDS.items()
            if self.busy[kind] > 0
        ]
        rows.append(("idle", "", seconds_text(self.idle), "no operation"))
        shown = list(self.unknown.items())[:_SHOWN]
        rows += [("", seconds_text(seconds), "", f"other: {_short(name)}") for name, seconds in shown]
        if len(self.unknown) > _SHOWN:
            rest = sum(list(self.unknown.values())[_SHOWN:])
            rows.append(("", seconds_text(rest), "", f"other: {len(self.unknown) - _SHOWN} more names"))
        return Summary(f"profile {self.source}", facts, ("kind", "busy", "alone", ""), rows)

    def _content(self) -> dict[str, object]:
        names = ("source", "device", "devices", "steps", "steps_from", "seconds", "idle", "operations", "notes")
        mappings = {name: dict(getattr(self, name)) for name in ("busy", "alone", "unknown")}
        return {"kind": "profile", **picked(self, *names), **mappings}

    def __repr__(self) -> str:
        return f"<Profile: {self.source}, {self.device}, {steps_text(self.steps)} of {seconds_text(self.seconds)}>"

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), **{name: dict(getattr(self, name)) for name in ("busy", "alone", "unknown")}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        mappings = {name: MappingProxyType(dict(state[name])) for name in ("busy", "alone", "unknown")}
        vars(self).update({**state, **mappings})


def steps_text(steps: int) -> str:
    """Formats a number of steps."""
    return "1 step" if steps == 1 else f"{steps} steps"


def _short(name: str) -> str:
    text = safe_repr(name)[1:-1]
    return text if len(text) <= _MAX_NAME else f"{text[: _MAX_NAME - 3]}..."
