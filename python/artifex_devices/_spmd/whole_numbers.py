# SPDX-License-Identifier: Apache-2.0
"""Sequences of ints among the arguments of collectives and mapped functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from artifex_devices._base.safe_repr import shown
from artifex_devices._runtime.device_arguments import whole_number

__all__ = ["lists_of_numbers", "numbers_in"]


def numbers_in(operation: str, argument: str, values: Any) -> list[int]:
    """The values as ints; TypeError unless they are a sequence of ints."""
    _check_iterable(operation, argument, values, "a sequence of ints", "[0, 1]")
    return [whole_number(operation, f"{argument}[{place}]", value) for place, value in enumerate(values)]


def lists_of_numbers(
    operation: str, argument: str, values: Any, expected: str, example: str
) -> tuple[tuple[int, ...], ...]:
    """The sequences of ints in `values` as tuples; TypeError for anything else."""
    _check_iterable(operation, argument, values, expected, example)
    return tuple(tuple(numbers_in(operation, f"{argument}[{place}]", each)) for place, each in enumerate(values))


def _check_iterable(operation: str, argument: str, values: Any, expected: str, example: str) -> None:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(
            f"{operation}: {argument} is of type {type(values).__name__}; expected {expected}, got {shown(values)}; "
            f"write {example}"
        )
