# SPDX-License-Identifier: Apache-2.0
"""Leaves and structure of a tree.

The core flattens dicts, lists, tuples and None (cpp/bindings/bind_tree.cpp), in one call for each tree. optree flattens
other nodes, and trees with an is_leaf; it is imported at the first of them.
"""

from __future__ import annotations

import contextlib
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from artifex_devices._base.checks import check_callable
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import _tree_check_levels, _tree_open
from artifex_devices._tree.keys import keystr
from artifex_devices._tree.nodes import (
    PLAIN,
    Aux,
    NodeType,
    NoneType,
    UnsortableKeysError,
    is_named_tuple,
    is_tree_node,
    keys_of,
    one_level,
    pass_new_types,
    sorted_keys,
)
from artifex_devices._tree.treedef import LEAF, PyTreeDef, node_of_rows, node_with

IsLeaf = Callable[[Any], bool]

_NAMESPACE = "artifex_devices"  # in optree's registry, so that the global one stays as it is
_MAX_DEPTH = 1000  # levels, as in bind_tree.cpp and optree


class _ForeignNodeError(Exception):
    """optree has a node of a type that is a leaf here."""


def flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], PyTreeDef]:
    """Implements `tree_util.tree_flatten`."""
    if is_leaf is None and type(tree) in PLAIN:
        return [tree], LEAF
    try:
        if is_leaf is not None:
            leaves, treedef = _flatten_with_optree(tree, _stopping_at_leaves(is_leaf))
            _tree_check_levels(treedef._node)  # optree takes one level more where that is empty
            return leaves, treedef
        leaves, node = _tree_open(tree, PLAIN, is_tree_node, _open_other, sorted_keys)
        return leaves, PyTreeDef(node, len(leaves))
    except UnsortableKeysError as error:
        for _ in _walk(tree, _stopping_at(is_leaf)):
            pass  # raises the error with the path
        raise _unsortable(tree, (), error) from None
    except RecursionError as error:
        raise RecursionError(_too_deep(tree, is_leaf)) from error


def _open_other(tree: Any, leaves: list[Any]) -> Any:
    """Returns the node of a tree whose topmost node is not a built-in one; appends the leaves."""
    found, treedef = _flatten_with_optree(tree, None)
    leaves.extend(found)
    return treedef._node


def _flatten_with_optree(tree: Any, predicate: IsLeaf | None) -> tuple[list[Any], PyTreeDef]:
    import optree

    pass_new_types(_register_in_optree)
    try:
        leaves, spec = optree.tree_flatten(tree, predicate, namespace=_NAMESPACE)
        node = spec.walk([None] * len(leaves), _node_of_optree, None)
    except _ForeignNodeError:
        leaves, spec = optree.tree_flatten(tree, _is_not_a_node, namespace=_NAMESPACE)
        node = spec.walk([None] * len(leaves), _node_of_optree, None)
    return leaves, PyTreeDef(node, len(leaves))


def _register_in_optree(cls: type, node_type: NodeType) -> None:
    import optree

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about named tuples
        # optree only flattens; it never calls unflatten.
        optree.register_pytree_node(cls, node_type.flatten, node_type.unflatten, namespace=_NAMESPACE)


def _node_of_optree(typ: Any, data: Any, children: tuple[Any, ...]) -> Any:
    """Converts a node of optree; leaves are None."""
    if typ is dict:
        sorted_keys(data)  # raises, where optree orders any keys
        data = tuple(data)
    elif typ is list or typ is tuple or typ is NoneType or isinstance(data, Aux):
        pass
    elif typ is OrderedDict:
        data = tuple(data)
    elif typ is defaultdict:
        sorted_keys(data[1])
        data = (data[0], tuple(data[1]))
    elif is_named_tuple(typ):
        data = None
    else:
        raise _ForeignNodeError
    return node_with(typ, data, children)


def _is_not_a_node(value: Any) -> bool:
    return not is_tree_node(type(value))


def _stopping_at_leaves(is_leaf: Callable[..., bool | None]) -> Callable[..., bool]:
    """Returns the predicate, checked to return a bool or None as in JAX, and true at types that are leaves here."""
    check_callable("tree_flatten", "is_leaf", is_leaf, "a function of a node", "leave it out")

    def stops(*arguments: Any) -> bool:
        answer = is_leaf(*arguments)
        if answer is True:
            return True
        if answer is not False and answer is not None:
            raise ValueError(
                f"tree_flatten: is_leaf returned {safe_repr(answer)} ({type(answer).__name__}); expected True or "
                "False; "
                "return bool(...)"
            )
        return not is_tree_node(type(arguments[-1]))

    return stops


def flatten_with_path_predicate(
    tree: Any, is_leaf: Callable[[tuple[Any, ...], Any], bool]
) -> tuple[list[tuple[tuple[Any, ...], Any]], PyTreeDef]:
    """Returns paths, leaves and structure for an `is_leaf` that takes path and node."""
    found: list[tuple[tuple[Any, ...], Any]] = []
    rows: list[Any] = []
    for path, _, value, level in _walk(tree, _stopping_at_leaves(is_leaf)):
        if level is None:
            found.append((path, value))
            rows.append(None)
            continue
        if len(path) >= _MAX_DEPTH and value is not None:
            raise RecursionError(_too_deep(tree, None))
        children, data = level
        rows.append((type(value), data, (len(children),)))
    return found, PyTreeDef(node_of_rows(rows), len(found))


def _walk(tree: Any, stops: Callable[[tuple[Any, ...], Any], bool]) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Yields path, nodes above, value and level (None for a leaf) of nodes and leaves, a node before its children."""
    open_: list[tuple[tuple[Any, ...], tuple[Any, ...], Any]] = [((), (), tree)]
    while open_:
        path, above, value = open_.pop()
        try:
            level = None if stops(path, value) else one_level(value)
        except UnsortableKeysError as error:
            raise _unsortable(value, path, error) from None
        yield path, above, value, level
        if level is not None:
            keys = keys_of(type(value), level[1], len(level[0]))
            below = (*above, value)
            open_.extend(reversed([((*path, key), below, child) for key, child in zip(keys, level[0], strict=True)]))


# The functions below run only for errors, to find the path.


def _stopping_at(is_leaf: IsLeaf | None) -> Callable[[tuple[Any, ...], Any], bool]:
    return lambda path, node: is_leaf is not None and is_leaf(node)


def _unsortable(node: Any, path: tuple[Any, ...], error: Exception) -> ValueError:
    where = f" at {keystr(path)}" if path else ""
    return ValueError(
        f"tree_flatten: the keys of the {type(node).__name__}{where} cannot be sorted; expected keys that compare with "
        f"each other, got {error}; use an OrderedDict to keep their order"
    )


def _too_deep(tree: Any, is_leaf: IsLeaf | None) -> str:
    problem = f"the tree is nested too deep; expected at most {_MAX_DEPTH} levels"
    with contextlib.suppress(Exception):  # functions of a registered type fail: report the first error
        for path, above, node, level in _walk(tree, _stopping_at(is_leaf)):
            if level is None or node is None:
                continue
            depth = next((depth for depth, each in enumerate(above) if each is node), None)
            if depth is None and len(path) < _MAX_DEPTH:
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
