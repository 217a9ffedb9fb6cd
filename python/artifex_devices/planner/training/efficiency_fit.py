# SPDX-License-Identifier: Apache-2.0
"""Fits the factors of plan_training to measured steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from artifex_devices._base.checks import bounded_list, check_number, check_type, failure, wrong_type
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._planner import fit_training
from artifex_devices.planner.training.efficiency import Efficiency
from artifex_devices.planner.training.plan import TrainingPlan


@public("artifex_devices.planner")
@dataclass(frozen=True)
class EfficiencyFit:
    """Factors fitted to measured steps, and how well they reproduce these.

    Attributes:
        efficiency: Factors, with the fit as the source of the fitted ones.
        fitted: Names of the fitted factors: factors on which the steps depend.
        predicted: Seconds of each step with these factors.
        measured: Measured seconds of each step.
    """

    efficiency: Efficiency
    fitted: tuple[str, ...]
    predicted: tuple[float, ...]
    measured: tuple[float, ...]

    @property
    def errors(self) -> tuple[float, ...]:
        """Relative error of each step: predicted / measured - 1."""
        return tuple(ours / theirs - 1 for ours, theirs in zip(self.predicted, self.measured, strict=True))

    def error(self, part: float = 0.5) -> float:
        """Returns the absolute relative error that a part of the steps does not exceed.

        Args:
            part: Part of the steps, above 0 and at most 1; 0.5 is the median.

        Raises:
            ValueError: `part` is out of its range.
            TypeError: `part` is not a number.
        """
        part = check_number("EfficiencyFit.error", "part", part, "write 0.5", above=0)
        if part > 1:
            raise ValueError(f"EfficiencyFit.error: part is {part}; expected a number above 0, at most 1; write 0.5")
        return quantile([abs(error) for error in self.errors], part)


def quantile(values: Iterable[float], part: float) -> float:
    """Returns the value that a part of the values does not exceed, interpolated as NumPy does.

    Example:
        >>> quantile([1, 2, 4], 0.5), quantile([1, 2, 4], 0.75)
        (2, 3.0)
    """
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below]) if place > below else ordered[below]


def fit(measured: Iterable[TrainingPlan], *, efficiency: Efficiency | None = None) -> EfficiencyFit:
    """Fits the factors of a chip and its network to measured training steps.

    Fitted are the fractions for products (16 and 8 bits apart, and of experts), attention, memory, links, network and
    the exchange of tokens between experts, and the fixed
    seconds of each layer and step, by non-negative least squares of the relative errors (Lawson and Hanson, Solving
    Least Squares Problems, 1974, chapter 23), repeated where communication becomes hidden or exposed. A term draws each
    fraction to its start, so a few steps, or only one, are enough; tiles and message sizes are not
    fitted.

    Args:
        measured: Plans with their `measured` seconds, of clusters of one chip: `plan_training(..., measured=12.5)`.
        efficiency: Factors to start from, by default the first plan's.

    Raises:
        ValueError: There are no plans, a plan has no measured seconds, or plans have different chips.
        TypeError: An argument has the wrong type.

    Example:
        >>> from artifex_devices import cluster
        >>> from artifex_devices.planner import TrainingConfig, plan_training
        >>> node = cluster.dgx("h100")
        >>> config = TrainingConfig(batch=64, sequence=4096, zero=3, recompute="full")
        >>> found = fit([plan_training("llama-3-8b", node, config, measured=4.0)])
        >>> abs(found.predicted[0] - 4) < 0.05
        True
    """
    given: Any = measured
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        fix = "write [plan_training(..., measured=12.5)]"
        raise wrong_type("fit", "measured", measured, "plans with measured seconds", fix)
    plans: list[TrainingPlan] = bounded_list("fit", "measured", given)
    for i, plan in enumerate(plans):
        check_type("fit", f"measured[{i}]", plan, TrainingPlan, "a TrainingPlan", "make one by plan_training")
        if plan.measured is None:
            raise failure(
                ValueError,
                "fit",
                f"measured[{i}] has no measured seconds",
                expected="a plan with them",
                fix="write plan_training(..., measured=12.5)",
            )
    if not plans:
        raise failure(
            ValueError,
            "fit",
            "measured is empty",
            expected="one plan at least",
            fix="write [plan_training(..., measured=12.5)]",
        )
    chips = sorted({_chip(plan) for plan in plans})
    if len(chips) > 1:
        raise failure(
            ValueError,
            "fit",
            f"measured has steps of {', '.join(map(safe_repr, chips))}",
            expected="one chip, because the factors describe a chip",
            fix="fit each apart",
        )
    start = plans[0].efficiency if efficiency is None else efficiency
    check_type("fit", "efficiency", start, Efficiency, "an Efficiency or None", "write Efficiency.of(cluster)")
    steps = [
        (vars(plan.model), plan.cluster, plan.config._described(plan.cluster.device_count), float(plan.measured or 0))
        for plan in plans
    ]
    found = fit_training(steps, start._described())
    efficiency = start._fitted(found["efficiency"], found["fitted"])
    return EfficiencyFit(efficiency, found["fitted"], found["predicted"], tuple(step[3] for step in steps))


def _chip(plan: TrainingPlan) -> str:
    name: str = plan.cluster.parts["chip_name"]
    return name
