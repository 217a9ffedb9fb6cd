# SPDX-License-Identifier: Apache-2.0
"""Sequences of whole numbers among the arguments of collectives and mapped functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from artifex_devices._base.safe_repr import shown
from artifex_devices._runtime.device_arguments import whole_number

__all__ = ["numbers_in"]


def numbers_in(operation: str, argument: str, values: Any) -> list[int]:
    """The values as ints.

    Raises:
        TypeError: They are no sequence of ints.
    """
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(
            f"{operation}: {argument} is of type {type(values).__name__}; expected a sequence of ints, got "
            f"{shown(values)}; write [0, 1]"
        )
    return [whole_number(operation, f"{argument}[{place}]", value) for place, value in enumerate(values)]
