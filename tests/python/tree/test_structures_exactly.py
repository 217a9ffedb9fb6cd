# SPDX-License-Identifier: Apache-2.0
"""Structures of trees: their parts, their pickles, and what is refused, word for word."""

from __future__ import annotations

import copy
import dataclasses
import functools
import pickle
from collections import OrderedDict, defaultdict, namedtuple

import artifex_devices as ad
import pytest
from artifex_devices import tree_util, unpickle
from artifex_devices.tree_util import DictKey, GetAttrKey, Partial, PyTreeDef, SequenceKey

LEAF = tree_util.tree_structure(1)

Point = namedtuple("Point", "x y")

TREES = [
    1,
    None,
    (),
    [],
    {},
    [1, 2],
    (1, (2, 3), []),
    {"b": 1, "a": [2, None]},
    OrderedDict([("b", 1), ("a", 2)]),
    defaultdict(list, {"k": [1, 2]}),
    Point(1, (2, 3)),
    Partial(max, 1, key=2),
]


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: type(tree).__name__)
def test_a_structure_is_equal_to_that_of_its_data_and_children(tree):
    structure = tree_util.tree_structure(tree)
    again = PyTreeDef.from_node_data_and_children(None, structure.node_data(), structure.children())
    assert again == structure
    assert hash(again) == hash(structure)
    assert again.num_leaves == structure.num_leaves == len(tree_util.tree_leaves(tree))
    assert pickle.loads(pickle.dumps(structure)) == structure
    assert copy.deepcopy(structure) == structure
    assert structure.num_nodes == 1 + sum(child.num_nodes for child in structure.children())


@pytest.mark.parametrize(
    ("tree", "data", "nodes"),
    [
        (1, None, 1),
        (None, (type(None), None), 1),
        ([1, [2, 3]], (list, None), 5),
        ({"b": 1, "a": 2}, (dict, ["a", "b"]), 3),
        (Point(1, 2), (Point, None), 3),
        ((), (tuple, None), 1),
    ],
)
def test_data_of_the_topmost_node(tree, data, nodes):
    structure = tree_util.tree_structure(tree)
    assert structure.node_data() == data
    assert structure.num_nodes == nodes
    assert tree_util.treedef_is_leaf(structure) == (nodes == 1)


def test_walk_calls_functions_from_the_leaves_to_the_top():
    structure = tree_util.tree_structure({"b": (1, []), "a": None, "c": [2, 3]})
    seen = []

    def node(children, data):
        seen.append((children, data))
        return sum(children)

    assert structure.walk(node, lambda leaf: leaf * 10, [1, 2, 3]) == 60
    assert seen == [((), None), ((), None), ((10, 0), None), ((20, 30), None), ((0, 10, 50), ["a", "b", "c"])]
    assert structure.walk(lambda children, data: children, None, "xyz") == ((), ("x", ()), ("y", "z"))
    assert LEAF.walk(node, None, [5]) == 5


def refused(call, error=ValueError):
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


def test_wrong_numbers_of_leaves_are_refused():
    structure = tree_util.tree_structure([1, 2])
    assert refused(lambda: structure.walk(max, None, [1])) == (
        "walk: there are 1 leaves; expected 2; give one for each leaf"
    )
    assert refused(lambda: structure.unflatten([1, 2, 3])) == (
        "tree_unflatten: 3 leaves for PyTreeDef([*, *]); expected 2, got 3; give one value for each leaf, in the "
        "order of tree_flatten"
    )
    assert structure.unflatten(iter("ab")) == ["a", "b"]
    assert "leaves is 3 (int); expected an iterable; write [value]" in refused(
        lambda: structure.unflatten(3), TypeError
    )
    assert "f_node is 3 (int)" in refused(lambda: structure.walk(3, None, [1, 2]), TypeError)
    assert "f_leaf is 3 (int)" in refused(lambda: structure.walk(max, 3, [1, 2]), TypeError)


def build(data, *children):
    return PyTreeDef.from_node_data_and_children(None, data, children)


def test_data_that_children_do_not_fit_are_refused():
    name = "from_node_data_and_children"
    assert refused(lambda: build(None, LEAF)) == f"{name}: a leaf has no children, got 1"
    assert build(None) == LEAF
    for data, count in [
        ((dict, ["a"]), 2),
        ((dict, ["a", "b"]), 1),
        ((OrderedDict, ["a"]), 0),
        ((defaultdict, (list, ["a"])), 2),
        ((Point, None), 1),
        ((type(None), None), 1),
        ((list, 3), 1),
    ]:
        assert refused(lambda data=data, count=count: build(data, *[LEAF] * count)).startswith(
            f"{name}: {count} children do not fit node_data; expected one for each key or field, got ("
        )
    assert "node_data is [1] (list); expected None or a pair (type, data)" in refused(lambda: build([1]), TypeError)
    assert "node_data is (1, 2, 3) (tuple); expected None or a pair" in refused(lambda: build((1, 2, 3)), TypeError)
    assert "<class 'int'> is not a type of nodes; register it first" in refused(lambda: build((int, None)))
    assert "treedef is 3 (int); expected a PyTreeDef" in refused(lambda: build((list, None), 3), TypeError)
    assert "objects of this class are not made by calling it" in refused(PyTreeDef, TypeError)
    assert "objects of this class are not made by calling it" in refused(lambda: PyTreeDef(None, -1), TypeError)


@pytest.mark.parametrize(
    ("node", "count"),
    [
        ((list, None, 2), 1),
        ((list, None, 2), 2.0),
        ((list, 1, 2), 2),
        ((list, None, -1), -1),
        ((int, None, 2), 2),
        ((dict, ("a",), 2), 2),
        ((dict, ["a", "b"], 2), 2),
        ((defaultdict, (list, ("a",), 1), 1), 1),
        ((defaultdict, (list, ["a"]), 1), 1),
        ((defaultdict, (list, ("a",)), 2), 2),
        ((Point, None, 1), 1),
        ((type(None), None, 1), 1),
        ((list, None), 0),
        (3, 1),
    ],
)
def test_pickles_that_form_no_structure_are_refused(node, count):
    assert refused(lambda: unpickle.tree_structure(node, count)).startswith(
        "PyTreeDef: the pickle's nodes or its number of leaves do not form a structure; expected the pickle of a"
    )


def test_pickles_of_older_versions_are_read():
    assert unpickle.tree_structure(None, 1) == LEAF
    assert unpickle.tree_structure((list, None, 2), 2) == tree_util.tree_structure([1, 2])
    assert unpickle.tree_structure((type(None), None, 0), 0) == tree_util.tree_structure(None)
    assert unpickle.tree_structure((dict, ("a",), 1), 1) == tree_util.tree_structure({"a": 1})


class Pair:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def tree_flatten(self):
        return (self.x, self.y), "data"

    @classmethod
    def tree_unflatten(cls, data, children):
        assert data == "data"
        return cls(*children)


@pytest.mark.thread_unsafe(reason="it registers a class of the module once")
def test_a_registered_class_has_numbers_as_keys_and_one_with_keys_has_them():
    tree_util.register_pytree_node_class(Pair)
    assert tree_util.tree_flatten_with_path(Pair(1, [2]))[0] == [
        ((tree_util.FlattenedIndexKey(0),), 1),
        ((tree_util.FlattenedIndexKey(1), SequenceKey(0)), 2),
    ]
    doubled = tree_util.tree_map(lambda leaf: 2 * leaf, Pair(1, [2]))
    assert (doubled.x, doubled.y) == (2, [4])
    assert "Pair is a node of trees already; expected another type" in refused(
        lambda: tree_util.register_pytree_node_class(Pair)
    )

    class Named(Pair):
        def tree_flatten_with_keys(self):
            return [(GetAttrKey("x"), self.x), ["second", self.y]], "data"

    tree_util.register_pytree_with_keys_class(Named)
    paths = [path for path, _ in tree_util.tree_leaves_with_path(Named(1, 2))]
    assert paths == [(GetAttrKey("x"),), ("second",)]
    assert tree_util.keystr(paths[0]) == ".x"
    assert type(tree_util.tree_map(str, Named(1, 2))) is Named


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ([1, 2], "returned [1, 2]; expected a pair (children, data), with an iterable of children"),
        ((1, 2, 3), "returned (1, 2, 3); expected a pair (children, data)"),
        ((1, None), "returned (1, None); expected a pair (children, data)"),
    ],
)
def test_flatten_functions_return_pairs(result, message):
    class Odd:
        pass

    tree_util.register_pytree_node(Odd, lambda node: result, lambda data, children: Odd())
    assert message in refused(lambda: tree_util.tree_flatten(Odd()))


@pytest.mark.parametrize("child", [1, (1,), (1, 2, 3), "ab"])
def test_flatten_functions_with_keys_return_pairs_for_children(child):
    class Odd:
        pass

    tree_util.register_pytree_with_keys(Odd, lambda node: ([child], None), lambda data, children: Odd())
    assert refused(lambda: tree_util.tree_flatten(Odd())) == (
        f"tree_flatten: flatten_with_keys of Odd returned {child!r} for a child; expected a pair (key, child)"
    )


def test_functions_of_a_registration_are_checked():
    class Odd:
        pass

    name = "register_pytree_node"
    assert refused(lambda: tree_util.register_pytree_node(Odd, None, max), TypeError) == (
        f"{name}: flatten_func is None; expected a function; write one"
    )
    assert f"{name}: flatten_func is 1 (int)" in refused(lambda: tree_util.register_pytree_node(Odd, 1, max), TypeError)
    assert f"{name}: flatten_with_keys is 1 (int)" in refused(
        lambda: tree_util.register_pytree_node(Odd, max, max, 1), TypeError
    )
    assert "has no tree_unflatten; expected a class with the class method" in refused(
        lambda: tree_util.register_pytree_node_class(Odd), AttributeError
    )


@dataclasses.dataclass
class Layer:
    weight: float
    bias: float
    name: str = ad.tree.static(default="layer")
    count: int = dataclasses.field(default=0, init=False)


@pytest.mark.thread_unsafe(reason="it registers a class of the module once")
def test_the_fields_of_a_dataclass_are_named_once():
    def register(data, meta, drop=(), cls=Layer):
        return refused(lambda: tree_util.register_dataclass(cls, data, meta, drop))

    assert register(["weight"], ["name"]).startswith(
        "register_dataclass: ['bias'] are in neither list (name them in drop_fields to leave them out); expected "
        "data_fields and meta_fields to name each field of Layer once, got data_fields=['weight'] meta_fields=['name']"
    )
    assert "['name'] are in both lists" in register(["weight", "bias", "name"], ["name"])
    assert "['count'] are not fields with init=True, or are dropped" in register(["weight", "bias", "count"], ["name"])
    assert "['bias'] are not fields with init=True, or are dropped" in register(["weight", "bias"], ["name"], ["bias"])
    assert "only one list of fields; expected data_fields and meta_fields or neither" in refused(
        lambda: tree_util.register_dataclass(Layer, ["weight"]), TypeError
    )
    assert "only one list of fields" in refused(lambda: tree_util.register_dataclass(Layer, None, ["name"]), TypeError)
    assert "is not a dataclass; expected one, or data_fields and meta_fields" in refused(
        lambda: tree_util.register_dataclass(Pair), TypeError
    )
    assert "data_fields is 'ab' (str); expected a sequence of names" in refused(
        lambda: tree_util.register_dataclass(Pair, "ab", ()), TypeError
    )
    tree_util.register_dataclass(Layer, ["weight", "bias"], ["name"])
    layer = Layer(1.0, 2.0, "last")
    assert tree_util.tree_map(lambda leaf: -leaf, layer) == Layer(-1.0, -2.0, "last")
    assert [tree_util.keystr(path) for path, _ in tree_util.tree_leaves_with_path(layer)] == [".weight", ".bias"]
    assert tree_util.tree_structure(layer) != tree_util.tree_structure(Layer(1.0, 2.0, "first"))


def test_partial_functions_are_nodes_that_are_not_merged():
    inner = functools.partial(pow, 2)
    outer = Partial(inner, 3)
    assert outer() == 8
    assert tree_util.tree_leaves(outer) == [3]
    assert tree_util.tree_structure(outer) == tree_util.tree_structure(Partial(inner, 4))
    assert tree_util.tree_structure(outer) != tree_util.tree_structure(Partial(functools.partial(pow, 2), 3))
    assert repr(outer.func) == repr(inner)
    assert tree_util.tree_map(lambda leaf: leaf + 1, Partial(dict, a=1))() == {"a": 2}


def test_flatten_up_to_returns_subtrees_and_explains_differences():
    structure = tree_util.tree_structure({"a": 1, "b": [2, 3]})
    assert structure.flatten_up_to({"a": (1, 2), "b": [{"c": 3}, 4]}) == [(1, 2), {"c": 3}, 4]
    assert refused(lambda: structure.flatten_up_to({"a": 1, "b": [2]})).startswith(
        "flatten_up_to: the tree does not begin with this structure; "
    )
    assert refused(lambda: structure.flatten_up_to({"a": 1, 3: 2})).startswith("flatten_up_to: the tree does not begin")
    composed = structure.compose(tree_util.tree_structure((1, 2)))
    assert composed == tree_util.tree_structure({"a": (1, 2), "b": [(1, 2), (3, 4)]})
    assert composed.paths()[2] == (DictKey("b"), SequenceKey(0), SequenceKey(0))
    assert tree_util.treedef_tuple([structure, LEAF]).unflatten([1, 2, 3, 4]) == ({"a": 1, "b": [2, 3]}, 4)
    assert tree_util.treedef_children(structure) == [LEAF, tree_util.tree_structure([2, 3])]
