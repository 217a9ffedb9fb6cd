# SPDX-License-Identifier: Apache-2.0
"""device_put_sharded, device_put_replicated, donation, specs and formats as places, clear_caches."""

import gc

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.errors import ResourceExhaustedError
from artifex_devices.layout import Format, Layout
from artifex_devices.testing import assert_same_bits

X = np.arange(64, dtype=np.float32).reshape(8, 8)


def parts_of(array):
    return [(shard.device.id, shard.data.shape, np.asarray(shard.data).tolist()) for shard in array.addressable_shards]


# --- device_put_sharded ---


def test_values_are_stacked_each_on_its_device(devices, nothing_left):
    chosen = [devices[5], devices[1], devices[2]]
    array = ad.device_put_sharded([X + 0, X + 1, X + 2], chosen)
    assert (array.shape, array.dtype) == ((3, 8, 8), np.float32)
    assert array.sharding.spec == ad.P("device")
    assert parts_of(array) == [
        (5, (1, 8, 8), [(X + 0).tolist()]),
        (1, (1, 8, 8), [(X + 1).tolist()]),
        (2, (1, 8, 8), [(X + 2).tolist()]),
    ]
    assert array.committed


def test_values_may_be_trees_numbers_and_arrays(devices):
    tree = ad.device_put_sharded([{"a": 1, "b": [X]}, {"a": 2, "b": [X + 1]}], devices[:2])
    assert tree["a"].tolist() == [1, 2]
    assert_same_bits(tree["b"][0], np.stack([X, X + 1]))
    there = ad.device_put(X, devices[1])
    stacked = ad.device_put_sharded([ad.device_put(X + 1, devices[0]), there], devices[:2])
    assert not there.is_deleted()
    assert_same_bits(stacked, np.stack([X + 1, X]))
    there.delete()
    assert_same_bits(stacked, np.stack([X + 1, X]))


def test_indices_say_which_row_a_value_becomes(devices):
    array = ad.device_put_sharded([np.int8(7), np.int8(8), np.int8(9)], devices[:3], indices=[2, 0, 1])
    assert array.tolist() == [8, 9, 7]
    assert [shard.device.id for shard in array.addressable_shards] == [1, 2, 0]
    with pytest.raises(ValueError, match="expected each of 0 to 1 once"):
        ad.device_put_sharded([X, X], devices[:2], indices=[0, 0])


def test_all_values_that_differ_are_listed(devices):
    with pytest.raises(ValueError, match="values") as raised:
        ad.device_put_sharded([X, X[:4], X.astype(np.int8)], devices[:3])
    assert "values[1] has shape (4, 8); expected (8, 8)" in str(raised.value)
    assert "values[2] has dtype int8; expected float32" in str(raised.value)


@pytest.mark.parametrize(
    ("values", "count", "text"),
    [
        ([X, X], 3, "2 values for 3 devices"),
        ([], 0, "devices is empty"),
        ([X, {"a": X}], 2, r"sharded_values\[1\] is a tree of another structure"),
    ],
    ids=["count", "empty", "structure"],
)
def test_wrong_values_are_value_errors(values, count, text, devices):
    with pytest.raises(ValueError, match=text):
        ad.device_put_sharded(values, devices[:count])


def test_wrong_devices(devices):
    with pytest.raises(ValueError, match="more than once"):
        ad.device_put_sharded([X, X], [devices[0], devices[0]])
    with pytest.raises(TypeError, match="expected Devices"):
        ad.device_put_sharded([X], ["cpu:0"])
    with pytest.raises(ValueError, match="list of Devices"):
        ad.device_put_replicated(X, devices[0])
    with pytest.raises(ValueError, match="devices is empty"):
        ad.device_put_replicated(X, [])


# --- device_put_replicated ---


def test_copies_are_stacked(devices, nothing_left):
    array = ad.device_put_replicated({"w": X, "b": 3}, devices[2:5])
    assert parts_of(array["w"]) == [(number, (1, 8, 8), [X.tolist()]) for number in (2, 3, 4)]
    assert array["b"].tolist() == [3, 3, 3]


def test_an_array_is_replicated_and_stays(devices):
    source = ad.device_put(X, devices[0])
    array = ad.device_put_replicated(source, devices)
    assert not source.is_deleted()
    assert_same_bits(array, np.stack([X] * 8))
    array.delete()
    assert_same_bits(source, X)


def test_each_device_is_charged_once():
    with ad.simulate("2 nodes x 2"):
        for device in ad.devices():
            device.set_bytes_limit(100)
        array = ad.device_put_replicated(np.zeros(100, np.int8), ad.devices())
        assert [device.memory_stats()["bytes_in_use"] for device in ad.devices()] == [100] * 4
        array.delete()
        array = ad.device_put_sharded([np.full(100, i, np.int8) for i in range(4)], ad.devices())
        assert np.asarray(array)[:, 99].tolist() == [0, 1, 2, 3]
        assert [device.memory_stats()["bytes_in_use"] for device in ad.devices()] == [100] * 4
        with pytest.raises(ResourceExhaustedError):
            ad.device_put_replicated(np.zeros(1, np.int8), ad.devices())


# --- Donation ---


def test_use_after_donation_names_donation(devices, named):
    for target in (devices[0], devices[3], named("x")):
        source = ad.device_put(X, devices[0])
        shard = source.addressable_shards[0].data
        moved = ad.device_put(source, target, donate=True)
        assert source.is_deleted()
        assert_same_bits(moved, X)
        for use in (lambda array=source: np.asarray(array), source.block_until_ready, shard.item, source.devices):
            with pytest.raises(RuntimeError, match="was donated to device_put"):
                use()
        assert "deleted" in repr(source)


def test_what_was_deleted_was_not_donated(devices):
    source = ad.device_put(X, devices[0])
    source.delete()
    with pytest.raises(RuntimeError, match="was deleted") as raised:
        ad.device_put(source, devices[1], donate=True)
    assert "donated to" not in str(raised.value)


def test_donated_leaves_of_a_tree_end_also_where_they_stay(devices):
    tree = {"a": ad.device_put(X, devices[0]), "b": ad.device_put(X, devices[0])}
    placed = ad.device_put(tree, devices[0], donate={"a": True, "b": False})
    assert tree["a"].is_deleted()
    assert placed["a"] is not tree["a"]
    assert placed["b"] is tree["b"]
    assert_same_bits(placed["a"], X)


def test_a_failed_put_donates_nothing(devices):
    tree = [ad.device_put(X, devices[0]), "text"]
    with pytest.raises(TypeError):
        ad.device_put(tree, devices[1], donate=True)
    assert not tree[0].is_deleted()


@pytest.mark.parametrize("x", [X.copy(), [X.copy()]], ids=["leaf", "tree"])
def test_donate_and_may_alias_together_are_refused(x, devices):
    with pytest.raises(ValueError, match="donate and may_alias"):
        ad.device_put(x, devices[0], donate=True, may_alias=True)


# --- PartitionSpec and Format as places ---


def test_a_spec_needs_a_mesh(grid, named):
    with pytest.raises(ValueError, match="set_mesh"):
        ad.device_put(X, ad.P("x"))
    with ad.set_mesh(grid):
        assert ad.device_put(X, ad.P("x")).sharding == named("x")
        placed = ad.device_put({"a": X, "b": [X, X]}, {"a": ad.P("y"), "b": None})
        assert placed["a"].sharding == named("y")
        with pytest.raises(ValueError, match="q"):
            ad.device_put(X, ad.P("q"))


def test_a_format_of_row_major_order_is_its_sharding(named, devices):
    assert ad.device_put(X, Format(Layout((0, 1)), named("x"))).sharding == named("x")
    assert ad.device_put(X, Format(None, devices[2])).devices() == {devices[2]}
    assert ad.device_put([X], [Format(Layout((0, 1)), devices[1])])[0].devices() == {devices[1]}
    assert ad.device_put(X, Format()).devices() == {devices[0]}
    array = ad.device_put(X, named("y"))
    assert ad.device_put(array, Format()) is array


@pytest.mark.parametrize(
    ("layout", "wrong"),
    [
        (Layout((0, 2)), "expected each of 0 to 1 once"),
        (Layout.AUTO, "no compiler chooses one"),
    ],
    ids=repr,
)
def test_layouts_that_are_not_stored_are_refused(layout, wrong, devices):
    with pytest.raises(ValueError, match=wrong):
        ad.device_put(X, Format(layout, devices[0]))


def test_a_layout_of_another_rank_is_refused(devices):
    with pytest.raises(ValueError, match="orders 1 dimensions and the value of shape \\(8, 8\\) has 2"):
        ad.device_put(X, Format(Layout((0,)), devices[0]))
    with pytest.raises(ValueError, match="orders 3 dimensions"):
        ad.device_put(ad.device_put(X), Format(Layout((0, 1, 2)), devices[0]))


def test_a_layout_alone_is_not_place():
    with pytest.raises(ValueError, match=r"device is Layout.*; expected None, a Device"):
        ad.device_put(X, Layout((0, 1)))
    with pytest.raises(ValueError, match="needs a sharding"):
        Format(Layout((0, 1)))
    with pytest.raises(TypeError, match=r"sharding is 3 .int."):
        Format(None, 3)
    with pytest.raises(TypeError, match="major_to_minor"):
        Layout("01")
    with pytest.raises(TypeError, match=r"major_to_minor is 3 .*; expected a sequence"):
        Layout(3)


def test_formats_and_layouts_compare_and_print(devices):
    assert Layout([0, 1]) == Layout((0, 1))
    assert len({Layout((0, 1)), Layout([0, 1]), Layout((1, 0))}) == 2
    assert repr(Layout((0, 1))) == "Layout(major_to_minor=(0, 1))"
    assert Format(None, devices[0]) == Format(None, ad.SingleDeviceSharding(devices[0]))
    assert repr(Format(Layout.AUTO)) == "Format(layout=AUTO, sharding=None)"


# --- Prefixes, memory ---


def test_a_wrong_prefix_names_the_path(devices):
    with pytest.raises(ValueError, match="device is not a prefix") as raised:
        ad.device_put({"a": [X, X]}, {"a": [devices[0]]})
    assert "['a']" in str(raised.value)


def test_clear_caches_gives_freed_blocks_back(settled):
    with ad.simulate(1):
        device = ad.devices()[0]
        ad.clear_caches()
        # The free parts of chunks that small Arrays of other tests live in.
        beside_small_arrays = device.memory_stats()["pool_bytes_cached"]
        kept = ad.device_put(np.zeros(1 << 20, np.int8))
        freed = ad.device_put(np.zeros(1 << 23, np.int8))
        del freed
        gc.collect()
        assert device.memory_stats()["pool_bytes_cached"] >= beside_small_arrays + (1 << 23)
        assert ad.clear_caches() is None
        assert device.memory_stats()["pool_bytes_cached"] == beside_small_arrays
        assert not np.asarray(kept).any()


def test_live_arrays_by_platform():
    array = ad.device_put(X)
    assert any(other is array for other in ad.live_arrays("cpu"))
