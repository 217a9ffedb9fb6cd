# SPDX-License-Identifier: Apache-2.0
"""Rule: one step of a conversion, and what undoes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from artifex_devices._base.checks import check_str, failure, wrong_type
from artifex_devices._base.public_path import public
from artifex_devices._core import internal

_PATTERN = 'a pattern of names, such as "model.layers.{layer}.mlp.up_proj.weight"'


@public("artifex_devices.checkpoint.rules")
@dataclass(frozen=True, repr=False)
class Rule:
    """One rule, which a function of this module creates. Fields that its kind does not use have their defaults.

    Attributes:
        kind: Name of the function.
        source: Patterns of the arrays that it takes.
        target: Patterns of the arrays that it creates; empty for rules that keep the names.
        placeholder: Placeholder whose numbers `stack` and `unstack` count.
        axis: Axis of `split`, `join`, `flatten` and `unflatten`, and position of `stack` and `unstack`.
        axes: Axes of `transpose`.
        sizes: Sizes of `split`, `join`, `flatten` and `unflatten`.
        groups: Number of groups of `split` and `join`.
        dtype: Dtype of `cast` and `constant`.
        shape: Shape of `constant`.
        value: Bytes of one element of `constant`.
        value_text: Value of `constant` as text.
        factor: Factor of `scale`.
    """

    kind: str
    source: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    placeholder: str = ""
    axis: int = 0
    axes: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    groups: int = 1
    dtype: np.dtype[Any] | None = None
    shape: tuple[int, ...] = ()
    value: bytes = b""
    value_text: str = ""
    factor: float = 1.0

    def __post_init__(self) -> None:
        """Raises ValueError for fields that cannot be right for any array."""
        internal.rule_text(vars(self))

    def __repr__(self) -> str:
        """Returns the call that creates the rule."""
        return internal.rule_text(vars(self))


@public("artifex_devices.checkpoint.rules")
def inverse(rules: Rule | Iterable[Rule]) -> list[Rule]:
    """Returns the rules that undo rules, in the reverse order.

    Args:
        rules: Rules that lose nothing. A rule `constant` is undone by `drop`.

    Raises:
        TypeError: An element is not a rule.
        ValueError: A rule has no inverse: `drop` and `cast`.

    Example:
        >>> from artifex_devices.checkpoint import rules
        >>> rules.inverse([rules.transpose("*.w", (1, 2, 0)), rules.rename("*.w", "*/kernel")])
        [rules.rename('*/kernel', '*.w'), rules.transpose('*.w', (2, 0, 1))]
    """
    return [Rule(**fields) for fields in internal.inverse_rules(fields_of("rules.inverse", rules))]


def fields_of(operation: str, rules: object) -> list[dict[str, Any]]:
    """Returns the fields of rules for the core; TypeError if an element is not a rule."""
    fix = 'write [rules.rename("a", "b")]'
    if isinstance(rules, Rule):
        return [vars(rules)]
    if isinstance(rules, (str, bytes)) or not isinstance(rules, Iterable):
        raise wrong_type(operation, "rules", rules, "a list of rules", fix)
    found = []
    for number, rule in enumerate(rules):
        if not isinstance(rule, Rule):
            raise wrong_type(operation, f"rules[{number}]", rule, "a rule", fix)
        found.append(vars(rule))
    return found


def check_pattern(operation: str, name: str, value: object) -> str:
    """Returns the str; TypeError for anything else, ValueError for what is not valid Unicode."""
    pattern = check_str(operation, name, value, 'write "model.norm.weight"', expected=_PATTERN)
    try:
        pattern.encode()
    except UnicodeEncodeError:
        problem = f"{name} is {pattern!r}, which is not valid Unicode"
        raise failure(ValueError, operation, problem, expected=_PATTERN, fix="correct it") from None
    return pattern


def check_patterns(operation: str, name: str, values: object) -> tuple[str, ...]:
    """Returns the patterns as a tuple; TypeError for anything but a sequence of texts."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence) or not values:
        raise wrong_type(operation, name, values, "a list of patterns", 'write ["gate", "up"]')
    return tuple(check_pattern(operation, f"{name}[{number}]", value) for number, value in enumerate(values))
