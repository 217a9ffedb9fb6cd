# SPDX-License-Identifier: Apache-2.0
"""device_put, device_get, block_until_ready: values, trees, aliasing, donation, limits, worlds."""

import gc
import os
import threading
from collections import OrderedDict, defaultdict, namedtuple

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.errors import ResourceExhaustedError
from artifex_devices.testing import arrays, assert_same_bits, shardable_arrays, shardings
from hypothesis import given
from hypothesis import strategies as st

X = np.arange(64, dtype=np.float32).reshape(8, 8)
BIG = 2 * 1024 * 1024  # elements of a float32 that every code path for large copies takes
Pair = namedtuple("Pair", "left right")


@given(shardable_arrays())
def test_what_was_put_comes_back(placement):
    array = ad.device_put(placement.value, placement.sharding)
    assert_same_bits(ad.device_get(array), placement.value)
    assert_same_bits(np.asarray(array), placement.value)


@given(shardable_arrays(), st.data())
def test_what_was_resharded_comes_back(placement, data):
    value = placement.value
    array = ad.device_put(value, placement.sharding)
    target = data.draw(shardings(shape=value.shape))
    moved = ad.device_put(array, target)
    assert moved.sharding == target
    assert_same_bits(moved, value)
    for shard in moved.addressable_shards:
        assert_same_bits(shard.data, value[shard.index])
    assert_same_bits(array, value)


@given(shardable_arrays())
def test_writing_to_the_source_afterwards_changes_nothing(placement):
    source = np.array(placement.value, order="K")
    before = source.copy()
    array = ad.device_put(source, placement.sharding)
    memory = source.ravel(order="K").view(np.uint8)
    assert np.shares_memory(memory, source) or not source.size
    memory ^= 0xFF if source.dtype != np.bool_ else 1
    assert_same_bits(array, before)


@pytest.mark.parametrize("offset", [0, 4, 16, 32])
@pytest.mark.parametrize("size", [4, 1024, BIG])
@pytest.mark.parametrize("may_alias", [None, False])
def test_no_alignment_aliases_the_source(offset, size, may_alias, devices):
    memory = np.zeros(size * 4 + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    source = memory[start : start + size * 4].view(np.float32)
    array = ad.device_put(source, devices[0], may_alias=may_alias)
    source[...] = 1
    assert not np.asarray(array).any()
    assert not np.shares_memory(np.asarray(array), source)


def big(shape, dtype=np.float32):
    return np.arange(np.prod(shape)).astype(dtype).reshape(shape)


@pytest.mark.parametrize("source", ["dense", "fortran", "reversed", "stepped", "broadcast", "unaligned"])
@pytest.mark.parametrize("entries", [("x",), (None, "x"), (("x", "y"),), ("y", "x"), ()], ids=str)
def test_big_arrays_of_any_layout_come_back(source, entries, named):
    value = {
        "dense": lambda: big((1024, 2048)),
        "fortran": lambda: np.asfortranarray(big((1024, 2048))),
        "reversed": lambda: big((1024, 2048))[::-1, ::-1],
        "stepped": lambda: big((2048, 4096))[::2, ::2],
        "broadcast": lambda: np.broadcast_to(big((2048,)), (1024, 2048)),
        "unaligned": lambda: np.frombuffer(b"\1" + big((1024, 2048)).tobytes(), np.float32, offset=1).reshape(1024, -1),
    }[source]()
    array = ad.device_put(value, named(*entries))
    for shard in array.addressable_shards:
        np.testing.assert_array_equal(np.asarray(shard.data), value[shard.index])
    np.testing.assert_array_equal(np.asarray(array), value)


@pytest.mark.parametrize("target", [("y",), (None, "x"), (None, ("y", "x")), ("y", "x"), ()], ids=str)
def test_big_reshards_come_back(target, named, devices):
    value = big((1024, 2048))
    array = ad.device_put(value, named("x"))
    moved = ad.device_put(array, named(*target))
    array.delete()
    for shard in moved.addressable_shards:
        np.testing.assert_array_equal(np.asarray(shard.data), value[shard.index])
    np.testing.assert_array_equal(np.asarray(ad.device_put(moved, devices[6])), value)


@given(arrays(), st.integers(0, 7))
def test_one_device(value, number):
    array = ad.device_put(value, ad.devices()[number])
    assert array.devices() == {ad.devices()[number]}
    assert_same_bits(array, value)


# --- Numbers and array-likes ---


@pytest.mark.parametrize(
    ("number", "dtype"),
    [(True, "bool"), (3, "int64"), (-(2**63), "int64"), (2**64 - 1, "uint64"), (1.5, "float64"), (2j, "complex128")],
)
def test_python_numbers_keep_64_bits(number, dtype):
    array = ad.device_put(number)
    assert (array.shape, array.dtype) == ((), np.dtype(dtype))
    assert array.item() == number


def test_an_int_beyond_64_bits_is_an_overflow_error():
    for number in (2**64, -(2**63) - 1, 10**40):
        with pytest.raises(OverflowError, match="64 bits"):
            ad.device_put(number)


def test_array_likes_are_taken():
    class Like:
        def __array__(self, dtype=None, copy=None):
            return X

    class Sub(np.ndarray):
        pass

    assert_same_bits(ad.device_put(Like()), X)
    assert_same_bits(ad.device_put(X.view(Sub)), X)
    assert_same_bits(ad.device_put(memoryview(X)), X)
    assert_same_bits(ad.device_put(np.float16(1.5)), np.float16(1.5))


# --- Trees ---

LEAVES = st.sampled_from([X, np.arange(3), np.float32(2), 1.5, 2, True, None])
TREES = st.recursive(
    LEAVES,
    lambda children: st.one_of(
        st.lists(children, max_size=3),
        st.lists(children, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from("cba"), children, max_size=3),
        st.dictionaries(st.sampled_from("cba"), children, max_size=3).map(OrderedDict),
        st.dictionaries(st.sampled_from("cba"), children, max_size=3).map(lambda tree: defaultdict(list, tree)),
        st.builds(Pair, children, children),
    ),
    max_leaves=8,
)


def assert_same_tree(got, want):
    if want is None:
        assert got is None
    elif isinstance(want, dict):
        assert type(got) is type(want)
        assert set(got) == set(want)
        assert list(got) == (list(want) if isinstance(want, OrderedDict) else sorted(want))
        for key in want:
            assert_same_tree(got[key], want[key])
    elif isinstance(want, list | tuple):
        assert type(got) is type(want)
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            assert_same_tree(one, other)
    else:
        assert_same_bits(got, want)


@given(TREES, st.integers(0, 7))
def test_trees_come_back(tree, number):
    placed = ad.device_put(tree, ad.devices()[number])
    assert ad.block_until_ready(placed) is placed
    for leaf in ad.tree_util.tree_leaves(placed):
        assert type(leaf) is ad.Array
        assert leaf.devices() == {ad.devices()[number]}
    assert_same_tree(ad.device_get(placed), tree)


def where(tree):
    return ad.tree_util.tree_map(lambda leaf: sorted(device.id for device in leaf.devices()), tree)


@pytest.mark.parametrize(
    ("tree", "prefix", "expected"),
    [
        ([X, X], lambda d: d[3], [[3], [3]]),
        ([X, X], lambda d: [d[3], d[4]], [[3], [4]]),
        ([X, X], lambda d: [None, d[4]], [[0], [4]]),
        ([[X, X], X], lambda d: [d[3], None], [[[3], [3]], [0]]),
        ({"b": X, "a": X}, lambda d: {"a": d[1], "b": d[2]}, {"a": [1], "b": [2]}),
        ({"a": None, "b": X}, lambda d: {"a": None, "b": d[5]}, {"a": None, "b": [5]}),
        ({"a": None, "b": X}, lambda d: {"a": d[1], "b": d[5]}, {"a": None, "b": [5]}),
        (Pair(X, (X,)), lambda d: Pair(d[1], d[2]), Pair([1], ([2],))),
        ((X, {"k": X}), lambda d: (d[1], {"k": d[2]}), ([1], {"k": [2]})),
        ([], lambda d: d[1], []),
        (None, lambda d: d[1], None),
    ],
    ids=["one", "list", "none", "subtree", "dict", "none-leaf", "none-value", "pair", "deep", "empty", "nothing"],
)
def test_prefixes_of_devices(tree, prefix, expected, devices):
    assert where(ad.device_put(tree, prefix(devices))) == expected


class LendsMemory:
    """Each conversion writes the one array that all objects share."""

    scratch = np.empty((8, BIG // 8), np.float32)

    def __init__(self, number):
        self.number = number

    def __array__(self, dtype=None, copy=None):
        self.scratch[:] = self.number
        return self.scratch


@pytest.mark.filterwarnings("ignore:.*64")  # the first narrowing of a process warns
def test_big_leaves_are_copied_together_and_keep_their_values(named, devices):
    """Copies of ndarrays run at the end of the call; converted values have no memory by then."""
    values = [np.arange(i, i + BIG, dtype=np.float32).reshape(8, -1) for i in range(3)]
    wide = np.arange(BIG).reshape(8, -1)
    with ad.enable_x64(False):
        placed = ad.device_put(
            [*values, LendsMemory(5), LendsMemory(6), wide, values[0].T, np.float32(7)],
            [named("x"), named("x", "y"), named(), named("x"), named("x"), named("x"), named("y"), devices[2]],
        )
    for found, expected in zip(placed[:3], values, strict=True):
        assert_same_bits(found, expected)
    assert [np.unique(np.asarray(lent)).tolist() for lent in placed[3:5]] == [[5], [6]]
    assert_same_bits(placed[5], wide.astype(np.int32))
    assert_same_bits(placed[6], values[0].T)
    assert float(placed[7]) == 7


def test_prefixes_of_shardings(named, devices):
    placed = ad.device_put({"a": X, "b": [X, X]}, {"a": named("x"), "b": ad.SingleDeviceSharding(devices[3])})
    assert placed["a"].sharding == named("x")
    assert [leaf.sharding for leaf in placed["b"]] == [ad.SingleDeviceSharding(devices[3])] * 2


def test_a_prefix_may_differ_in_type_of_dict(devices):
    placed = ad.device_put(OrderedDict(b=X, a=X), OrderedDict(b=devices[1], a=devices[2]))
    assert list(placed) == ["b", "a"]
    assert where(placed) == OrderedDict(b=[1], a=[2])


# --- Where it goes ---


def test_an_array_stays_where_it_is_without_a_device(named):
    array = ad.device_put(X, named("x"))
    assert ad.device_put(array) is array
    assert ad.device_put(array, named("x")) is array
    assert ad.device_put([array])[0] is array


def test_putting_an_uncommitted_array_on_its_device_commits_it(devices):
    array = ad.device_put(X)
    again = ad.device_put(array, devices[0])
    assert again.committed
    assert not array.committed
    assert np.shares_memory(np.asarray(array), np.asarray(again))


def test_may_alias_false_copies_an_array(devices):
    array = ad.device_put(X, devices[0])
    again = ad.device_put(array, devices[0], may_alias=False)
    assert not np.shares_memory(np.asarray(array), np.asarray(again))
    assert_same_bits(again, X)


def test_may_alias_true_shows_the_source_and_makes_it_read_only(devices):
    source = X.copy()
    array = ad.device_put(source, devices[0], may_alias=True)
    assert np.shares_memory(np.asarray(array), source)
    assert not source.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        source[0] = 1
    del source
    gc.collect()
    assert_same_bits(array, X)


def test_may_alias_true_copies_what_cannot_be_shown(named, devices):
    source = np.asfortranarray(X)
    array = ad.device_put(source, devices[0], may_alias=True)
    assert source.flags.writeable
    source[...] = 0
    assert_same_bits(array, X)
    source = X.copy()
    array = ad.device_put(source, named("x"), may_alias=True)
    source[...] = 0
    assert_same_bits(array, X)


def test_donation_deletes_the_source(named, devices):
    for target in (named("y"), devices[3], named("x")):
        source = ad.device_put(X, named("x"))
        moved = ad.device_put(source, target, donate=True)
        assert source.is_deleted()
        assert not moved.is_deleted()
        assert_same_bits(moved, X)


def test_donation_takes_a_prefix(devices):
    tree = [ad.device_put(X, devices[0]), ad.device_put(X, devices[0])]
    ad.device_put(tree, devices[1], donate=[True, False])
    assert [leaf.is_deleted() for leaf in tree] == [True, False]


def test_may_alias_takes_a_prefix(devices):
    source = {"a": [X.copy(), X.copy()], "b": X.copy()}
    placed = ad.device_put(source, devices[0], may_alias={"a": True, "b": False})
    shares = [np.shares_memory(np.asarray(placed["a"][i]), source["a"][i]) for i in range(2)]
    assert [*shares, np.shares_memory(np.asarray(placed["b"]), source["b"])] == [True, True, False]
    with pytest.raises(ValueError, match="may_alias"):
        ad.device_put(source, devices[0], may_alias={"a": True})


def test_donated_host_arrays_stay(devices):
    source = X.copy()
    assert_same_bits(ad.device_put(source, devices[0], donate=True), X)
    assert_same_bits(source, X)


def test_planned_bytes_are_moved_bytes(named, devices, settled):
    array = ad.device_put(X, named("x", "y"))
    for target in (named("y", "x"), named(), named(None, "x"), ad.SingleDeviceSharding(devices[3])):
        plan = ad.planner.plan_reshard(array.shape, array.dtype, array.sharding, target, way="copies")
        with ad.transfers.record() as report:
            ad.device_put(array, target).block_until_ready()
        assert report.bytes("device-to-device") == plan.bytes_copied


def test_an_array_that_is_already_right_moves_no_bytes(named, settled):
    array = ad.device_put(X, named("x"))
    with ad.transfers.record() as report:
        other = ad.device_put(array, ad.NamedSharding(ad.make_mesh((2, 4), ("a", "b")), ad.P("a")))
    assert report.bytes() == 0
    assert_same_bits(other, X)


# --- device_get and block_until_ready ---


def test_device_get_leaves_other_leaves_alone():
    marker = object()
    tree = {"a": ad.device_put(X), "b": "text", "c": marker, "d": None, "e": X}
    got = ad.device_get(tree)
    assert got["b"] == "text"
    assert got["c"] is marker
    assert got["d"] is None
    assert got["e"] is X
    assert type(got["a"]) is np.ndarray
    assert not got["a"].flags.writeable


def test_block_until_ready_returns_what_it_got():
    array = ad.device_put(X)
    assert ad.block_until_ready(array) is array
    tree = {"a": [array, 3, "text"]}
    assert ad.block_until_ready(tree) is tree
    array.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        ad.block_until_ready(tree)


def test_block_until_ready_waits_for_arrays_of_others():
    class Other:
        waited = 0

        def block_until_ready(self):
            self.waited += 1

    one = Other()
    tree = {"a": [one, ad.device_put(X)], "b": 3}
    assert ad.block_until_ready(tree) is tree
    assert one.waited == 1
    assert ad.block_until_ready(one) is one
    assert one.waited == 2


# --- Limits ---


def test_a_limit_is_enforced_and_leaves_no_trace():
    with ad.simulate(2, bytes_limit=1000):
        first, second = ad.devices()
        kept = ad.device_put(np.zeros(600, np.int8), first)
        assert first.memory_stats()["bytes_limit"] == 1000
        with pytest.raises(ResourceExhaustedError) as raised:
            ad.device_put(np.zeros(500, np.int8), first)
        assert isinstance(raised.value, MemoryError)
        assert isinstance(raised.value, RuntimeError)
        text = str(raised.value)
        for word in ("RESOURCE_EXHAUSTED", "500", "600", "1000", "cpu:0", "int8(600"):
            assert word in text, word
        assert first.memory_stats()["bytes_in_use"] == 600
        other = ad.device_put(np.zeros(500, np.int8), second)
        kept.delete()
        again = ad.device_put(np.zeros(1000, np.int8), first)
        assert first.memory_stats()["bytes_in_use"] == 1000
        assert second.memory_stats()["bytes_in_use"] == other.nbytes
        assert again.size == 1000


def test_replicas_count_against_each_limit():
    with ad.simulate(4, bytes_limit=100):
        mesh = ad.Mesh(ad.devices(), "x")
        array = ad.device_put(np.zeros(100, np.int8), ad.NamedSharding(mesh, ad.P()))
        assert [device.memory_stats()["bytes_in_use"] for device in ad.devices()] == [100] * 4
        with pytest.raises(ResourceExhaustedError):
            ad.device_put(np.zeros(4, np.int8), ad.NamedSharding(mesh, ad.P("x")))
        array.delete()
        ad.device_put(np.zeros(400, np.int8), ad.NamedSharding(mesh, ad.P("x")))


def test_a_tree_that_does_not_fit_leaves_nothing_behind():
    with ad.simulate(1, bytes_limit=1000):
        with pytest.raises(ResourceExhaustedError, match=r"\['b'\]"):
            ad.device_put({"a": np.zeros(600, np.int8), "b": np.zeros(600, np.int8)})
        gc.collect()
        assert ad.devices()[0].memory_stats()["bytes_in_use"] == 0


def test_limits_can_be_changed():
    with ad.simulate(1):
        device = ad.devices()[0]
        device.set_bytes_limit(10)
        with pytest.raises(ResourceExhaustedError):
            ad.device_put(np.zeros(11, np.int8), device)
        device.set_bytes_limit(None)
        assert ad.device_put(np.zeros(11, np.int8), device).nbytes == 11


def test_a_reshard_over_the_limit_raises_in_the_call():
    with ad.simulate(4, bytes_limit=100):
        mesh = ad.Mesh(ad.devices(), "x")
        array = ad.device_put(np.zeros(200, np.int8), ad.NamedSharding(mesh, ad.P("x")))
        with pytest.raises(ResourceExhaustedError):
            ad.device_put(array, ad.NamedSharding(mesh, ad.P()))
        assert_same_bits(array, np.zeros(200, np.int8))


# --- Worlds ---


def test_worlds_nest(devices):
    assert len(devices) == 8
    with ad.simulate(3):
        assert len(ad.devices()) == 3
        with ad.simulate("2 nodes x 4"):
            assert len(ad.devices()) == 8
            assert ad.devices() != devices
            assert [device.numa_nodes[0] for device in ad.devices()] == [0] * 4 + [1] * 4
        assert ad.device_count() == 3
    assert ad.devices() == devices


def test_devices_of_two_worlds_are_different(devices):
    with ad.simulate(8):
        inner = ad.devices()
        assert all(one != other for one, other in zip(inner, devices, strict=True))
        assert len({*inner, *devices}) == 16
        assert repr(inner) == repr(devices)


def test_arrays_outlive_their_world():
    with ad.simulate(4):
        array = ad.device_put(X, ad.NamedSharding(ad.Mesh(ad.devices(), "x"), ad.P("x")))
        old = ad.devices()[1]
    gc.collect()
    assert_same_bits(array, X)
    assert array.addressable_shards[1].device == old
    moved = ad.device_put(array, ad.devices()[5])
    assert moved.devices() == {ad.devices()[5]}
    assert_same_bits(moved, X)
    array.delete()


def test_mixing_worlds_in_one_mesh_is_refused(devices):
    with ad.simulate(4):
        mixed = [*ad.devices()[:2], *devices[:2]]
    with pytest.raises(ValueError, match="world"):
        ad.Mesh(mixed, "x")


def test_leaving_out_of_order_raises_and_can_be_repaired():
    outer, inner = ad.simulate(2), ad.simulate(3)
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(RuntimeError, match="innermost"):
        outer.__exit__(None, None, None)
    assert ad.device_count() == 3
    inner.__exit__(None, None, None)
    assert ad.device_count() == 2
    outer.__exit__(None, None, None)
    assert ad.device_count() == 8


def test_a_world_ends_when_its_block_raises():
    with pytest.raises(ZeroDivisionError), ad.simulate(2):
        1 / 0  # noqa: B018
    assert ad.device_count() == 8


def test_a_world_can_decorate_a_function_and_be_used_again():
    world = ad.simulate(5)

    @world
    def count(step):
        return ad.device_count() + step

    assert count(1) == 6
    assert count(step=2) == 7
    with world, world:
        assert ad.device_count() == 5
    assert ad.device_count() == 8


def test_a_thread_starts_in_the_base_world():
    seen = []
    with ad.simulate(2):
        thread = threading.Thread(target=lambda: seen.append(ad.device_count()))
        thread.start()
        thread.join()
    assert seen == [8]


def test_all_threads_changes_the_base_world():
    seen = []
    with ad.simulate(2, all_threads=True):
        thread = threading.Thread(target=lambda: seen.append(ad.device_count()))
        thread.start()
        thread.join()
        with pytest.raises(RuntimeError, match="all_threads"), ad.simulate(3, all_threads=True):
            pass
        assert ad.device_count() == 2
    assert seen == [2]
    assert ad.device_count() == 8


def test_compile_only_devices_plan_but_hold_nothing():
    with ad.simulate(4, compile_only=True):
        mesh = ad.Mesh(ad.devices(), "x")
        sharding = ad.NamedSharding(mesh, ad.P("x"))
        assert sharding.shard_shape((8,)) == (2,)
        with pytest.raises(RuntimeError, match="no memory"):
            ad.device_put(np.zeros(8), sharding)


@pytest.mark.parametrize(
    ("text", "count"), [("8", 8), ("2 nodes x 4", 8), ("pack:2 numa:2 core:4 pu:2", 4), ("numa:3 pu:1", 3)]
)
def test_worlds_from_text(text, count):
    with ad.simulate(text):
        assert ad.device_count() == count
        array = ad.device_put(X, ad.devices()[count - 1])
        assert_same_bits(array, X)


def test_many_devices_need_few_threads(settled):
    before = len(os.listdir("/proc/self/task"))
    with ad.simulate(256):
        mesh = ad.Mesh(ad.devices(), "x")
        value = np.arange(256 * 1024, dtype=np.float32).reshape(256, 1024)
        array = ad.device_put(value, ad.NamedSharding(mesh, ad.P("x")))
        assert_same_bits(array, value)
        threads = len(os.listdir("/proc/self/task"))
    assert threads <= before + len(os.sched_getaffinity(0))


def test_many_threads_put_and_get(named):
    sharding = named("x", "y")
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(50):
            value = rng.integers(0, 100, (8, 8))
            array = ad.device_put(value, sharding)
            if not np.array_equal(np.asarray(ad.device_put(array, ad.devices()[seed])), value):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("x", [np.ones(2), 1.5, {"a": np.ones(2)}], ids=["ndarray", "number", "tree"])
@pytest.mark.parametrize(("name", "value"), [("donate", "yes"), ("donate", 1), ("may_alias", 3)])
def test_flags_are_true_or_false(x, name, value):
    with pytest.raises(ValueError, match=f"^device_put: {name} is .*{type(value).__name__}.*; expected .*bool"):
        ad.device_put(x, **{name: value})


def test_flags_of_numpy_are_taken():
    assert ad.device_put(np.ones(2), donate=np.False_, may_alias=np.False_).tolist() == [1.0, 1.0]
