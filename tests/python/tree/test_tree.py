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


def test_devices_arrays_and_shardings_are_leaves():
    device = ad.devices()[0]
    mesh = ad.Mesh(np.array([device]), ("x",))
    values = [device, mesh, ad.NamedSharding(mesh, ad.P()), ad.SingleDeviceSharding(device), ad.device_put(1.0)]
    assert all(map(lambda a, b: a is b, tree.leaves(values), values))
    assert tree.leaves({"a": Pair(*values[:2])}) == values[:2]


def test_equal_keys_of_different_types_are_kept_apart_by_unflatten():
    # Structures compare equal, but nothing is taken from an earlier, equal one.
    for key in (1, True, 1.0):
        [got] = tree.map(lambda leaf: leaf, {key: [2]})
        assert type(got) is type(key)


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
        ([1, 2], [1], r"at rest\[0\]: expected list of 2, got list of 1"),
        (
            {"a": 1},
            {"b": 1},
            r"at rest\[0\]: expected dict with keys \['a'\], got a dict that lacks \['a'\] and has besides",
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


def test_transpose_and_its_mismatch():
    outer, inner = tree.structure([0, 0]), tree.structure({"a": 0, "b": (0,)})
    value = [{"a": 1, "b": (2,)}, {"a": 3, "b": (4,)}]
    assert tree.transpose(outer, inner, value) == {"a": [1, 3], "b": ([2, 4],)}
    assert tree.transpose(outer, None, value) == tree.transpose(outer, inner, value)
    with pytest.raises(TypeError, match=r"3 leaves in .*expected 4, as in "):
        tree.transpose(outer, inner, [{"a": 1, "b": (2,)}, {"a": 3, "b": ()}])


def test_one_level_of_a_leaf_raises():
    with pytest.raises(ValueError, match="int is a leaf"):
        tree_util.flatten_one_level(3)
    assert tree_util.default_registry.flatten_one_level(3) is None
    assert tree_util.default_registry.flatten_one_level([3]) == ([3], None)


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
