# SPDX-License-Identifier: Apache-2.0
"""Days, device-hours and price of a training run of so many tokens."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from artifex_devices._base.checks import check_number, wrong_value
from artifex_devices._base.public_path import public

_FIX = "write 15e12 or '15T'"
_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
_SECONDS_PER_DAY = 86400
_SECONDS_PER_HOUR = 3600


@public("artifex_devices.planner")
@dataclass(frozen=True)
class RunCost:
    """Time and cost of a training run at the expected seconds of its plan, without failures, saves and evaluations.

    Attributes:
        tokens: Number of tokens of the run.
        steps: Number of steps; the last one may have fewer tokens.
        days: Days that the steps take.
        device_hours: Hours of all devices together.
        price_per_device_hour: Price of a device for an hour, or None.
        cost: Price of all device-hours, or None without a price.
    """

    tokens: float
    steps: int
    days: float
    device_hours: float
    price_per_device_hour: float | None
    cost: float | None

    def __str__(self) -> str:
        """Formats the run in one line."""
        cost = "" if self.cost is None else f", cost {self.cost:,.0f} at {self.price_per_device_hour:g} per device-hour"
        return (
            f"{tokens_text(self.tokens)} tokens: {self.steps:,} steps, {self.days:,.1f} days, "
            f"{self.device_hours:,.0f} device-hours{cost}"
        )


def run_cost(
    tokens: float | str, price: float | None, *, tokens_per_step: int, seconds: float, devices: int
) -> RunCost:
    """Returns the cost of a run whose steps take `seconds` each."""
    name = "TrainingPlan.cost_of_run"
    number = checked_tokens(name, tokens)
    if price is not None:
        price = float(check_number(name, "price_per_device_hour", price, "write 2.5", above=0))
    steps = math.ceil(number / tokens_per_step)
    hours = steps * seconds * devices / _SECONDS_PER_HOUR
    return RunCost(
        tokens=number,
        steps=steps,
        days=steps * seconds / _SECONDS_PER_DAY,
        device_hours=hours,
        price_per_device_hour=price,
        cost=None if price is None else hours * price,
    )


def checked_tokens(operation: str, tokens: Any) -> float:
    """Returns a number of tokens for a number, or for a text such as "15T" or "300B"."""
    if not isinstance(tokens, str):
        expected = "a number of tokens or a text such as '15T'"
        return float(check_number(operation, "tokens", tokens, _FIX, above=0, expected=expected))
    found = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,15})?) ?([kmbt]?)", tokens.strip().lower())
    number = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not number:
        raise wrong_value(operation, "tokens", tokens, "a number above 0 with k, M, B or T", _FIX)
    return number


def tokens_text(tokens: float) -> str:
    """Formats a number of tokens as publications do: "15T", "300B"."""
    unit = next((unit for unit in "tbmk" if tokens >= _UNITS[unit]), "")
    return f"{tokens / _UNITS[unit]:.4g}{unit if unit == 'k' else unit.upper()}"
