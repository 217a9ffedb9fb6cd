# SPDX-License-Identifier: Apache-2.0
"""Plans of conversions: arrays of a source, changed by rules and compared with the target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from artifex_devices._core import internal
from artifex_devices.checkpoint.rule import Rule, fields_of

NamedType = tuple[str, tuple[int, ...], np.dtype[Any]]


def plan_conversion(
    operation: str,
    sources: Iterable[NamedType],
    rules: Rule | Iterable[Rule],
    like: Iterable[NamedType] | None = None,
    floats: np.dtype[Any] | None = None,
    allow_missing: Sequence[str] = (),
    allow_extra: Sequence[str] = (),
) -> internal.ConversionPlan:
    """Returns the plan of a conversion.

    Args:
        operation: Public function, for messages.
        sources: Name, shape and dtype of each array of the source.
        rules: Rules in their order.
        like: Name, shape and dtype of each array that the target has, or None for all arrays after the rules.
        floats: Dtype of all arrays of floating-point numbers after the rules, or None.
        allow_missing: Patterns of names in `like` that may have no source.
        allow_extra: Patterns of names that may be left over.

    Raises:
        TypeError: An element of `rules` is not a rule.
        ValueError: A rule does not fit, or arrays are left over on either side.
    """
    fields = fields_of(operation, rules)
    expected = None if like is None else list(like)
    return internal.ConversionPlan(
        operation, list(sources), fields, floats, expected, list(allow_missing), list(allow_extra)
    )
