# SPDX-License-Identifier: Apache-2.0
"""Trees in the compiled core: what repeats, what changes while it is opened, what is too deep or made up."""

import sys

import pytest
from artifex_devices import tree, tree_util
from hypothesis import given
from hypothesis import strategies as st
from many_threads import IS_FREE_THREADED

KEYS = st.one_of(st.text(max_size=3), st.sampled_from(["w", "b", "ä", "漢"]))
TREES = st.recursive(
    st.integers() | st.none() | st.text(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=20)
        | st.dictionaries(st.integers(), inner, max_size=4)
    ),
    max_leaves=60,
)


def expected(value):
    """Leaves in order and the structure, by plain recursion."""
    if value is None:
        return [], (type(None), None, 0)
    if type(value) not in (dict, list, tuple):
        return [value], None
    data = tuple(sorted(value)) if type(value) is dict else None
    children = [value[key] for key in data] if type(value) is dict else value
    found = [expected(child) for child in children]
    nodes = tuple(node for _, node in found)
    leaves = [leaf for part, _ in found for leaf in part]
    return leaves, (type(value), data, nodes if any(nodes) else len(nodes))


@given(TREES)
def test_flatten_and_unflatten_are_what_plain_recursion_says(value):
    leaves, treedef = tree.flatten(value)
    assert (leaves, treedef._node) == expected(value)
    assert treedef.unflatten(leaves) == value
    assert treedef.flatten_up_to(value) == leaves
    assert tree.map(lambda first, second: (first, second), value, value) == treedef.unflatten(
        [(leaf, leaf) for leaf in leaves]
    )


@given(st.lists(st.lists(KEYS, max_size=4, unique=True), max_size=30))
def test_dicts_that_repeat_in_any_order_of_their_keys(orders):
    dicts = [{key: number for number, key in enumerate(order)} for order in orders]
    leaves, treedef = tree.flatten(dicts)
    assert leaves == [one[key] for one in dicts for key in sorted(one)]
    assert treedef == tree.structure(dicts)
    assert [list(one) for one in treedef.unflatten(leaves)] == [sorted(one) for one in dicts]


def test_equal_keys_that_are_different_objects_stay_as_they_are():
    dicts = [{1: "a", 2: "b"}, {True: "c", 2: "d"}, {1.0: "e", 2.0: "f"}, {1: "g", 2: "h"}]
    back = tree.map(lambda leaf: leaf, dicts)
    assert [[type(key) for key in one] for one in back] == [[int, int], [bool, int], [float, float], [int, int]]
    assert back == dicts


@pytest.mark.parametrize("count", [3, 16, 17, 200])
def test_keys_that_are_not_texts_are_sorted_as_python_sorts(count):
    numbers = {number * 7 % count: number for number in range(count)}
    assert tree.leaves([numbers, numbers]) == 2 * [numbers[key] for key in sorted(numbers)]
    pairs = {(number * 7 % count, "x"): number for number in range(count)}
    assert tree.leaves(pairs) == [pairs[key] for key in sorted(pairs)]


@pytest.mark.parametrize("count", [2, 20])
def test_keys_that_cannot_be_sorted_name_the_path_however_often(count):
    wrong = {number if number else "text": number for number in range(count)}
    for _ in range(2):
        with pytest.raises(ValueError, match=r"the keys of the dict at \['a'\]\[0\] cannot be sorted"):
            tree.flatten({"a": [wrong]})


def test_an_error_of_a_key_is_kept_and_an_interrupt_passes():
    class Key:
        def __init__(self, error):
            self.error = error

        def __lt__(self, other):
            raise self.error

    with pytest.raises(ValueError, match=r"cannot be sorted.*no order"):
        tree.flatten({Key(ArithmeticError("no order")): 1, Key(ArithmeticError("no order")): 2})
    with pytest.raises(KeyboardInterrupt):
        tree.flatten({Key(KeyboardInterrupt()): 1, Key(KeyboardInterrupt()): 2})


class Meddler:
    """Changes something while it is taken apart."""

    def __init__(self, change):
        self.change = change


tree_util.register_pytree_node(Meddler, lambda node: (node.change() or (1,), None), lambda _, children: children)


def test_containers_that_change_while_they_are_opened_do_no_harm():
    small = {"a": Meddler(lambda: small.clear()), "b": object(), "c": [2]}
    assert len(tree.leaves(small)) == 3
    big = {f"{number:02}": [number] for number in range(40)}
    big["00"] = Meddler(lambda: big.clear())
    assert tree.leaves(big) == [1, *range(1, 40)]
    shrinking = [Meddler(lambda: shrinking.__delitem__(slice(1, None))), 2, [3], 4]
    leaves, treedef = tree.flatten(shrinking)
    assert leaves == [1]
    assert repr(treedef) == "PyTreeDef([CustomNode(Meddler[None], [*])])"
    growing = [Meddler(lambda: growing.append(5)), 2]
    assert tree.leaves(growing) == [1, 2]


def flattened_or_error(values):
    try:
        return tree.leaves(values)
    except KeyError:
        return KeyError


def test_a_key_whose_comparison_empties_the_dict():
    """Free-threaded builds of Python flatten a copy of the dict."""

    class Key(int):
        def __lt__(self, other):
            values.clear()
            return int(self) < int(other)

        __hash__ = int.__hash__

    values = {Key(2): "b", Key(1): "a"}
    assert flattened_or_error(values) == (["a", "b"] if IS_FREE_THREADED else KeyError)
    assert values == {}
    values.update({Key(number): number for number in range(40, 0, -1)})
    assert flattened_or_error(values) == (list(range(1, 41)) if IS_FREE_THREADED else KeyError)


@pytest.mark.parametrize("make", [lambda inner: [inner], lambda inner: (inner,), lambda inner: {"a": inner}])
def test_too_deep_is_an_error_and_no_crash(make):
    deep = make(0)
    for _ in range(400):
        deep = make(deep)
    assert tree.leaves(deep) == [0]
    assert tree.leaves(tree.unflatten(tree.structure(deep), [1])) == [1]
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(30_000)
    try:
        for _ in range(2000):
            deep = make(deep)
        with pytest.raises(RecursionError, match="nested too deep; expected at most 1000 levels"):
            tree.flatten(deep)
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize(
    "node",
    [
        5,
        (dict,),
        (dict, None, 1),
        (dict, ("a",), 2),
        (dict, ("a", "b"), (None,)),
        ("dict", ("a",), 1),
        (list, None, -1),
        (list, None, 1 << 70),
        (list, None, 10**12),
        (list, None, [None]),
        (tuple, None, (7,)),
        (list, None, 2),
    ],
)
def test_structures_that_somebody_made_up_are_refused(node):
    made_up = tree_util.PyTreeDef(node, 1)
    with pytest.raises(TypeError, match="PyTreeDef: a node is not"):
        made_up.unflatten([1])
