# SPDX-License-Identifier: Apache-2.0
"""The structure of a tree.

A node is (type, data, children). `children` is a number if all are leaves, else a tuple of nodes with None for a leaf.
So structures compare, hash and pickle as tuples.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from artifex_devices._base.checks import bounded_list, check_callable, check_type, failure, wrong_type
from artifex_devices._base.leaf_types import PyTree, Tree
from artifex_devices._base.public_path import public, unpickles
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core.internal import (
    tree_build,
    tree_collect,
    tree_compose,
    tree_equal,
    tree_num_leaves,
    tree_of_rows,
    tree_paths,
    tree_rows,
    tree_text,
)
from artifex_devices._tree.mismatch import explain
from artifex_devices._tree.nodes import (
    Aux,
    NoneType,
    UnsortableKeysError,
    data_of_level,
    has_same_data,
    is_named_tuple,
    is_tree_node,
    keys_of,
    make_node,
    one_level,
    public_data,
)

NodeData: TypeAlias = Any  # what a class says about its instances beside their children
Node = tuple[type, Any, Any]


def node_with(typ: type, data: object, children: tuple[Node | None, ...]) -> Node:
    """Returns the node with these children."""
    return typ, data, (children if any(children) else len(children))


@public("artifex_devices.tree_util")
class PyTreeDef:
    """The structure of a tree: its nodes without the leaves.

    Returned by `tree.structure` and `tree.flatten`. Immutable; equal where types, keys, registered data and the places
    of leaves are; hashable, also where registered data are not; picklable where keys and data are.

    Example:
        >>> import artifex_devices as ad
        >>> ad.tree.structure({"b": (1, 2), "a": None})
        PyTreeDef({'a': None, 'b': (*, *)})
    """

    __slots__ = ("__weakref__", "_node", "_num_leaves")

    def __init__(self, _node: Node | None = None, _num_leaves: int = -1) -> None:
        if type(_num_leaves) is not int or _num_leaves < 0:
            raise failure(
                TypeError,
                "PyTreeDef",
                "objects of this class are not made by calling it",
                expected="no call",
                fix="use tree.structure(x)",
            )
        self._node = _node
        self._num_leaves = _num_leaves

    @property
    def num_leaves(self) -> int:
        """Number of leaves."""
        return self._num_leaves

    @property
    def num_nodes(self) -> int:
        """Number of nodes and leaves."""
        return sum(1 if row is None or type(row[2]) is not int else 1 + row[2] for row in tree_rows(self._node))

    def unflatten(self, leaves: Iterable[PyTree]) -> PyTree:
        """Returns the tree of this structure with these leaves.

        Raises:
            ValueError: There are too few or too many leaves.
        """
        values = leaves if type(leaves) is list else _values("tree_unflatten", "leaves", leaves)
        if len(values) != self._num_leaves:
            raise failure(
                ValueError,
                "tree_unflatten",
                f"{len(values)} leaves for {safe_repr(self)}",
                expected=self._num_leaves,
                got=len(values),
                fix="give one value for each leaf, in the order of tree_flatten",
            )
        return tree_build(self._node, values, make_node)

    def flatten_up_to(self, tree: Tree) -> list[PyTree]:
        """Returns the parts of a tree where this structure has leaves: leaves or subtrees.

        Raises:
            ValueError: The tree does not begin with this structure; names every path where it differs.
        """
        found = self._up_to(tree)
        if found is not None:
            return found
        problems = explain(self._node, tree, "tree")
        raise ValueError(f"flatten_up_to: the tree does not begin with this structure; {problems}")

    def _up_to(self, tree: Tree) -> list[Any] | None:
        """Returns None where flatten_up_to raises, for callers that write the message themselves."""
        return tree_collect(self._node, tree, _children_with)

    def children(self) -> list[PyTreeDef]:
        """Returns the structures of the children of the topmost node."""
        return [_treedef_of(child) for child in _children(self._node)]

    def node_data(self) -> tuple[type, NodeData] | None:
        """Returns type and data of the topmost node, None for a leaf."""
        if self._node is None:
            return None
        typ, data, _ = self._node
        return typ, list(data) if typ is dict else public_data(data)

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """Returns the structure with `inner` in place of each leaf."""
        return _treedef_of(tree_compose(self._node, as_treedef("compose", inner)._node))

    def walk(
        self,
        f_node: Callable[[tuple[PyTree, ...], NodeData], PyTree],
        f_leaf: Callable[[PyTree], PyTree] | None,
        leaves: Iterable[PyTree],
    ) -> PyTree:
        """Calls `f_leaf` on each leaf, then `f_node` with the results of the children and the data of each node."""
        check_callable("walk", "f_node", f_node, fix="call walk(f_node, f_leaf, leaves)")
        if f_leaf is not None:
            check_callable("walk", "f_leaf", f_leaf, fix="call walk(f_node, f_leaf, leaves)")
        values = _values("walk", "leaves", leaves)
        if len(values) != self._num_leaves:
            raise failure(
                ValueError,
                "walk",
                f"there are {len(values)} leaves",
                expected=self._num_leaves,
                fix="give one for each leaf",
            )
        remaining = iter(values)
        results: list[Any] = []
        open_: list[tuple[Node | None, bool]] = [(self._node, False)]  # an explicit stack: trees may be deep
        while open_:
            node, has_results = open_.pop()
            children = _children(node)
            if node is None:
                leaf = next(remaining)
                results.append(leaf if f_leaf is None else f_leaf(leaf))
            elif children and not has_results:
                open_ += [(node, True), *((child, False) for child in reversed(children))]
            else:
                typ, data, _ = node
                first = len(results) - len(children)
                of_children = tuple(results[first:])
                del results[first:]
                results.append(f_node(of_children, list(data) if typ is dict else data_of_level(typ, data)))
        return results[0]

    @staticmethod
    def from_node_data_and_children(
        registry: object, node_data: tuple[type, NodeData] | None, children: Iterable[PyTreeDef]
    ) -> PyTreeDef:
        """Inverts `node_data` and `children`; `registry` is ignored, as `default_registry` is the only one."""
        name = "from_node_data_and_children"
        nodes = tuple(as_treedef(name, child)._node for child in _values(name, "children", children))
        if node_data is None:
            if nodes:
                raise ValueError(f"{name}: a leaf has no children, got {len(nodes)}")
            return LEAF
        pair: Any = node_data
        if not isinstance(pair, tuple) or len(pair) != 2:
            fix = "give what node_data() returned"
            raise wrong_type(name, "node_data", pair, "None or a pair (type, data)", fix)
        typ, data = pair
        if not is_tree_node(typ):
            raise ValueError(f"{name}: {safe_repr(typ)} is not a type of nodes; register it first")
        if typ is dict or typ is OrderedDict:
            data = tuple(data)
        elif typ is defaultdict:
            data = (data[0], tuple(data[1]))
        elif typ not in (list, tuple, NoneType) and not is_named_tuple(typ):
            data = Aux(data, None)
        if not _is_row((typ, data, len(nodes))):
            raise failure(
                ValueError,
                name,
                f"{len(nodes)} children do not fit node_data",
                expected="one for each key or field",
                got=safe_repr(node_data),
                fix="give what children() returned",
            )
        return _treedef_of(node_with(typ, data, nodes))

    def paths(self) -> list[tuple[Any, ...]]:
        """Returns the path of each leaf, as `tree_flatten_with_path` does."""
        return tree_paths(self._node, keys_of)

    def __eq__(self, other: object) -> bool:
        return tree_equal(self._node, other._node) if isinstance(other, PyTreeDef) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(tree_rows(self._node)))  # nested tuples of many levels could overflow a small stack

    def __repr__(self) -> str:
        return f"PyTreeDef({tree_text(self._node)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return from_pickle, (tree_rows(self._node), self._num_leaves)


LEAF = PyTreeDef(None, 1)


def _values(operation: str, name: str, values: Any) -> list[Any]:
    check_type(operation, name, values, Iterable, "an iterable", "write [value]")
    return bounded_list(operation, name, values)


def as_treedef(operation: str, treedef: Any) -> PyTreeDef:
    """Returns the argument; TypeError unless it is a PyTreeDef."""
    check_type(operation, "treedef", treedef, PyTreeDef, "a PyTreeDef", "take tree.structure(x)")
    return treedef  # type: ignore[no-any-return]


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Returns the structure of a tuple whose items have these structures.

    Raises:
        TypeError: An item is not a PyTreeDef.

    Example:
        >>> import artifex_devices as ad
        >>> ad.tree_util.treedef_tuple([ad.tree.structure([1, 2]), ad.tree.structure(3)])
        PyTreeDef(([*, *], *))
    """
    name = "treedef_tuple"
    nodes = tuple(as_treedef(name, treedef)._node for treedef in _values(name, "treedefs", treedefs))
    return _treedef_of(node_with(tuple, None, nodes))


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Returns the structures of the children of the topmost node."""
    return as_treedef("treedef_children", treedef).children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Returns whether the structure has one node only: a leaf, None or an empty container.

    Example:
        >>> import artifex_devices as ad
        >>> [ad.tree_util.treedef_is_leaf(ad.tree.structure(x)) for x in (1, (), [1])]
        [True, True, False]
    """
    return as_treedef("treedef_is_leaf", treedef).num_nodes == 1


def _children(node: Node | None) -> tuple[Node | None, ...]:
    if node is None:
        return ()
    children = node[2]
    return (None,) * children if type(children) is int else children


def _treedef_of(node: Node | None) -> PyTreeDef:
    return PyTreeDef(node, tree_num_leaves(node))


@unpickles("tree_structure")
def from_pickle(node: Any, num_leaves: Any) -> PyTreeDef:
    """Returns the structure of a pickle after checks; pickles of versions up to 0.1.0 hold the node itself."""
    try:
        rows = node if type(node) is list else tree_rows(node)
        node = tree_of_rows(rows)
        fits = type(num_leaves) is int and all(map(_is_row, rows)) and tree_num_leaves(node) == num_leaves
    except (LookupError, TypeError, ValueError):
        fits = False
    if not fits:
        raise failure(
            ValueError,
            "PyTreeDef",
            "the pickle's nodes or its number of leaves do not form a structure",
            expected="the pickle of a PyTreeDef",
            fix="pickle it again",
        )
    return PyTreeDef(node, num_leaves)


def _is_row(row: Any) -> bool:
    """Returns whether a row is a leaf, or a node of a known type with as many children as the data say."""
    if row is None:
        return True
    typ, data, children = row
    count = children if type(children) is int else children[0]
    if type(row) is not tuple or type(count) is not int or count < 0 or not is_tree_node(typ):
        return False
    if typ is dict or typ is OrderedDict:
        return type(data) is tuple and len(data) == count
    if typ is defaultdict:
        return type(data) is tuple and len(data) == 2 and type(data[1]) is tuple and len(data[1]) == count
    if typ is list or typ is tuple:
        return data is None
    if is_named_tuple(typ):
        return count == len(typ._fields)
    return typ is not NoneType or count == 0


def _children_with(tree: Tree, data: object) -> tuple[Any, ...] | None:
    """Returns the children of a node with this data, else None."""
    try:
        level = one_level(tree)
    except UnsortableKeysError:
        return None
    if level is None:
        return None
    children, found = level
    return children if has_same_data(type(tree), found, data) else None
