# SPDX-License-Identifier: Apache-2.0
"""tree and tree_util: order, structures, paths, registered types, prefixes, errors; against JAX in tests/oracle."""

import copy
import dataclasses
import pickle
import subprocess
import sys
import threading
import time
from collections import OrderedDict, defaultdict, deque, namedtuple
from functools import partial

import artifex_devices as ad
import numpy as np
import optree
import pytest
from artifex_devices import tree, tree_util

Pair = namedtuple("Pair", "x y")


class Listing(list):
    pass


@tree_util.register_pytree_node_class
class Point:
    def __init__(self, x, y, unit="m"):
        self.x, self.y, self.unit = x, y, unit

    def tree_flatten(self):
        return (self.x, self.y), self.unit

    @classmethod
    def tree_unflatten(cls, unit, children):
        return cls(*children, unit)


@tree_util.register_pytree_with_keys_class
class Named:
    def __init__(self, **values):
        self.values = values

    def tree_flatten_with_keys(self):
        return [(tree_util.GetAttrKey(name), value) for name, value in self.values.items()], tuple(self.values)

    @classmethod
    def tree_unflatten(cls, names, children):
        return cls(**dict(zip(names, children, strict=True)))


@tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    weight: object
    bias: object = None
    name: str = tree.static(default="layer")


@tree_util.register_static
class Mode(str):
    pass


EXAMPLES = {
    "leaf": (1, [1], "*"),
    "none": (None, [], "None"),
    "empty": ([(), [], {}], [], "[(), [], {}]"),
    "tuple of one": ((1,), [1], "(*,)"),
    "dict": ({"b": 1, "a": (2, None)}, [2, 1], "{'a': (*, None), 'b': *}"),
    "named": (Pair(1, [2]), [1, 2], "CustomNode(namedtuple[Pair], [*, [*]])"),
    "ordered": (OrderedDict(b=1, a=2), [1, 2], "CustomNode(OrderedDict[('b', 'a')], [*, *])"),
    "default": (
        defaultdict(list, b=1, a=2),
        [2, 1],
        "CustomNode(defaultdict[(<class 'list'>, ('a', 'b'))], [*, *])",
    ),
    "registered": ([Point({"b": 1, "a": 2}, 3)], [2, 1, 3], "[CustomNode(Point[m], [{'a': *, 'b': *}, *])]"),
    "with keys": (Named(w=1, v=[2]), [1, 2], "CustomNode(Named[('w', 'v')], [*, [*]])"),
    "dataclass": (Layer(1), [1], "CustomNode(Layer[('layer',)], [*, None])"),
    "static": ([Mode("train"), 1], [1], "[CustomNode(Mode[train], []), *]"),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_leaves_and_text_of_the_structure(name):
    value, leaves, text = EXAMPLES[name]
    got, treedef = tree.flatten(value)
    assert got == leaves
    assert repr(treedef) == f"PyTreeDef({text})"
    assert treedef == tree.structure(value)
    assert treedef == tree.structure(value, is_leaf=lambda node: False)
    assert hash(treedef) == hash(tree.structure(value, is_leaf=lambda node: False))
    assert treedef.num_leaves == len(leaves)
    assert pickle.loads(pickle.dumps(treedef)) == treedef == copy.deepcopy(treedef)
    assert tree.structure(treedef.unflatten(got)) == treedef


@pytest.mark.parametrize(
    "leaf",
    [deque([1]), time.gmtime(0), Listing([1]), {1}, np.ones(2), ad.P("x"), range(3), "text", b"bytes", object(), int],
    ids=lambda leaf: type(leaf).__name__,
)
def test_what_is_a_leaf(leaf):
    for wrapped in (leaf, [leaf], {"a": (leaf, None)}, Pair(leaf, None), Point(leaf, [])):
        leaves = tree.leaves(wrapped)
        assert len(leaves) == 1
        assert leaves[0] is leaf
    assert not tree_util.is_tree_node(type(leaf))


def test_devices_arrays_and_shardings_are_leaves():
    device = ad.devices()[0]
    mesh = ad.Mesh(np.array([device]), ("x",))
    values = [device, mesh, ad.NamedSharding(mesh, ad.P()), ad.SingleDeviceSharding(device), ad.device_put(1.0)]
    assert all(map(lambda a, b: a is b, tree.leaves(values), values))
    assert tree.leaves({"a": Pair(*values[:2])}) == values[:2]


def test_unflatten_sorts_dicts_and_keeps_the_order_of_ordered_ones():
    got = tree.map(
        lambda leaf: leaf, {"b": {"z": 1, "y": 2}, "a": OrderedDict(d=3, c=4), "c": defaultdict(int, q=1, p=2)}
    )
    assert list(got) == ["a", "b", "c"]
    assert list(got["b"]) == ["y", "z"]
    assert list(got["a"]) == ["d", "c"]
    assert list(got["c"]) == ["p", "q"]
    assert got["c"].default_factory is int


def test_equal_keys_of_different_types_are_kept_apart_by_unflatten():
    # Structures compare equal, but nothing is taken from an earlier, equal one.
    for key in (1, True, 1.0):
        [got] = tree.map(lambda leaf: leaf, {key: [2]})
        assert type(got) is type(key)


def test_map_takes_deeper_trees_in_rest_and_none_in_place_of_leaves():
    assert tree.map(lambda *x: x, {"a": 1, "b": None}, {"a": (2, [3]), "b": None}) == {"a": (1, (2, [3])), "b": None}
    assert tree.map(lambda x, y: y, [1, 2], [None, 3]) == [None, 3]
    assert tree.map(lambda x: x, [1, None], is_leaf=lambda node: node is None) == [1, None]
    assert tree.map(lambda x: x is None, [1, None], is_leaf=lambda node: node is None) == [False, True]


def test_map_calls_f_from_python_frames_only():
    names = []

    def f(leaf):
        frame = sys._getframe(1)
        while frame.f_code.co_filename != __file__:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        return leaf

    tree.map(f, [Point(1, 2)])
    assert set(names) <= {"tree_map", "<listcomp>"}
    assert "tree_map" in names


@pytest.mark.parametrize(
    ("first", "other", "message"),
    [
        ({"a": [1]}, {"a": (1,)}, r"at rest\[0\]\['a'\]: expected list of 1, got tuple of 1"),
        ([1, 2], [1], r"at rest\[0\]: expected list of 2, got 1 children"),
        (
            {"a": 1},
            {"b": 1},
            r"at rest\[0\]: expected dict with keys \['a'\], got one that lacks \['a'\] and has besides",
        ),
        ([None], [1], r"at rest\[0\]\[0\]: expected None, got a leaf or node of type int"),
        (Point(1, 2), Point(1, 2, "km"), r"at rest\[0\]: expected Point with data 'm', got 'km'"),
        ([Pair(1, [2])], [Pair(1, 2)], r"at rest\[0\]\[0\]\.y: expected list of 1, got a leaf or node of type int"),
        (OrderedDict(a=1, b=2), OrderedDict(b=2, a=1), r"in the order \['a', 'b'\], got \['b', 'a'\]"),
        (defaultdict(int, a=1), defaultdict(list, a=1), r"with factory <class 'int'>, got <class 'list'>"),
        ({"a": 1}, OrderedDict(a=1), r"expected dict with keys \['a'\], got OrderedDict with keys \['a'\]"),
        ([(), ()], [1, 2], r"at rest\[0\]\[0\]: expected tuple of 0.*at rest\[0\]\[1\]: expected tuple of 0"),
    ],
)
def test_mismatches_name_their_paths(first, other, message):
    with pytest.raises(ValueError, match=f"tree_map: .*{message}"):
        tree.map(lambda *x: x, first, other)
    with pytest.raises(ValueError, match="tree_map_with_path: "):
        tree.map_with_path(lambda *x: x, first, other)
    with pytest.raises(ValueError, match="flatten_up_to: "):
        tree.structure(first).flatten_up_to(other)


def test_errors_of_several_rest_trees_come_together():
    with pytest.raises(ValueError, match=r"at rest\[0\]\[0\].*at rest\[2\]: expected list of 1, got tuple of 1"):
        tree.map(lambda *x: x, [[1]], [2], [[3]], ([4],))


def test_unflatten_counts_leaves():
    with pytest.raises(ValueError, match=r"3 leaves for .*; expected 2, got 3"):
        tree.unflatten(tree.structure((1, [2])), [1, 2, 3])
    with pytest.raises(TypeError, match=r"treedef is 5 .int.; expected a PyTreeDef"):
        tree.unflatten(5, [1])


@pytest.mark.parametrize("make", [dict, partial(defaultdict, int)], ids=["dict", "defaultdict"])
@pytest.mark.parametrize(
    ("wrap", "where"),
    [(lambda d: d, ""), (lambda d: {"x": [d]}, r" at \['x'\]\[0\]"), (lambda d: Pair(0, [d]), r" at \.y\[0\]")],
    ids=["bare", "in a list", "in a named tuple"],
)
def test_keys_that_cannot_be_sorted_are_an_error_that_names_the_path(make, wrap, where):
    value = wrap(make({1: 1, "a": 2}))
    message = rf"tree_flatten: the keys of the (default)?dict{where} cannot be sorted.*use an OrderedDict"
    for call in (tree.flatten, partial(tree.flatten, is_leaf=lambda node: False), ad.device_put):
        with pytest.raises(ValueError, match=message):
            call(value)
    with pytest.raises(ValueError, match=message):
        tree.flatten_with_path(value, is_leaf=lambda path, node: False, is_leaf_takes_path=True)
    assert tree.leaves(value, is_leaf=lambda node: isinstance(node, dict) and 1 in node)[-1] == {1: 1, "a": 2}


def nested(levels, wrap=lambda value: [value]):
    value = 1
    for _ in range(levels):
        value = wrap(value)
    return value


def containing_itself():
    value = {"a": [1]}
    value["a"].append((2, value))
    return value


class Endless:
    pass


tree_util.register_pytree_node(Endless, lambda node: ((Endless(),), None), lambda data, children: Endless())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (containing_itself(), r"contains itself; expected a tree, got the dict at the root again at \['a'\]\[1\]\[1\]"),
        ([1, [2, containing_itself()]], r"the dict at \[1\]\[1\] again at \[1\]\[1\]\['a'\]\[1\]\[1\]"),
        (nested(20000), r"nested too deep; expected at most 1000 levels.*at \[0\]\[0\]\[0\]\[0\]\[0\]\[0\]\.\.\."),
        (nested(20000, lambda value: Point(value, 1)), "nested too deep"),
        (nested(20000, lambda value: Pair(1, value)), "nested too deep"),
        (Endless(), "nested too deep"),
    ],
    ids=["itself", "itself below", "lists", "registered", "named tuples", "endless"],
)
def test_trees_without_end_are_errors(value, message):
    for call in (
        tree.flatten,
        tree.leaves,
        partial(tree.flatten, is_leaf=lambda node: False),
        partial(tree.map, lambda leaf: leaf),
        ad.device_put,
        ad.device_get,
        ad.block_until_ready,
    ):
        with pytest.raises(RecursionError, match=message):
            call(value)
    with pytest.raises(RecursionError, match=message):
        tree.flatten_with_path(value, is_leaf=lambda path, node: False, is_leaf_takes_path=True)


NODES = {
    "list": lambda value: [value],
    "tuple": lambda value: (value,),
    "dict": lambda value: {"a": value},
    "named tuple": lambda value: Pair(value, None),
    "OrderedDict": lambda value: OrderedDict(a=value),
    "defaultdict": lambda value: defaultdict(int, {"a": value}),
    "registered": lambda value: Point(value, None),
    "registered with keys": lambda value: Named(a=value),
    "registered in lists": lambda value: [value] if isinstance(value, Point) else Point(value, None),
}


def in_calls(levels, work):
    """work() with so many calls under way."""
    return work() if levels == 0 else in_calls(levels - 1, work)


@pytest.mark.parametrize(("levels", "calls"), [(999, 0), (1000, 0), (1000, 600)])
@pytest.mark.parametrize("wrap", NODES.values(), ids=NODES)
def test_trees_of_up_to_1000_levels_work_in_each_function_under_any_number_of_calls(wrap, levels, calls):
    def work():
        value, other = nested(levels, wrap), nested(levels - 1, wrap)
        leaves, treedef = tree.flatten(value)
        assert leaves == [1]
        for is_leaf in (lambda node: False, lambda node: None):
            assert tree.flatten(value, is_leaf=is_leaf) == (leaves, treedef)
        (found,), again = tree.flatten_with_path(value)
        assert (len(found[0]), found[1], again) == (levels, 1, treedef)
        stopping = tree.flatten_with_path(value, is_leaf=lambda path, node: False, is_leaf_takes_path=True)
        assert stopping == ([found], treedef)
        for made in (treedef.unflatten([2]), tree.map(lambda leaf, more: leaf + more, value, value)):
            assert tree.flatten(made) == ([2], treedef)
        assert treedef.flatten_up_to(value) == [1]
        assert repr(treedef).count("*") == 1
        assert hash(treedef) == hash(again)
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(treedef, protocol)) == treedef
        assert copy.deepcopy(treedef) == treedef != tree.structure(other)
        assert treedef.num_nodes > levels
        assert treedef.walk(lambda children, data: max(children, default=-1) + 1, lambda leaf: 0, [1]) == levels
        again = tree_util.PyTreeDef.from_node_data_and_children(None, treedef.node_data(), treedef.children())
        assert again == treedef
        assert tree.leaves(tree.broadcast(value, value)) == [1]
        assert tree_util.prefix_errors(value, value) == []
        with pytest.raises(ValueError, match=r"tree_map: .*rest\[0\]"):
            tree.map(lambda leaf, more: leaf, value, other)
        assert tree.leaves(ad.device_put(value)) == [1]

    in_calls(calls, work)


@pytest.mark.parametrize("wrap", NODES.values(), ids=NODES)
@pytest.mark.parametrize("inside", [1, None, ()], ids=["leaf", "None", "empty"])
def test_trees_of_1001_levels_are_refused_alike_by_each_function(wrap, inside):
    value = inside
    for _ in range(1000 if inside == () else 1001):
        value = wrap(value)
    for call in (
        tree.flatten,
        tree.structure,
        tree.flatten_with_path,
        partial(tree.flatten, is_leaf=lambda node: False),
        partial(tree.flatten_with_path, is_leaf=lambda path, node: False, is_leaf_takes_path=True),
        partial(tree.map, lambda leaf: leaf),
        ad.device_put,
    ):
        with pytest.raises(RecursionError, match="nested too deep; expected at most 1000 levels, got more at "):
            call(value)


def test_structures_of_1001_levels_cannot_be_put_together():
    deepest = tree.structure(nested(1000))
    one = tree.structure([1])
    make, (rows, leaves) = deepest.__reduce__()
    for call in (
        lambda: tree_util.treedef_tuple([deepest]),
        lambda: deepest.compose(one),
        lambda: one.compose(deepest),
        lambda: tree_util.PyTreeDef.from_node_data_and_children(None, (list, None), [deepest]),
        lambda: make([rows[0], *rows], leaves),
    ):
        with pytest.raises(RecursionError, match="nested too deep; expected at most 1000 levels, got more; wrap"):
            call()
    assert tree.structure(nested(600)).compose(tree.structure(nested(400))) == deepest


def test_structures_of_pickles_before_0_2_are_read():
    node = (dict, ("a", "b"), ((list, None, 2), None))
    make, _ = tree.structure(1).__reduce__()
    assert make(node, 3) == tree.structure({"a": [1, 2], "b": 3})
    assert make(None, 1) == tree.structure(1)


def test_predicates_must_say_a_bool():
    with pytest.raises(ValueError, match=r"is_leaf returned .no. .str.; expected True or False"):
        tree.flatten([1], is_leaf=lambda node: "no")


def test_an_error_of_a_user_function_is_the_same_object():
    error = KeyError("mine")

    def fails(*_):
        raise error

    class Bad:
        pass

    tree_util.register_pytree_node(Bad, fails, fails)
    for call in (lambda: tree.flatten([Bad()]), lambda: tree.map(fails, [1]), lambda: tree.flatten([1], is_leaf=fails)):
        with pytest.raises(KeyError) as caught:
            call()
        assert caught.value is error


@pytest.mark.parametrize("result", [3, ((1,),), (1, 2), ((1,), 2, 3), [(1,), 2]], ids=repr)
def test_what_a_flatten_function_must_give(result):
    cls = type("Bad", (), {})
    tree_util.register_pytree_node(cls, lambda node: result, lambda data, children: None)
    with pytest.raises(ValueError, match=r"flatten_func of Bad returned .*expected a pair"):
        tree.flatten(cls())


def test_registering_twice_or_what_is_not_a_type():
    for cls in (Point, list, dict, type(None), OrderedDict, defaultdict, tree_util.Partial):
        with pytest.raises(ValueError, match=f"{cls.__name__} is a node of trees already"):
            tree_util.register_pytree_node(cls, lambda node: ((), None), lambda data, children: None)
    with pytest.raises(TypeError, match="3 is not a type"):
        tree_util.register_pytree_node(3, lambda node: ((), None), lambda data, children: None)
    with pytest.raises(TypeError, match=r"flatten_func is 1 .int.; expected a function"):
        tree_util.register_pytree_node(Listing, 1, 2)


def test_a_registered_type_wins_over_plain_leaf_and_named_tuple():
    class Meters(float):
        pass

    class Span(Pair):
        pass

    assert tree.leaves([Meters(1), Span(1, 2)]) == [1.0, 1, 2]
    tree_util.register_static(Meters)
    tree_util.register_pytree_node(Span, lambda span: ((span.y,), span.x), lambda x, children: Span(x, *children))
    assert tree.leaves([Meters(1), Span(1, 2)]) == [2]
    assert tree.map(lambda leaf: leaf * 10, Span(1, 2)) == Span(1, 20)


def test_types_registered_with_optree_by_others_are_leaves_here_and_ours_are_leaves_there():
    class Theirs:
        pass

    namespace = vars(optree.registry)["__GLOBAL_NAMESPACE"]
    optree.register_pytree_node(Theirs, lambda node: ((1, 2), None), lambda *_: Theirs(), namespace=namespace)
    try:
        value = Theirs()
        assert tree.leaves([Pair(value, 3)]) == [value, 3]
        assert tree.leaves(OrderedDict(a=deque([1]), b=time.gmtime(0)))[0] == deque([1])
    finally:
        optree.unregister_pytree_node(Theirs, namespace=namespace)
    point = Point(1, 2)
    assert optree.tree_leaves([point]) == [point]


def test_paths_of_all_kinds_of_nodes():
    value = {
        "d": Pair([1], None),
        "c": OrderedDict(z=2),
        "b": defaultdict(int, k=3),
        "a": (Point(4, 5), Named(w=6), Layer(7, {"q": 8})),
        3.5: 0,
    }
    value.pop(3.5)
    paths = [tree_util.keystr(path) for path, _ in tree.leaves_with_path(value)]
    assert paths == [
        "['a'][0][<flat index 0>]",
        "['a'][0][<flat index 1>]",
        "['a'][1].w",
        "['a'][2].weight",
        "['a'][2].bias['q']",
        "['b']['k']",
        "['c']['z']",
        "['d'].x[0]",
    ]
    assert tree.structure(value).paths() == [path for path, _ in tree.flatten_with_path(value)[0]]
    by_python, treedef = tree.flatten_with_path(value, is_leaf=lambda path, node: False, is_leaf_takes_path=True)
    assert (by_python, treedef) == tree.flatten_with_path(value)
    cut = tree.leaves_with_path(value, is_leaf=lambda path, node: len(path) == 2, is_leaf_takes_path=True)
    written = " ".join(tree_util.keystr(path, simple=True, separator="/") for path, _ in cut)
    assert written == "a/0 a/1 a/2 b/k c/z d/x d/y"


def test_keys():
    dict_key, index = tree_util.DictKey("a"), tree_util.SequenceKey(1)
    assert (repr(dict_key), str(dict_key), dict_key.key) == ("DictKey(key='a')", "['a']", "a")
    assert (repr(index), str(index), index.idx) == ("SequenceKey(idx=1)", "[1]", 1)
    assert index != tree_util.FlattenedIndexKey(1)
    assert len({index, tree_util.SequenceKey(np.int64(1))}) == 1
    assert pickle.loads(pickle.dumps(tree_util.GetAttrKey("b"))) == tree_util.GetAttrKey("b")
    match index:
        case tree_util.SequenceKey(idx=position):
            assert position == 1
    for make, wrong in ((tree_util.SequenceKey, "a"), (tree_util.GetAttrKey, 3), (tree_util.FlattenedIndexKey, 1.5)):
        with pytest.raises(TypeError):
            make(wrong)
    with pytest.raises(AttributeError):
        dict_key.key = "b"


def test_reductions():
    assert tree.reduce(lambda a, b: a + b, {"b": "y", "a": ["x", None]}) == "xy"
    assert tree.reduce(lambda a, b: a + b, [], 5) == 5
    assert tree.reduce(lambda a, b: a, [], None) is None
    assert tree.reduce_associative(lambda a, b: f"({a}{b})", list("abcde")) == "((ab)(c(de)))"
    assert tree.reduce_associative(max, [], identity=0) == 0
    for call in (tree.reduce, tree.reduce_associative):
        with pytest.raises(TypeError, match="no leaves"):
            call(max, [])
    assert tree.all([1, (True, None)])
    assert not tree.all([1, 0])


def test_transpose_and_its_mismatch():
    outer, inner = tree.structure([0, 0]), tree.structure({"a": 0, "b": (0,)})
    value = [{"a": 1, "b": (2,)}, {"a": 3, "b": (4,)}]
    assert tree.transpose(outer, inner, value) == {"a": [1, 3], "b": ([2, 4],)}
    assert tree.transpose(outer, None, value) == tree.transpose(outer, inner, value)
    with pytest.raises(TypeError, match=r"3 leaves in .*expected 4, as in "):
        tree.transpose(outer, inner, [{"a": 1, "b": (2,)}, {"a": 3, "b": ()}])


def test_structures_can_be_taken_apart_and_put_together():
    for value, _, _ in EXAMPLES.values():
        treedef = tree.structure(value)
        again = tree_util.PyTreeDef.from_node_data_and_children(
            tree_util.default_registry, treedef.node_data(), treedef.children()
        )
        assert again == treedef
        assert treedef.compose(tree.structure(0)) == treedef == tree.structure(0).compose(treedef)
    treedef = tree.structure((1, {"b": [2], "a": 3}))
    assert treedef.walk(lambda children, data: (children, data), str, [1, 2, 3]) == (
        ("1", (("2", (("3",), None)), ["a", "b"])),
        None,
    )
    assert treedef.compose(tree.structure([0, None])) == tree.structure(([1, None], {"b": [[2, None]], "a": [3, None]}))
    assert treedef != 5
    assert hash(tree.structure(Point(1, 2, unit=[]))) == hash(tree.structure(Point(1, 2, unit=[])))
    with pytest.raises(TypeError, match=r"treedef_tuple: treedef is 1 .int."):
        tree_util.treedef_tuple([1])


def test_prefixes():
    assert tree.broadcast(None, None) is None
    assert tree.broadcast({"a": 1, "b": (2, 3)}, {"b": ([4, 5], None), "a": Point(6, 7)})["b"] == ([2, 2], None)
    assert tree_util.broadcast_prefix([None, 1], [(2, 3), 4], is_leaf=lambda node: node is None) == [None, None, 1]
    with pytest.raises(ValueError, match=r"broadcast_prefix: .*at prefix\[1\]: expected tuple of 2, got list of 1"):
        tree.broadcast([1, (2, 3)], [1, [2]])
    errors = tree_util.prefix_errors([{"a": 1}, (2,), 3], [{"b": 1}, [2], [3]])
    assert [str(error("in_axes")).split(":")[1].strip() for error in errors] == ["at in_axes[0]", "at in_axes[1]"]


def test_one_level():
    assert tree_util.flatten_one_level(Point(1, [2])) == ((1, [2]), "m")
    assert tree_util.flatten_one_level(Pair(1, 2)) == ([1, 2], Pair)
    assert tree_util.flatten_one_level_with_keys(Pair(1, 2)) == (
        [(tree_util.GetAttrKey("x"), 1), (tree_util.GetAttrKey("y"), 2)],
        Pair,
    )
    assert tree_util.flatten_one_level(OrderedDict(b=1, a=2)) == ([1, 2], ("b", "a"))
    assert tree_util.flatten_one_level(defaultdict(list, b=1)) == ([1], (list, ("b",)))
    assert tree_util.flatten_one_level_with_keys([1]) == (((tree_util.SequenceKey(0), 1),), None)


def test_one_level_of_a_dataclass():
    @dataclasses.dataclass
    class Layer:
        w: object
        b: object
        name: str

    tree_util.register_dataclass(Layer, data_fields=["w", "b"], meta_fields=["name"])
    layer = Layer(1, {"k": 2}, "first")
    assert tree_util.flatten_one_level(layer) == ([1, {"k": 2}], ("first",))
    assert tree_util.flatten_one_level_with_keys(layer) == (
        [(tree_util.GetAttrKey("w"), 1), (tree_util.GetAttrKey("b"), {"k": 2})],
        ("first",),
    )


def test_one_level_of_a_leaf_raises():
    with pytest.raises(ValueError, match="int is a leaf"):
        tree_util.flatten_one_level(3)
    assert tree_util.default_registry.flatten_one_level(3) is None
    assert tree_util.default_registry.flatten_one_level([3]) == ([3], None)


def test_partial_is_a_node():
    function = tree_util.Partial(lambda *x, **y: (x, y), 1, k=2)
    mapped = tree.map(lambda leaf: leaf * 10, function)
    assert type(mapped) is tree_util.Partial
    assert mapped(3) == ((10, 3), {"k": 20})
    outer = tree_util.Partial(partial(max, 5), 1)
    assert tree.leaves(outer) == [1]
    assert outer(2) == 5
    assert tree.structure(outer) == tree.structure(tree_util.Partial(outer.func, 7))


def test_fields_of_a_dataclass_must_fit():
    @dataclasses.dataclass
    class Config:
        a: int
        b: int

    register = tree_util.register_dataclass
    with pytest.raises(ValueError, match=r"\['b'\] are in neither list.*\['c'\] are not fields"):
        register(Config, ["a"], ["c"])
    with pytest.raises(ValueError, match=r"\['a'\] are in both lists"):
        register(Config, ["a", "b"], ["a"])
    with pytest.raises(TypeError, match="only one list of fields"):
        register(Config, ["a", "b"])
    with pytest.raises(TypeError, match="is not a dataclass"):
        register(int)
    assert register(Config, ["a"], [], drop_fields=["b"]) is Config


def test_registered_types_can_be_placed_and_errors_name_their_fields():
    placed = ad.device_put([Layer(np.ones(2), {"k": 3.0}), Mode("train")])
    assert isinstance(placed[0].weight, ad.Array)
    assert (placed[0].name, placed[1]) == ("layer", "train")
    assert ad.device_get(placed)[0].bias["k"] == 3.0
    with pytest.raises(TypeError, match=r"\[0\]\.bias\['k'\]"):
        ad.device_put([Layer(np.ones(2), {"k": "text"})])
    device = ad.devices()[0]
    assert ad.device_put(Layer(1.0, 2.0), Layer(device, None)).bias.shape == ()
    with pytest.raises(ValueError, match=r"device is not a prefix: at device\[0\]: expected Layer of 2, got a leaf"):
        ad.device_put([1.0], [Layer(device, None)])


def test_threads_may_register_and_flatten_at_once():
    failures = []

    def work(number):
        try:
            for step in range(30):
                cls = type(f"T{number}_{step}", (), {})
                tree_util.register_pytree_node(
                    cls, lambda node: ((1, Pair(2, 3)), None), lambda data, children: children
                )
                assert tree.map(lambda leaf: leaf + 1, [cls()]) == [(2, Pair(3, 4))]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_flattening_registered_types_imports_no_other_library_of_trees():
    script = """
import sys, collections
import artifex_devices as ad
@ad.tree_util.register_static
class Mode(str): pass
ad.tree.leaves([Mode("x"), collections.OrderedDict(a=1), ad.tree_util.Partial(print, 1)], is_leaf=callable)
assert not {"optree", "jax"} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("keys", "separator", "text"),
    [
        (3, "", "keys is 3 .int.; expected a path of tree_flatten_with_path"),
        ((), 3, "separator is 3 .int.; expected a str"),
    ],
)
def test_what_is_not_a_path_has_no_text(keys, separator, text):
    for simple in (False, True):
        with pytest.raises(TypeError, match=rf"^keystr: {text}"):
            tree_util.keystr(keys, simple=simple, separator=separator)
