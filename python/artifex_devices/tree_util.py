# SPDX-License-Identifier: Apache-2.0
"""Trees of arrays: the names of `jax.tree_util`. The same functions have shorter names in `artifex_devices.tree`.

Dicts are flattened and rebuilt in the order of their sorted keys; None is a node without leaves; instances of
subclasses of list, tuple and dict are leaves, named tuples are nodes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, TypeVar, overload

from artifex_devices._base.checks import bounded_list, check_callable, check_type, failure
from artifex_devices._base.leaf_types import K, LeafT, NamedTupleT, PyTree, Tree
from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices._base.unspecified import UNSPECIFIED
from artifex_devices._tree.flatten import IsLeaf, flatten
from artifex_devices._tree.keys import DictKey, FlattenedIndexKey, GetAttrKey, KeyEntry, KeyPath, SequenceKey, keystr
from artifex_devices._tree.mismatch import explain
from artifex_devices._tree.nodes import flatten_one_level, flatten_one_level_with_keys, is_tree_node
from artifex_devices._tree.prefix import broadcast_prefix, prefix_errors, tree_broadcast
from artifex_devices._tree.register import (
    Partial,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
)
from artifex_devices._tree.treedef import PyTreeDef, as_treedef, treedef_children, treedef_is_leaf, treedef_tuple

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "broadcast_prefix",
    "default_registry",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "prefix_errors",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]
add_public_lookup(__name__)

# Trees of one level with leaves of one type.
Flat: TypeAlias = dict[K, LeafT] | list[LeafT] | tuple[LeafT, ...] | LeafT
_R = TypeVar("_R")


@overload
def tree_flatten(tree: Flat[K, LeafT], is_leaf: None = None) -> tuple[list[LeafT], PyTreeDef]: ...
@overload
def tree_flatten(tree: Tree, is_leaf: IsLeaf | None = None) -> tuple[list[PyTree], PyTreeDef]: ...
def tree_flatten(tree: Tree, is_leaf: IsLeaf | None = None) -> tuple[list[PyTree], PyTreeDef]:
    """Returns the leaves of a tree, in order, and its structure.

    Args:
        tree: Any nesting of dicts, lists, tuples, named tuples, None and instances of registered types.
        is_leaf: Called on each node before it is flattened; True makes it a leaf.

    Raises:
        ValueError: Keys of a dict cannot be sorted, or is_leaf does not return a bool; the text names the path.
        RecursionError: The tree contains itself or is nested deeper than 1000 levels; the text names the path.

    Example:
        >>> from artifex_devices import tree_util
        >>> tree_util.tree_flatten({"b": 2, "a": (1, None)})
        ([1, 2], PyTreeDef({'a': (*, None), 'b': *}))
    """
    return flatten(tree, is_leaf)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[PyTree]) -> PyTree:
    """Inverts tree_flatten.

    Raises:
        ValueError: There are too few or too many leaves.

    Example:
        >>> from artifex_devices import tree_util
        >>> tree_util.tree_unflatten(tree_util.tree_structure({"b": 0, "a": (0, None)}), "xy")
        {'a': ('x', None), 'b': 'y'}
    """
    return as_treedef("tree_unflatten", treedef).unflatten(leaves)


@overload
def tree_leaves(tree: Flat[K, LeafT], is_leaf: None = None) -> list[LeafT]: ...
@overload
def tree_leaves(tree: Tree, is_leaf: IsLeaf | None = None) -> list[PyTree]: ...
def tree_leaves(tree: Tree, is_leaf: IsLeaf | None = None) -> list[PyTree]:
    """Returns the leaves of a tree, in order; arguments and errors as of tree_flatten."""
    return flatten(tree, is_leaf)[0]


def tree_structure(tree: Tree, is_leaf: IsLeaf | None = None) -> PyTreeDef:
    """Returns the structure of a tree; arguments and errors as of tree_flatten."""
    return flatten(tree, is_leaf)[1]


_ORDER = "give the function before the tree"


@overload
def tree_map(f: Callable[[LeafT], _R], tree: LeafT, *, is_leaf: None = None) -> _R: ...
@overload
def tree_map(f: Callable[[LeafT], _R], tree: dict[K, LeafT], *, is_leaf: None = None) -> dict[K, _R]: ...
@overload
def tree_map(f: Callable[[LeafT], _R], tree: list[LeafT], *, is_leaf: None = None) -> list[_R]: ...
@overload
def tree_map(f: Callable[..., Any], tree: NamedTupleT, *rest: Tree, is_leaf: None = None) -> NamedTupleT: ...
@overload
def tree_map(f: Callable[[LeafT], _R], tree: tuple[LeafT, ...], *, is_leaf: None = None) -> tuple[_R, ...]: ...
@overload
def tree_map(f: Callable[..., Any], tree: Tree, *rest: Tree, is_leaf: IsLeaf | None = None) -> PyTree: ...
def tree_map(f: Callable[..., Any], tree: Tree, *rest: Tree, is_leaf: IsLeaf | None = None) -> PyTree:
    """Returns the tree of the results of `f` for each leaf, and the values at the same place in `rest`.

    Args:
        f: Function of a leaf and one more value for each tree of `rest`.
        tree: The tree with the structure of the result.
        rest: Trees that begin with that structure; where `tree` has a leaf they may have subtrees.
        is_leaf: Called on each node of `tree` before it is flattened; True makes it a leaf.

    Raises:
        ValueError: A tree of `rest` does not have the structure of `tree`; the text names every path where it differs.

    Example:
        >>> from artifex_devices import tree_util
        >>> tree_util.tree_map(lambda x, y: (x, y), {"b": 1, "a": None}, {"b": [2, 3], "a": None})
        {'a': None, 'b': (1, [2, 3])}
    """
    check_callable("tree_map", "f", f, "a function of a leaf", _ORDER)
    # f is called from Python because it may switch greenlets, which is impossible below a C++ frame.
    leaves, treedef = flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(leaf) for leaf in leaves])
    others = _flatten_rest("tree_map", treedef, rest)
    return treedef.unflatten([f(*values) for values in zip(leaves, *others, strict=True)])


def _flatten_rest(operation: str, treedef: PyTreeDef, rest: tuple[Any, ...]) -> list[list[Any]]:
    found: list[list[Any]] = []
    wrong = []
    for number, tree in enumerate(rest):
        values = treedef._up_to(tree)
        if values is None:
            wrong.append(explain(treedef._node, tree, f"rest[{number}]"))
        else:
            found.append(values)
    if wrong:
        raise ValueError(
            f"{operation}: trees do not have the structure of the first; {'; '.join(wrong)}; give trees that begin "
            "with the first one's structure"
        )
    return found


def tree_flatten_with_path(
    tree: Tree, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath[Any], PyTree]], PyTreeDef]:
    """Flattens a tree as tree_flatten does, each leaf with its path: a tuple of keys that `keystr` formats.

    Args:
        tree: The tree.
        is_leaf: Called on each node before it is flattened; True makes it a leaf.
        is_leaf_takes_path: Whether is_leaf is called with the path and the node.

    Raises:
        ValueError: As tree_flatten.
        RecursionError: As tree_flatten.

    Example:
        >>> from artifex_devices import tree_util
        >>> tree_util.tree_flatten_with_path({"a": [1]})[0]
        [((DictKey(key='a'), SequenceKey(idx=0)), 1)]
    """
    leaves, treedef = flatten(tree, is_leaf, takes_path=is_leaf is not None and is_leaf_takes_path)
    return list(zip(treedef.paths(), leaves, strict=True)), treedef


def tree_leaves_with_path(
    tree: Tree, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath[Any], PyTree]]:
    """Returns paths and leaves of a tree; arguments and errors as of tree_flatten_with_path."""
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Tree,
    *rest: Tree,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> PyTree:
    """Does what tree_map does, with the path of the leaf as the first argument of `f`.

    Raises:
        ValueError: A tree of `rest` does not have the structure of `tree`; the text names every path where it differs.

    Example:
        >>> from artifex_devices import tree_util
        >>> tree_util.tree_map_with_path(lambda path, leaf: tree_util.keystr(path) + leaf, {"a": ["x"]})
        {'a': ["['a'][0]x"]}
    """
    check_callable("tree_map_with_path", "f", f, "a function of a path and a leaf", _ORDER)
    paths_and_leaves, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = _flatten_rest("tree_map_with_path", treedef, rest)
    return treedef.unflatten(
        [f(path, leaf, *values) for (path, leaf), *values in zip(paths_and_leaves, *others, strict=True)]
    )


@overload
def tree_reduce(
    function: Callable[[_R, PyTree], _R], tree: Tree, initializer: _R, is_leaf: IsLeaf | None = None
) -> _R: ...
@overload
def tree_reduce(
    function: Callable[[PyTree, PyTree], PyTree], tree: Tree, *, is_leaf: IsLeaf | None = None
) -> PyTree: ...
def tree_reduce(
    function: Callable[[PyTree, PyTree], PyTree],
    tree: Tree,
    initializer: Any = UNSPECIFIED,
    is_leaf: IsLeaf | None = None,
) -> PyTree:
    """Combines the leaves from the left: `function(function(a, b), c)`.

    Raises:
        TypeError: There are no leaves and no initializer.

    Example:
        >>> from artifex_devices import tree_util
        >>> tree_util.tree_reduce(lambda total, leaf: total - leaf, {"a": 10, "b": [1, 2]})
        7
    """
    check_callable("tree_reduce", "function", function, "a function of two values", _ORDER)
    leaves = flatten(tree, is_leaf)[0]
    if initializer is not UNSPECIFIED:
        return functools.reduce(function, leaves, initializer)
    if not leaves:
        raise TypeError("tree_reduce: the tree has no leaves; expected one at least, or an initializer; give one")
    return functools.reduce(function, leaves)


def tree_reduce_associative(
    operation: Callable[[PyTree, PyTree], PyTree],
    tree: Tree,
    *,
    identity: object = UNSPECIFIED,
    is_leaf: IsLeaf | None = None,
) -> PyTree:
    """Combines the leaves by halves, for results of equal size: `op(op(a, b), op(c, d))`.

    Raises:
        TypeError: There are no leaves and no identity.
    """
    check_callable("tree_reduce_associative", "operation", operation, "a function of two values", _ORDER)
    leaves = flatten(tree, is_leaf)[0]
    if not leaves and identity is UNSPECIFIED:
        raise TypeError("tree_reduce_associative: the tree has no leaves; expected one at least, or an identity")

    def halves(begin: int, end: int) -> Any:
        if end - begin == 1:
            return leaves[begin]
        middle = begin + (end - begin) // 2
        return operation(halves(begin, middle), halves(middle, end))

    return halves(0, len(leaves)) if leaves else identity


def tree_all(tree: Tree, *, is_leaf: IsLeaf | None = None) -> bool:
    """Returns whether all leaves are true."""
    return all(flatten(tree, is_leaf)[0])


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Tree) -> PyTree:
    """Returns the inner tree of outer trees for an outer tree of inner trees.

    Args:
        outer_treedef: Structure of the outer tree.
        inner_treedef: Structure of each inner tree; None for that of the first.
        pytree_to_transpose: The outer tree of inner trees.

    Raises:
        TypeError: The number of leaves is not the product of outer's and inner's.
        ValueError: inner_treedef is None and the tree does not begin with the outer structure, or that has no leaf.

    Example:
        >>> import artifex_devices as ad
        >>> ad.tree.transpose(ad.tree.structure([0, 0]), ad.tree.structure({"a": 0}), [{"a": 1}, {"a": 2}])
        {'a': [1, 2]}
    """
    outer = as_treedef("tree_transpose", outer_treedef)
    leaves, treedef = flatten(pytree_to_transpose)
    if inner_treedef is None:
        subtrees = outer.flatten_up_to(pytree_to_transpose)
        if not subtrees:
            raise ValueError("tree_transpose: the outer structure has no leaf to take the inner one from; give inner")
        inner = flatten(subtrees[0])[1]
    else:
        inner = as_treedef("tree_transpose", inner_treedef)
    size, count = inner.num_leaves, outer.num_leaves
    if treedef.num_leaves != size * count:
        raise failure(
            TypeError,
            "tree_transpose",
            f"{treedef.num_leaves} leaves in {treedef}",
            expected=f"{size * count}, as in {outer.compose(inner)}",
        )
    return inner.unflatten([outer.unflatten(leaves[place::size]) for place in range(size)])


def all_leaves(iterable: Iterable[PyTree], is_leaf: IsLeaf | None = None) -> bool:
    """Returns whether all items are leaves.

    Raises:
        TypeError: `iterable` cannot be iterated over.

    Example:
        >>> from artifex_devices import tree_util
        >>> tree_util.all_leaves([1, "text"]), tree_util.all_leaves([1, None])
        (True, False)
    """
    check_type("all_leaves", "iterable", iterable, Iterable, "an iterable", "write [value]")
    items = bounded_list("all_leaves", "iterable", iterable)
    if is_leaf is None:
        return not any(is_tree_node(type(item)) for item in items)
    leaves = flatten(items, is_leaf)[0]
    return len(leaves) == len(items) and all(item is leaf for item, leaf in zip(items, leaves, strict=True))


def _or_none(one_level: Callable[[Any], Any]) -> PyTree:
    """Makes a function of the registry return None for a leaf, as JAX's do."""
    return staticmethod(lambda tree: one_level(tree) if is_tree_node(type(tree)) else None)


class _Registry:
    """Functions of this module by the names of JAX's registry."""

    flatten = staticmethod(tree_flatten)
    flatten_with_path = staticmethod(tree_flatten_with_path)
    flatten_one_level = _or_none(flatten_one_level)
    flatten_one_level_with_keys = _or_none(flatten_one_level_with_keys)
    is_node = staticmethod(is_tree_node)
    register_node = staticmethod(register_pytree_node)
    register_dataclass_node = staticmethod(register_dataclass)

    def __repr__(self) -> str:
        return "default_registry"

    def __reduce__(self) -> str:
        return "default_registry"


default_registry = _Registry()
