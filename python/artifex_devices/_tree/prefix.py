# SPDX-License-Identifier: Apache-2.0
"""Trees whose leaves stand for subtrees of another tree."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from artifex_devices._base.checks import wrong_type
from artifex_devices._base.leaf_types import PyTree, Tree
from artifex_devices._tree.flatten import IsLeaf, flatten
from artifex_devices._tree.keys import keystr
from artifex_devices._tree.mismatch import explain, mismatches


def broadcast_prefix(prefix_tree: Tree, full_tree: Tree, is_leaf: IsLeaf | None = None) -> list[PyTree]:
    """Returns the leaves of a prefix, each repeated for all leaves of its subtree of the full tree.

    Args:
        prefix_tree: A tree whose structure the full tree begins with.
        full_tree: The tree with all leaves.
        is_leaf: Called on each node of the prefix; True makes it a leaf.

    Raises:
        ValueError: prefix_tree is not a prefix; the text names every path where it differs.

    Example:
        >>> from artifex_devices import tree_util
        >>> tree_util.broadcast_prefix(("x", "y"), (1, [2, 3, None]))
        ['x', 'y', 'y']
    """
    leaves, structure = flatten(prefix_tree, is_leaf)
    subtrees = structure._up_to(full_tree)
    if subtrees is None:
        problems = explain(structure._node, full_tree, "prefix")
        raise ValueError(
            f"broadcast_prefix: the prefix does not fit the full tree; {problems}; give one value, or a tree with the "
            "same outer structure"
        )
    return [leaf for leaf, subtree in zip(leaves, subtrees, strict=True) for _ in flatten(subtree)[0]]


def tree_broadcast(prefix_tree: Tree, full_tree: Tree, is_leaf: IsLeaf | None = None) -> PyTree:
    """Replaces the leaves of the full tree by the leaves of the prefix; takes the arguments of broadcast_prefix.

    Raises:
        ValueError: prefix_tree is not a prefix; the text names every path where it differs.

    Example:
        >>> import artifex_devices as ad
        >>> ad.tree.broadcast(("x", "y"), (1, {"a": 2, "b": 3}))
        ('x', {'a': 'y', 'b': 'y'})
    """
    values = broadcast_prefix(prefix_tree, full_tree, is_leaf)
    return flatten(full_tree)[1].unflatten(values)


def prefix_errors(
    prefix_tree: Tree, full_tree: Tree, is_leaf: IsLeaf | None = None
) -> list[Callable[[str], ValueError]]:
    """Returns a function for each place where a tree is not a prefix of another; it builds the error from a name.

    Example:
        >>> from artifex_devices import tree_util
        >>> [error("in_axes") for error in tree_util.prefix_errors({"a": [1]}, {"a": (1,)})]
        [ValueError("in_axes is not a prefix: at in_axes['a']: expected list of 1, got tuple of 1")]
    """
    structure = flatten(prefix_tree, is_leaf)[1]

    def error(path: str, problem: str, name: str) -> ValueError:
        return ValueError(f"{name} is not a prefix: at {name}{path}: {problem}")

    return [functools.partial(error, keystr(path), text) for path, text in mismatches(structure._node, full_tree)]


def prefix_values(
    operation: str, argument: str, prefix: object, tree: object, is_leaf: IsLeaf, advice: Callable[[], str]
) -> list[Any]:
    """Does what broadcast_prefix does for an argument; errors name it and every difference, and end with advice."""
    try:
        return broadcast_prefix(prefix, tree, is_leaf)
    except ValueError:
        differences = "; ".join(str(error(argument)) for error in prefix_errors(prefix, tree, is_leaf))
        if not differences:
            raise
        raise ValueError(f"{operation}: {differences}; {advice()}") from None


def per_leaf(
    operation: str,
    argument: str,
    prefix: object,
    x: object,
    single: tuple[type, ...],
    *,
    is_value: Callable[[Any], bool] | None = None,
    is_checked: bool = True,
) -> Any:
    """Returns one value for all leaves of `x`, or a list with one for each, from a prefix tree of values.

    Values are instances of `single` for which `is_value` is true. Others are a ValueError, unless `is_checked` is
    false; a tree that is not a prefix is one in any case.
    """

    def is_leaf(node: object) -> bool:
        return isinstance(node, single) and (is_value is None or is_value(node))

    if is_leaf(prefix):
        return prefix
    advice = "give one value, or a tree with the same outer structure"
    found = prefix_values(operation, argument, prefix, x, is_leaf, lambda: advice)
    for value in found:
        if is_checked and not is_leaf(value):
            expected = " or ".join("None" if kind is type(None) else kind.__name__ for kind in single)
            expected += " or a tree of these that is a prefix of x"
            raise wrong_type(operation, argument, value, expected, "give one value for all of x", ValueError)
    return found
