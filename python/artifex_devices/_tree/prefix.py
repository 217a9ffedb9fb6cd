# SPDX-License-Identifier: Apache-2.0
"""Trees whose leaves stand for whole subtrees of another tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from artifex_devices._tree.flatten import IsLeaf, flatten
from artifex_devices._tree.keys import keystr
from artifex_devices._tree.mismatch import explain, mismatches

__all__ = ["broadcast_prefix", "prefix_errors", "tree_broadcast"]


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves of a prefix, each as often as its subtree of the full tree has leaves.

    Args:
        prefix_tree: A tree that the full tree begins with.
        full_tree: The tree with all leaves.
        is_leaf: Says where to stop early in the prefix.

    Raises:
        ValueError: It is no prefix; names every path where it differs.

    Example:
        >>> from artifex_devices import tree_util
        >>> tree_util.broadcast_prefix(("x", "y"), (1, [2, 3, None]))
        ['x', 'y', 'y']
    """
    leaves, subtrees = _spread("broadcast_prefix", prefix_tree, full_tree, is_leaf)
    return [leaf for leaf, subtree in zip(leaves, subtrees, strict=True) for _ in range(_count(subtree))]


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None) -> Any:
    """The full tree with the leaves of the prefix in place of its own.

    Args:
        prefix_tree: A tree that the full tree begins with.
        full_tree: The tree with all leaves.
        is_leaf: Says where to stop early in the prefix.

    Raises:
        ValueError: It is no prefix; names every path where it differs.

    Example:
        >>> import artifex_devices as ad
        >>> ad.tree.broadcast(("x", "y"), (1, {"a": 2, "b": 3}))
        ('x', {'a': 'y', 'b': 'y'})
    """
    values = broadcast_prefix(prefix_tree, full_tree, is_leaf)
    return flatten(full_tree)[1].unflatten(values)


def prefix_errors(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None) -> list[Callable[[str], ValueError]]:
    """What keeps a tree from being a prefix of another: for each place a function that makes the error from a name.

    Example:
        >>> from artifex_devices import tree_util
        >>> [error("in_axes") for error in tree_util.prefix_errors({"a": [1]}, {"a": (1,)})]
        [ValueError("in_axes is no prefix: at in_axes['a']: expected list of 1, got tuple of 1")]
    """
    structure = flatten(prefix_tree, is_leaf)[1]
    return [_error_maker(keystr(path), told) for path, told in mismatches(structure._node, full_tree)]


def _error_maker(path: str, told: str) -> Callable[[str], ValueError]:
    return lambda name: ValueError(f"{name} is no prefix: at {name}{path}: {told}")


def _count(subtree: Any) -> int:
    return len(flatten(subtree)[0])


def _spread(operation: str, prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None) -> tuple[list[Any], list[Any]]:
    leaves, structure = flatten(prefix_tree, is_leaf)
    subtrees = structure._up_to(full_tree)
    if subtrees is None:
        told = explain(structure._node, full_tree, "prefix")
        raise ValueError(
            f"{operation}: the prefix does not fit the full tree; {told}; give one value, or a tree with the same "
            "outer structure"
        )
    return leaves, subtrees
