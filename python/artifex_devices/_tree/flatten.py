# SPDX-License-Identifier: Apache-2.0
"""Leaves and structure of a tree.

The core flattens a tree in one call (cpp/bindings/bind_tree.cpp). It opens dicts, lists, tuples and None itself, and
calls `one_level` for the other nodes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from artifex_devices._base.checks import check_callable, failure
from artifex_devices._base.leaf_types import PyTree
from artifex_devices._core.internal import tree_open
from artifex_devices._tree.keys import keystr
from artifex_devices._tree.nodes import PLAIN, UnsortableKeysError, keys_of, one_level
from artifex_devices._tree.treedef import LEAF, PyTreeDef

IsLeaf = Callable[[PyTree], bool]

_MAX_DEPTH = 1000  # levels, as in cpp/bindings/tree_node.h


def flatten(
    tree: object, is_leaf: Callable[..., bool] | None = None, *, takes_path: bool = False
) -> tuple[list[Any], PyTreeDef]:
    """Implements `tree_util.tree_flatten`; `takes_path` calls is_leaf with the path and the node."""
    if is_leaf is None and type(tree) in PLAIN:
        return [tree], LEAF
    if is_leaf is not None:
        check_callable("tree_flatten", "is_leaf", is_leaf, "a function of a node", "leave it out")
    try:
        opened = tree_open(tree, PLAIN, one_level, is_leaf, keys_of if takes_path else None)
    except UnsortableKeysError as error:
        for _ in _walk(tree, is_leaf, takes_path):
            pass  # raises the error with the path
        raise _unsortable(tree, (), error) from None
    if opened is None:  # not for a RecursionError of the caller's functions: a walk would call them again
        raise RecursionError(_too_deep(tree, is_leaf, takes_path))
    leaves, node = opened
    return leaves, PyTreeDef(node, len(leaves))


# The functions below run only for errors, to find the path.


def _walk(
    tree: object, is_leaf: Callable[..., bool] | None, takes_path: bool
) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...], Any]]:
    """Yields the path of each node, the nodes above it and the node, a node before its children."""
    open_: list[tuple[tuple[Any, ...], tuple[Any, ...], Any]] = [((), (), tree)]
    while open_:
        path, above, value = open_.pop()
        if is_leaf is not None and (is_leaf(path, value) if takes_path else is_leaf(value)):
            continue
        try:
            level = one_level(value)
        except UnsortableKeysError as error:
            raise _unsortable(value, path, error) from None
        if level is not None:
            yield path, above, value
            keys = keys_of(type(value), level[1], len(level[0]))
            below = (*above, value)
            open_.extend(reversed([((*path, key), below, child) for key, child in zip(keys, level[0], strict=True)]))


def _unsortable(node: object, path: tuple[Any, ...], error: Exception) -> ValueError:
    where = f" at {keystr(path)}" if path else ""
    return failure(
        ValueError,
        "tree_flatten",
        f"the keys of the {type(node).__name__}{where} cannot be sorted",
        expected="keys that compare with each other",
        got=error,
        fix="use an OrderedDict to keep their order",
    )


def _too_deep(tree: object, is_leaf: Callable[..., bool] | None, takes_path: bool) -> str:
    problem = f"the tree is nested too deep; expected at most {_MAX_DEPTH} levels"
    with contextlib.suppress(Exception):  # functions of a registered type fail: report the first error
        for path, above, node in _walk(tree, is_leaf, takes_path):
            depth = next((depth for depth, each in enumerate(above) if each is node), None)
            if (depth is None and len(path) < _MAX_DEPTH) or node is None:
                continue
            begin = keystr(path[:6]) + ("..." if len(path) > 6 else "")
            if depth is None:
                problem += f", got more at {begin}"
            else:
                problem = (
                    f"the tree contains itself; expected a tree, got the {type(node).__name__} at "
                    f"{keystr(path[:depth]) or 'the root'} again at {begin}"
                )
            break
    return f"tree_flatten: {problem}; register a type whose instances are leaves for the repeated part"
