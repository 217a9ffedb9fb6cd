# SPDX-License-Identifier: Apache-2.0
"""device_put, device_get and resharding place the same bytes on the same devices as JAX."""

import math
from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest
from artifex_devices.testing import MeshLayout, arrays, dtypes, mesh_layouts, spec_entries
from artifex_devices.testing.sharding_strategies import partition_counts
from both import (
    assert_agree,
    mesh_of,
    near_layouts,
    sharded_shapes,
    sharding_of,
    shards_of,
)
from hypothesis import assume, given
from hypothesis import strategies as st

EIGHT = MeshLayout(("x",), (8,), tuple(range(8)))
GRID = MeshLayout(("x", "y"), (2, 4), (7, 6, 5, 4, 3, 2, 1, 0))
Pair = namedtuple("Pair", "left right")
# JAX has no float6 on CPU.
DTYPES = dtypes().filter(lambda dtype: not dtype.name.startswith("float6"))


def facts(array):
    return (
        array.shape,
        array.dtype.name,
        array.ndim,
        array.size,
        array.nbytes,
        array.itemsize,
        array.is_fully_replicated,
        array.is_fully_addressable,
        array.committed,
        array.on_device_size_in_bytes(),
        array.devices(),
        len(array.global_shards),
        np.asarray(array),
        shards_of(array),
    )


def numbers(shape, dtype="int32"):
    return np.arange(math.prod(shape)).astype(dtype).reshape(shape)


@given(sharded_shapes(), st.data())
def test_placed_shards_are_equal(case, data):
    layout, entries, shape = case
    value = data.draw(arrays(shape, DTYPES))
    assert_agree(lambda lib: facts(lib.device_put(value, sharding_of(lib, layout, entries))))


@given(arrays(dtype=DTYPES), st.integers(0, 7))
def test_one_device_is_equal(value, device):
    assert_agree(lambda lib: facts(lib.device_put(value, lib.devices[device])))
    assert_agree(lambda lib: facts(lib.device_put(value, lib.SingleDeviceSharding(lib.devices[device]))))
    assert_agree(lambda lib: facts(lib.device_put(value)))


@given(sharded_shapes(even=True), st.data())
def test_resharded_shards_are_equal(case, data):
    layout, entries, shape = case
    assume(0 not in shape)  # JAX fails to move empty shards between devices
    near = data.draw(near_layouts(layout))
    target = list(data.draw(spec_entries(near.axis_names, max_rank=len(shape))))
    for dimension, parts in enumerate(partition_counts(target, near.sizes_by_name)):
        if shape[dimension] % parts:
            target[dimension] = None
    value = numbers(shape, data.draw(st.sampled_from(["int8", "float32", "complex128"])))

    def ask(lib):
        placed = lib.device_put(value, sharding_of(lib, layout, entries))
        moved = lib.device_put(placed, sharding_of(lib, near, target))
        return facts(moved), facts(lib.device_put(moved, lib.devices[3])), placed.is_deleted()

    assert_agree(ask)


def test_leaves_of_others_are_waited_for_by_their_own_method():
    def ask(lib):
        waited = []

        class Other:
            def block_until_ready(self):
                waited.append(self)

        one = Other()
        tree = [one, {"a": one, "b": 3}]
        return lib.block_until_ready(tree) is tree, len(waited)

    assert_agree(ask)


@given(sharded_shapes(even=True))
def test_gathered_values_are_equal(case):
    layout, entries, shape = case
    value = numbers(shape)

    def ask(lib):
        placed = lib.block_until_ready(lib.device_put(value, sharding_of(lib, layout, entries)))
        host = lib.device_get({"a": placed, "b": [placed, 3]})
        return host, type(host["a"]).__name__, host["a"].flags.writeable, np.asarray(placed).flags.writeable

    assert_agree(ask)


@given(sharded_shapes(even=True))
def test_data_of_one_shard_is_equal(case):
    layout, entries, shape = case

    def ask(lib):
        placed = lib.device_put(numbers(shape), sharding_of(lib, layout, entries))
        shards = placed.addressable_shards
        return [
            (facts(shard.data), str(type(shard.data.sharding).__name__), placed.addressable_data(i))
            for i, shard in enumerate(shards[:2])
        ], repr(shards[0].index)

    assert_agree(ask)


@given(st.lists(st.integers(0, 4), max_size=3), st.sampled_from(["int8", "int32", "float32", "bool", "complex64"]))
def test_text_of_an_array_is_equal(shape, dtype):
    value = numbers(shape, dtype)
    assert_agree(lambda lib: (repr(lib.device_put(value)), str(lib.device_put(value))))


LEAVES = st.sampled_from([numbers((8,)), numbers((4, 2), "float32"), numbers(()), 1.5, 2, True, None])
TREES = st.recursive(
    LEAVES,
    lambda children: st.one_of(
        st.lists(children, max_size=3),
        st.lists(children, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from("cba"), children, max_size=3),
        st.dictionaries(st.sampled_from("cba"), children, max_size=3).map(OrderedDict),
        st.builds(Pair, children, children),
    ),
    max_leaves=6,
)


@given(TREES)
def test_trees_come_back_alike(tree):
    assert_agree(lambda lib: lib.device_get(lib.device_put(tree, lib.devices[2])))
    assert_agree(lambda lib: type(lib.device_put(tree)).__name__.replace("ArrayImpl", "Array"))


def devices_of(tree):
    if isinstance(tree, dict):
        return {key: devices_of(item) for key, item in tree.items()}
    if isinstance(tree, tuple | list):
        return [devices_of(item) for item in tree]
    return None if tree is None else (tree.devices(), tree.committed)


X = numbers((8, 2))
PREFIXES = {
    "one for all": ({"a": X, "b": [X, X]}, lambda lib: lib.devices[4]),
    "none": ({"a": X, "b": [X, X]}, lambda lib: None),
    "one for each leaf": ((X, X), lambda lib: (lib.devices[1], sharding_of(lib, EIGHT, ("x",)))),
    "one a subtree": ({"a": X, "b": [X, X]}, lambda lib: {"a": lib.devices[1], "b": lib.devices[5]}),
    "None within": ((X, X), lambda lib: (None, lib.devices[3])),
    "None for a subtree": (([X, X], X), lambda lib: (None, lib.devices[3])),
    "None leaves": ({"a": None, "b": X}, lambda lib: {"a": None, "b": lib.devices[3]}),
    "named tuple": (Pair(X, [X]), lambda lib: Pair(lib.devices[1], lib.devices[2])),
    "dict order": ({"b": X, "a": X}, lambda lib: {"a": lib.devices[1], "b": lib.devices[2]}),
    "default dict": (defaultdict(list, {"b": X}), lambda lib: lib.devices[2]),
    "empty": ({}, lambda lib: lib.devices[2]),
}


@pytest.mark.parametrize("name", PREFIXES)
def test_prefixes_of_shardings_are_equal(name):
    tree, where = PREFIXES[name]
    assert assert_agree(lambda lib: devices_of(lib.device_put(tree, where(lib)))) is not None


WRONG_PREFIXES = {
    "missing key": ({"a": X, "b": X}, lambda lib: {"a": lib.devices[0]}),
    "other key": ({"a": X, "b": X}, lambda lib: {"a": lib.devices[0], "c": lib.devices[0]}),
    "list for dict": ({"a": X, "b": X}, lambda lib: [lib.devices[0], lib.devices[0]]),
    "list for tuple": ((X, X), lambda lib: [lib.devices[0], lib.devices[0]]),
    "too long": ([X, X], lambda lib: [lib.devices[0]] * 3),
    "deeper than the tree": ([X, X], lambda lib: [lib.devices[0], [lib.devices[0]]]),
    "text": (X, lambda lib: "cpu"),
    "number": (X, lambda lib: 3),
    "text within": ([X, X], lambda lib: [lib.devices[0], "cpu"]),
}


@pytest.mark.parametrize("name", WRONG_PREFIXES)
def test_wrong_prefixes_raise_alike(name):
    tree, where = WRONG_PREFIXES[name]
    assert assert_agree(lambda lib: lib.device_put(tree, where(lib))) is None


WRONG_LEAVES = {
    "text": "a",
    "bytes": b"a",
    "array of text": np.array(["a"]),
    "objects": np.array([object()]),
    "datetime": np.zeros(2, "M8[s]"),
    "timedelta": np.zeros(2, "m8[s]"),
    "structured": np.zeros(2, [("a", "i4")]),
    "void": np.zeros(2, "V3"),
    "big endian": np.arange(4, dtype=">i4"),
    "masked": np.ma.masked_array([1, 2], [0, 1]),
    "long double": np.zeros(2, np.longdouble),
    "object": object(),
    "function": len,
}


@pytest.mark.parametrize("name", WRONG_LEAVES)
def test_wrong_leaves_raise_alike(name):
    leaf = WRONG_LEAVES[name]
    assert assert_agree(lambda lib: lib.device_put(leaf, lib.devices[0])) is None
    assert assert_agree(lambda lib: lib.device_put({"a": [X, leaf]}, lib.devices[0])) is None
    assert assert_agree(lambda lib: facts(lib.device_put(X, lib.devices[0]))) is not None


@given(mesh_layouts(), st.data())
def test_a_rank_too_low_raises_alike(layout, data):
    entries = data.draw(spec_entries(layout.axis_names, min_rank=1))
    shape = data.draw(st.lists(st.integers(1, 8), max_size=len(entries) - 1))
    assert assert_agree(lambda lib: lib.device_put(numbers(shape), sharding_of(lib, layout, entries))) is None


DELETED = {
    "shape": lambda array: (array.shape, array.dtype.name, array.ndim, array.size, array.nbytes),
    "sharding": lambda array: array.sharding.is_fully_replicated,
    "is_deleted": lambda array: array.is_deleted(),
    "delete again": lambda array: array.delete(),
    "value": np.asarray,
    "devices": lambda array: array.devices(),
    "shards": lambda array: array.addressable_shards[0].data + 0,
    "addressable_data": lambda array: array.addressable_data(0),
    "block_until_ready": lambda array: array.block_until_ready(),
    "tolist": lambda array: array.tolist(),
}


@pytest.mark.parametrize("name", DELETED)
@pytest.mark.parametrize("place", ["one", "sharded", "replicated"])
def test_deleted_arrays_answer_alike(name, place):
    def ask(lib):
        where = lib.devices[1] if place == "one" else sharding_of(lib, GRID, ("x", "y") if place == "sharded" else ())
        array = lib.device_put(numbers((8, 8)), where)
        array.delete()
        return DELETED[name](array)

    assert_agree(ask)


def test_deleting_the_first_shard_deletes_the_whole_alike():
    def ask(lib):
        array = lib.device_put(numbers((8, 8)), sharding_of(lib, GRID, ("x", "y")))
        first = array.addressable_shards[0].data
        first.delete()
        return array.is_deleted(), first.is_deleted()

    assert_agree(ask)


def test_scalars_convert_alike():
    def ask(lib):
        one = lib.device_put(np.float32(2.5), lib.devices[1])
        return float(one), int(one), bool(one), complex(one), one.item(), one.tolist()

    assert_agree(ask)
    for convert in (float, int, complex, bool):
        assert_agree(lambda lib, convert=convert: convert(lib.device_put(numbers((1, 1)), lib.devices[1])))
        assert_agree(lambda lib, convert=convert: convert(lib.device_put(numbers((2,)), lib.devices[1])))
    assert_agree(lambda lib: lib.device_put(numbers((2,))).item())
    assert_agree(lambda lib: lib.device_put(numbers((1, 1))).item())
    assert_agree(lambda lib: [10, 20, 30][lib.device_put(np.int32(2))])
    assert_agree(lambda lib: hash(lib.device_put(np.int32(2))))
    assert_agree(lambda lib: len(lib.device_put(numbers((3, 2)))))
    assert_agree(lambda lib: len(lib.device_put(numbers(()))))


def test_a_put_without_device_leaves_the_array_where_it_is():
    def ask(lib):
        placed = lib.device_put(numbers((8,)), sharding_of(lib, EIGHT, ("x",)))
        again = lib.device_put(placed)
        return again.devices(), again.committed, again.sharding == placed.sharding, mesh_of(lib, EIGHT).size

    assert_agree(ask)
