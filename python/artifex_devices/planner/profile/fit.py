# SPDX-License-Identifier: Apache-2.0
"""Fits the factors of plan_training to the parts of a profiled step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from artifex_devices import _planner
from artifex_devices._base.checks import check_int, check_type, failure
from artifex_devices._base.public_path import public
from artifex_devices._base.text import seconds_text
from artifex_devices.planner.profile.kinds import KINDS, MESSAGES
from artifex_devices.planner.profile.report import Profile, steps_text
from artifex_devices.planner.report import Report, Summary, picked
from artifex_devices.planner.training import Efficiency, TrainingPlan, plan_training

_OPERATION = "fit_profile"


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False, repr=False)
class ProfileFit(Report):
    """Factors and overlap that reproduce the parts of a profiled step; `print` shows them.

    Attributes:
        plan: The plan with these factors and this overlap, and the profile's seconds as `measured`.
        profile: The profile.
        fitted: Names of the fitted factors, which have the profile as their source.
        overlap: Part of each kind of traffic that was hidden, for the kinds that the profile has.
        before: Expected seconds of each kind of operation before the fit, hidden or not.
        after: The same with the fitted factors.
        notes: Factors that were not fitted, and why.
    """

    plan: TrainingPlan
    profile: Profile
    fitted: tuple[str, ...]
    overlap: Mapping[str, float]
    before: Mapping[str, float]
    after: Mapping[str, float]
    notes: tuple[str, ...]

    @property
    def efficiency(self) -> Efficiency:
        """Factors, with the profile as the source of the fitted ones."""
        return self.plan.efficiency

    def _summary(self) -> Summary:
        efficiency, profile = self.efficiency, self.profile
        values = ", ".join(f"{name} {getattr(efficiency, name):.4g}" for name in self.fitted)
        hidden = ", ".join(f"{name} {round(value, 3):g}" for name, value in self.overlap.items())
        facts = [
            ("profile", f"{profile.source}, {profile.device}, {steps_text(profile.steps)} [{profile.steps_from}]"),
            ("step", f"{seconds_text(profile.seconds)} measured, {seconds_text(self.plan.seconds)} with the fit"),
            ("factors", values or "none"),
            ("overlap", hidden or "none: the profile has no messages that the plan has"),
            *(("note", note) for note in (*profile.notes, *self.notes)),
        ]
        rows = []
        for kind in KINDS:
            busy, before, after = profile.busy[kind], self.before[kind], self.after[kind]
            if max(busy, before, after) > 0:
                alone = seconds_text(profile.alone[kind]) if kind in MESSAGES else ""
                rows.append((kind, *map(seconds_text, (busy, before, after)), alone))
        rows.append(("idle", seconds_text(profile.idle), "", "", ""))
        head = ("kind", "measured", "expected before", "expected after", "not hidden")
        return Summary(f"fit of {self.plan.model.name} to a profile", facts, head, rows)

    def _content(self) -> dict[str, object]:
        return {
            "kind": "profile fit",
            "profile": self.profile._content(),
            "fitted": {name: getattr(self.efficiency, name) for name in self.fitted},
            "overlap": dict(self.overlap),
            "before": dict(self.before),
            "after": dict(self.after),
            "seconds": self.plan.seconds,
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        return f"<ProfileFit: {', '.join(self.fitted)} of {self.profile!r}>"

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), **{name: dict(getattr(self, name)) for name in ("overlap", "before", "after")}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        mappings = {name: MappingProxyType(dict(state[name])) for name in ("overlap", "before", "after")}
        vars(self).update({**state, **mappings})


def fit_profile(
    plan: TrainingPlan, profile: Profile, *, stage: int | None = None, efficiency: Efficiency | None = None
) -> ProfileFit:
    """Fits the factors of a chip and its network, and the overlap, to the parts of a profiled step.

    There is one factor for each kind of operation: elementwise operations `memory`, products `matmul` (or
    `matmul_float8`), attention its two, copies to the host `host`. All kinds of messages together have `links` and
    `network`. Time without operations becomes `layer_seconds`, operations that no rule knows `step_seconds`; with
    pipeline stages a device also waits for others, so these two stay. `fit` needs only the seconds of steps, but fits
    their sum.

    Args:
        plan: Plan of the profiled configuration.
        profile: Profile of one of its devices.
        stage: Pipeline stage of this device, or None for a plan with one stage.
        efficiency: Factors to start from, by default the plan's.

    Raises:
        ValueError: The plan has several stages and `stage` is None, or `stage` is out of range.
        TypeError: An argument has the wrong type.

    Example:
        >>> from artifex_devices import cluster
        >>> from artifex_devices.planner import TrainingConfig, plan_training, read_profile
        >>> node = cluster.dgx("h100")
        >>> plan = plan_training("llama-3-8b", node, TrainingConfig(batch=64, sequence=4096, zero=1))
        >>> gemm = {"ph": "X", "cat": "kernel", "name": "sm90_xmma_gemm_bf16", "ts": 0, "args": {"device": 0}}
        >>> profile = read_profile([{**gemm, "dur": 3e6}], steps=1)
        >>> found = fit_profile(plan, profile)
        >>> round(found.before["products"], 3), found.efficiency.matmul < plan.efficiency.matmul
        (2.62, True)
        >>> round(found.after["products"], 3), found.efficiency.sources["matmul"]
        (3.0, 'profile a trace, gpu:0, 1 step')
    """
    check_type(_OPERATION, "plan", plan, TrainingPlan, "a TrainingPlan", "make one by plan_training")
    check_type(_OPERATION, "profile", profile, Profile, "a Profile", "make one by read_profile")
    start = plan.efficiency if efficiency is None else efficiency
    check_type(_OPERATION, "efficiency", start, Efficiency, "an Efficiency or None", "write Efficiency.of(cluster)")
    config = plan.config
    if stage is None:
        if config.pipeline > 1:
            raise failure(
                ValueError,
                _OPERATION,
                f"stage is None and the plan has {config.pipeline} stages",
                expected="the stage of the profiled device, because stages differ",
                fix="write stage=0",
            )
        stage = 0
    check_int(_OPERATION, "stage", stage, minimum=0, maximum=config.pipeline - 1)
    found: dict[str, Any] = _planner.fit_profile(
        vars(plan.model),
        plan.cluster,
        config._described(plan.cluster.device_count),
        stage,
        {"busy": dict(profile.busy), "alone": dict(profile.alone), **picked(profile, "idle", "seconds")},
        start._described(),
        f"profile {profile.source}, {profile.device}, {steps_text(profile.steps)}",
    )
    fitted = start._fitted(found.pop("efficiency"), found["fitted"])
    found["overlap"] = {name: part for name, part in found["overlap"].items() if part is not None}
    again = config.replaced(overlap={**config.overlap, **found["overlap"]})
    mappings = {name: MappingProxyType(found[name]) for name in ("overlap", "before", "after")}
    return ProfileFit(
        plan_training(plan.model, plan.cluster, again, efficiency=fitted, measured=profile.seconds),
        profile,
        **{**found, **mappings},
    )
