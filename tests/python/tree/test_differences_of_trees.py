# SPDX-License-Identifier: Apache-2.0
"""The places where a tree differs from a structure, word for word."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict, defaultdict, namedtuple

import artifex_devices as ad
import pytest
from artifex_devices import tree_util
from artifex_devices.tree_util import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey

Point = namedtuple("Point", "x y")


class Pair:
    def __init__(self, data, *children):
        self.data, self.children = data, children


tree_util.register_pytree_node(
    Pair, lambda pair: (pair.children, pair.data), lambda data, children: Pair(data, *children)
)


@pytest.mark.parametrize(
    ("prefix", "tree", "problem"),
    [
        ([1, 2], (1, 2), "at n: expected list of 2, got tuple of 2"),
        ([1, 2], [1], "at n: expected list of 2, got list of 1"),
        ([1, [2]], [1, 2], "at n[1]: expected list of 1, got a leaf or node of type int"),
        ({"a": [1]}, {"a": None}, "at n['a']: expected list of 1, got None"),
        ({"a": None}, {"a": 1}, "at n['a']: expected None, got a leaf or node of type int"),
        (
            {"a": 1, "b": 2},
            {"a": 1, "c": 2},
            "at n: expected dict with keys ['a', 'b'], got a dict that lacks ['b'] and has besides ['c']",
        ),
        ({"a": 1, "b": 2}, {"a": 1}, "at n: expected dict with keys ['a', 'b'], got a dict that lacks ['b']"),
        ({"a": 1}, {"a": 1, "b": 2}, "at n: expected dict with keys ['a'], got a dict that has besides ['b']"),
        ({"a": 1}, {"a": 1, 3: 2}, "at n: the keys cannot be sorted, got "),
        ({"a": 1}, [1], "at n: expected dict with keys ['a'], got list of 1"),
        ([1], {"b": 1, "a": 2}, "at n: expected list of 1, got dict with keys ['b', 'a']"),
        (
            OrderedDict(a=1, b=2),
            OrderedDict(b=1, a=2),
            "at n: expected OrderedDict with keys in the order ['a', 'b'], got ['b', 'a']",
        ),
        (
            defaultdict(list, a=1),
            defaultdict(int, a=1),
            "at n: expected defaultdict with factory <class 'list'>, got <class 'int'>",
        ),
        (
            defaultdict(list, a=1),
            defaultdict(list, b=1),
            "at n: expected defaultdict with keys ['a'], got a defaultdict that lacks ['a'] and has besides ['b']",
        ),
        ([1], defaultdict(list, b=1), "at n: expected list of 1, got defaultdict with keys ['b']"),
        (Point(1, [2]), Point(1, 2), "at n.y: expected list of 1, got a leaf or node of type int"),
        (Pair("a", 1), Pair("b", 1), "at n: expected Pair with data 'a', got 'b'"),
        (Pair("a", 1), Pair("a", 1, 2), "at n: expected Pair of 1, got 2 children"),
        (Pair("a", [1]), Pair("a", 1), "at n[<flat index 0>]: expected list of 1, got a leaf or node of type int"),
        ([1], list(range(9)), "at n: expected list of 1, got list of 9"),
        (dict.fromkeys(range(8), 0), 0, "expected dict with keys [0, 1, 2, 3, 4, 5, 6, 7], got"),
        (dict.fromkeys(range(9), 0), 0, "expected dict with keys [0, 1, 2, 3, 4, 5, 6, 7, ...], got"),
    ],
)
def test_each_kind_of_difference_is_named(prefix, tree, problem):
    errors = [str(error("n")) for error in tree_util.prefix_errors(prefix, tree)]
    assert len(errors) == 1
    assert errors[0].startswith("n is not a prefix: ")
    assert problem in errors[0]
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        tree_util.broadcast_prefix(prefix, tree)
    assert str(caught.value).startswith("broadcast_prefix: the prefix does not fit the full tree; at prefix")
    assert str(caught.value).endswith("; give one value, or a tree with the same outer structure")


def test_eight_differences_are_listed_and_the_others_counted():
    structure = tree_util.tree_structure([[0]] * 9)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        structure.flatten_up_to([0] * 9)
    text = str(caught.value)
    assert text.count("expected list of 1") == 8
    assert text.endswith("; and at 1 more places")
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        tree_util.tree_structure([[0]] * 8).flatten_up_to([0] * 8)
    assert str(caught.value).count("at tree[") == 8
    assert "more places" not in str(caught.value)
    assert len(tree_util.prefix_errors([[0]] * 9, [0] * 9)) == 9


def test_differences_come_in_the_order_of_the_tree():
    errors = tree_util.prefix_errors({"a": [[1], (1,)], "b": [1]}, {"a": [1, 2], "b": 3})
    assert [str(error("n")).partition(": expected")[0] for error in errors] == [
        "n is not a prefix: at n['a'][0]",
        "n is not a prefix: at n['a'][1]",
        "n is not a prefix: at n['b']",
    ]


def test_leaves_of_a_prefix_stand_for_subtrees():
    assert tree_util.broadcast_prefix(1, {"a": [2, 3], "b": None}) == [1, 1]
    assert tree_util.broadcast_prefix([None, 1], [None, (2, 3)]) == [1, 1]
    assert tree_util.broadcast_prefix([None, 1], [(4,), 2], lambda node: node is None) == [None, 1]
    assert tree_util.tree_broadcast([1, 2], [(3, 4), {"a": 5}]) == [(1, 1), {"a": 2}]


def test_values_for_each_leaf():
    first, second = ad.devices()[:2]

    def donated(donate, x):
        x = ad.device_put(x, first)
        ad.device_put(x, second, donate=donate)
        return [leaf.is_deleted() for leaf in tree_util.tree_leaves(x)]

    assert donated(True, [1, 2]) == [True, True]
    assert donated([True, False], [1, (2, 3)]) == [True, False, False]
    assert ad.device_put([1, (2, 3)], may_alias=[True, None])[0] == 1
    for options, x, message in [
        (
            {"donate": [True]},
            [1, 2],
            "donate is not a prefix: at donate: expected list of 1, got list of 2; give one value, or",
        ),
        (
            {"may_alias": [True, 3]},
            [1, 2],
            "may_alias is 3 (int); expected None or bool or a tree of these that is a prefix of x; give",
        ),
    ]:
        with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
            ad.device_put(x, **options)
        assert str(caught.value).startswith(f"device_put: {message}")


@pytest.mark.parametrize(
    ("key", "text", "representation", "simple"),
    [
        (SequenceKey(3), "[3]", "SequenceKey(idx=3)", "3"),
        (DictKey("a"), "['a']", "DictKey(key='a')", "a"),
        (DictKey(3), "[3]", "DictKey(key=3)", "3"),
        (GetAttrKey("a"), ".a", "GetAttrKey(name='a')", "a"),
        (FlattenedIndexKey(0), "[<flat index 0>]", "FlattenedIndexKey(key=0)", "0"),
    ],
)
def test_keys_have_texts_and_are_equal_by_class_and_value(key, text, representation, simple):
    assert (str(key), repr(key)) == (text, representation)
    assert tree_util.keystr([key, key]) == text * 2
    assert tree_util.keystr([key, "other"], simple=True, separator="/") == f"{simple}/other"
    assert copy.deepcopy(key) == pickle.loads(pickle.dumps(key)) == key
    assert hash(key) == hash(copy.copy(key))
    others = [
        SequenceKey(3),
        DictKey("a"),
        DictKey(3),
        GetAttrKey("a"),
        FlattenedIndexKey(0),
        FlattenedIndexKey(3),
        "a",
    ]
    assert [other for other in others if other == key] == [key]


def test_keys_are_checked():
    assert SequenceKey(True).idx is True or SequenceKey(True).idx == 1
    with pytest.raises(TypeError):
        SequenceKey("a")
    with pytest.raises(TypeError):
        FlattenedIndexKey(1.0)
    with pytest.raises(TypeError, match="GetAttrKey: name is 3"):
        GetAttrKey(3)
    with pytest.raises(TypeError, match="keystr: keys is 3"):
        tree_util.keystr(3)
    with pytest.raises(TypeError, match="keystr: separator is 3"):
        tree_util.keystr([], separator=3)


def test_all_leaves_are_those_of_the_function_too():
    assert tree_util.all_leaves([1, "a", 2.5])
    assert not tree_util.all_leaves([1, (2,)])
    assert not tree_util.all_leaves([None])
    assert tree_util.all_leaves([None, (1, 2)], lambda node: node is None or isinstance(node, tuple))
    assert not tree_util.all_leaves([None, (1, 2)], lambda node: node is None)
