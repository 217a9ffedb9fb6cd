# SPDX-License-Identifier: Apache-2.0
"""One value for each leaf of a tree from a prefix of that tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from artifex_devices._base.safe_repr import shown

__all__ = ["per_leaf"]


def per_leaf(
    operation: str,
    argument: str,
    prefix: Any,
    x: Any,
    count: int,
    single: tuple[type, ...],
    *,
    is_value: Callable[[Any], bool] | None = None,
    is_checked: bool = True,
) -> Any:
    """One value for all leaves, or a list with one for each.

    Args:
        operation: Begins the message.
        argument: The argument's name.
        prefix: One value, or a tree of them that is a prefix of x.
        x: The tree; None in it is no leaf.
        count: Number of leaves of x.
        single: Types of one value.
        is_value: Says which objects of these types are one value; default all.
        is_checked: Whether other values are refused; else they are handed on.

    Raises:
        ValueError: It is no prefix; the text names the paths. A value is of another type.
    """

    def is_leaf(node: Any) -> bool:
        return isinstance(node, single) and (is_value is None or is_value(node))

    if is_leaf(prefix):
        return prefix
    from artifex_devices import tree_util

    errors = tree_util.prefix_errors(prefix, x, is_leaf)
    if errors:
        told = "; ".join(str(error(argument)) for error in errors)
        raise ValueError(f"{operation}: {told}; give one value, or a tree with the same outer structure")
    found = tree_util.broadcast_prefix(prefix, x, is_leaf)
    assert len(found) == count
    for value in found:
        if is_checked and not is_leaf(value):
            expected = " or ".join("None" if kind is type(None) else kind.__name__ for kind in single)
            raise ValueError(
                f"{operation}: {argument} is of type {type(value).__name__}; expected {expected} or a tree of these "
                f"that is a prefix of x, got {shown(value)}; give one value for all of x, or one a part"
            )
    return found
