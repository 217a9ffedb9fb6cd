# SPDX-License-Identifier: Apache-2.0
"""Whole numbers among the arguments of collectives and mapped functions."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

__all__ = ["numbers_in", "whole_number"]


def whole_number(operation: str, argument: str, value: Any) -> int:
    """The value as an int.

    Raises:
        TypeError: It is none.
    """
    if not hasattr(value, "__index__"):
        raise TypeError(
            f"{operation}: {argument} is of type {type(value).__name__}; expected an int, got {value!r}; give a whole "
            "number such as 0"
        )
    return operator.index(value)


def numbers_in(operation: str, argument: str, values: Any) -> list[int]:
    """The values as ints.

    Raises:
        TypeError: They are no sequence of ints.
    """
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(
            f"{operation}: {argument} is of type {type(values).__name__}; expected a sequence of ints, got {values!r}; "
            "write [0, 1]"
        )
    return [whole_number(operation, f"{argument}[{place}]", value) for place, value in enumerate(values)]
