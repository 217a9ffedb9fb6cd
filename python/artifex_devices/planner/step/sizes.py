# SPDX-License-Identifier: Apache-2.0
"""Sizes that the functions of `models` check and compute."""

from __future__ import annotations

from typing import Any

from artifex_devices._base.checks import check_number, failure, wrong_value
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.planner.plain_numbers import is_count, plain
from artifex_devices.planner.step.builder import StepBuilder
from artifex_devices.planner.step.model import Optimizer, StepModel

ADAM = Optimizer(8)


def model_of(name: str, parts: StepBuilder, tokens: int, optimizer: Optimizer | None) -> StepModel:
    """Builds the step from its parts."""
    axes = ("batch", "expert_batch") if "c" in parts.sizes else ("batch",)
    return StepModel(name, tuple(parts.tensors), tuple(parts.operations), tokens, axes, optimizer)


def capacity_of(operation: str, factor: object) -> float:
    """Returns a capacity factor as a Python number above 0 and below 2**62."""
    operation = f"models.{operation}"
    value = check_number(operation, "capacity_factor", plain(factor), "write 1", above=0, expected="a number above 0")
    if value >= 2**62:
        raise wrong_value(operation, "capacity_factor", value, "a number below 2**62", "write 1")
    return value


def expert_places(operation: str, experts: int, experts_per_token: int, tokens: int, factor: object) -> int:
    """Returns the number of places of one expert."""
    places = tokens * experts_per_token * capacity_of(operation, factor) / experts
    if places < 1 or places != int(places):
        raise failure(
            ValueError,
            f"models.{operation}",
            (
                f"each of {experts} experts has {places:g} places for {tokens} tokens that are routed to "
                f"{experts_per_token} experts each"
            ),
            expected="a whole number",
            fix="change the tokens or capacity_factor",
        )
    return int(places)


def counts_of(operation: str, counts: dict[str, Any]) -> tuple[int, ...]:
    """Returns the numbers as Python ints; all are 1 or more, but a cache may be 0."""
    numbers = {name: plain(value) for name, value in counts.items()}
    wrong = [name for name, value in numbers.items() if not is_count(value, 0 if name == "cache" else 1)]
    if wrong:
        texts = ", ".join(f"{name} is {safe_repr(numbers[name])}" for name in wrong)
        expected = ["ints of 1 or more"] * (wrong != ["cache"]) + ["a cache of 0 or more tokens"] * ("cache" in wrong)
        raise ValueError(f"models.{operation}: {texts}; expected {' and '.join(expected)}, below 2**62; correct each")
    return tuple(numbers.values())
