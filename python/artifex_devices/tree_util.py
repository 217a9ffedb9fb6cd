# SPDX-License-Identifier: Apache-2.0
"""Trees of arrays: the names of `jax.tree_util`, on optree, which is imported at the first call.

Dicts flatten in sorted key order; None is a node without leaves; subclasses of list, tuple and dict are leaves, named
tuples are nodes.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import optree

__all__ = [
    "keystr",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_map",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
]

IsLeaf = Callable[[Any], bool]


def tree_flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], optree.PyTreeSpec]:
    """Leaves of a tree, in order, and its structure.

    Args:
        tree: Any nesting of dicts, lists, tuples, named tuples and None.
        is_leaf: Says where to stop early.

    Raises:
        ValueError: Dict keys cannot be sorted.

    Example:
        >>> from artifex_devices import tree_util
        >>> tree_util.tree_flatten({"b": 2, "a": (1, None)})[0]
        [1, 2]
    """
    import optree

    leaves, treedef = optree.tree_flatten(tree, is_leaf)
    return leaves, _with_sorted_dicts(treedef)


@functools.lru_cache(maxsize=256)
def _with_sorted_dicts(treedef: optree.PyTreeSpec) -> optree.PyTreeSpec:
    """The structure whose dicts come back in sorted key order, as in JAX; optree remembers the order of insertion."""
    import optree

    def sort_node(node: optree.PyTreeSpec) -> optree.PyTreeSpec:
        if node.type not in (dict, defaultdict):
            return node
        children = dict(zip(node.entries(), node.children(), strict=True))
        try:
            keys = sorted(children)
        except TypeError as error:
            raise ValueError(
                f"tree_flatten: the keys of a dict cannot be sorted; expected keys of one type, got {node.entries()!r} "
                f"({error}); use an OrderedDict to keep an order of your own"
            ) from None
        if node.type is dict:
            return optree.treespec_dict({key: children[key] for key in keys})
        factory: Any = node.unflatten(range(len(keys)))
        return optree.treespec_defaultdict(factory.default_factory, {key: children[key] for key in keys})

    return treedef.transform(sort_node)


def tree_unflatten(treedef: optree.PyTreeSpec, leaves: Iterable[Any]) -> Any:
    """The inverse of tree_flatten; ValueError for a wrong number of leaves."""
    import optree

    return optree.tree_unflatten(treedef, leaves)


def tree_leaves(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """Leaves of a tree, in order."""
    import optree

    return optree.tree_leaves(tree, is_leaf)


def tree_structure(tree: Any, is_leaf: IsLeaf | None = None) -> optree.PyTreeSpec:
    """The structure of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any:
    """Calls `f` on each leaf (and what stands there in `rest`) and returns the tree of results.

    Raises:
        ValueError: A tree of `rest` does not have the structure of `tree`.
    """
    # f is called from here and not from optree, so that no foreign C++ frame lies under it.
    leaves, treedef = tree_flatten(tree, is_leaf)
    others = [treedef.flatten_up_to(other) for other in rest]
    return treedef.unflatten([f(*values) for values in zip(leaves, *others, strict=True)])


def tree_flatten_with_path(
    tree: Any, is_leaf: IsLeaf | None = None
) -> tuple[list[tuple[tuple[Any, ...], Any]], optree.PyTreeSpec]:
    """As tree_flatten, each leaf with its path: a tuple of keys that `keystr` writes out."""
    leaves, treedef = tree_flatten(tree, is_leaf)
    return list(zip((tuple(path) for path in treedef.accessors()), leaves, strict=True)), treedef


def tree_map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any:
    """As tree_map, with the leaf's path as the first argument of `f`."""
    leaves, treedef = tree_flatten(tree, is_leaf)
    others = [treedef.flatten_up_to(other) for other in rest]
    paths = [tuple(path) for path in treedef.accessors()]
    return treedef.unflatten([f(*values) for values in zip(paths, leaves, *others, strict=True)])


def keystr(path: Sequence[Any]) -> str:
    """A path as Python would write it.

    Example:
        >>> from artifex_devices import tree_util
        >>> [(path, _)] = tree_util.tree_flatten_with_path({"a": [1]})[0]
        >>> tree_util.keystr(path)
        "['a'][0]"
    """
    return "".join(
        entry.codify(
            "",
        )
        for entry in path
    )
