# SPDX-License-Identifier: Apache-2.0
"""Kinds of operations by their names in a profile."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from artifex_devices._base.checks import check_choice, check_str, check_type, failure
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.planner.profile.name_rules import CATEGORIES, COLLECTIVES, NAMES, NameRule

_PRODUCT = re.compile(r"(dot_general|conv_general_dilated)[^/]*$")


class Patterns(NamedTuple):
    """Compiled rules: first the user's, then the table's."""

    own: list[tuple[str, re.Pattern[str]]]
    names: list[tuple[str, re.Pattern[str]]]


def compiled_patterns(operation: str, kinds: Any, expected: Sequence[str]) -> Patterns:
    """Checks and compiles the patterns of the user, {pattern: kind}."""
    fix = "write kinds={'my_kernel': 'products'}"
    check_type(operation, "kinds", kinds, Mapping, "a mapping of regular expressions to kinds", fix)
    own = []
    for pattern, kind in kinds.items():
        check_str(operation, "kinds", pattern, fix)
        check_choice(operation, f"kinds[{pattern!r}]", kind, expected)
        try:
            own.append((kind, re.compile(pattern, re.IGNORECASE)))
        except re.error as error:
            raise failure(
                ValueError,
                operation,
                f"kinds has {safe_repr(pattern)}",
                expected=f"a regular expression: {error}",
                fix=fix,
            ) from error
    return Patterns(own, _compiled(NAMES))


def kind_of(name: str, arguments: Mapping[str, object], patterns: Patterns) -> str | None:
    """Returns the kind of an operation, CONTAINER, or None for a name that no rule knows.

    Args:
        name: Name of the event.
        arguments: Its arguments.
        patterns: The result of `compiled_patterns`.

    Example:
        >>> patterns = compiled_patterns("kind_of", {}, ())
        >>> kind_of("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", {}, patterns)
        'all_gather'
        >>> kind_of("fusion.12", {"hlo_category": "convolution fusion"}, patterns)
        'products'
    """
    category, collective = (str(arguments.get(key, "")) for key in ("hlo_category", "Collective name"))
    for text, rules in (
        (name, patterns.own),
        (collective, _COLLECTIVE_PATTERNS),
        (category, _CATEGORY_PATTERNS),
        (name, patterns.names),
        (str(arguments.get("hlo_op", "")), patterns.names),
    ):
        lower = text.lower()
        found = next((kind for kind, pattern in rules if pattern.search(lower)), None) if text else None
        if found is not None:
            return found
    # A fusion whose last operation is a product (the argument `tf_op`: "jit(step)/dot_general").
    return "products" if _PRODUCT.search(str(arguments.get("tf_op", ""))) else None


def _compiled(rules: Sequence[NameRule]) -> list[tuple[str, re.Pattern[str]]]:
    return [(rule.kind, re.compile(rule.pattern)) for rule in rules]


_COLLECTIVE_PATTERNS = _compiled(COLLECTIVES)
_CATEGORY_PATTERNS = _compiled(CATEGORIES)
