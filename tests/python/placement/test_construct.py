# SPDX-License-Identifier: Apache-2.0
"""Arrays made of parts, of a callback, of local data."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.errors import IndivisibleError
from artifex_devices.layout import Format, Layout
from artifex_devices.testing import assert_same_bits, shardable_arrays
from hypothesis import given

X = np.arange(64, dtype=np.float32).reshape(8, 8)


def split(value, sharding):
    """The parts of a value, each on its device, in mesh order."""
    return [
        ad.device_put(np.array(value[index]), device)
        for device, index in sharding.devices_indices_map(value.shape).items()
    ]


# --- make_array_from_single_device_arrays ---


@given(shardable_arrays())
def test_the_shape_comes_from_the_parts(placement):
    parts = split(placement.value, placement.sharding)
    assert_same_bits(ad.make_array_from_single_device_arrays(parts, placement.sharding), placement.value)
    assert_same_bits(
        ad.make_array_from_single_device_arrays(arrays=tuple(parts), sharding=placement.sharding), placement.value
    )


def test_no_byte_is_copied(named, settled):
    parts = split(X, named("x", "y"))
    with ad.transfers.record() as report:
        whole = ad.make_array_from_single_device_arrays((8, 8), named("x", "y"), parts)
    assert report.bytes() == 0
    for part, shard in zip(parts, whole.addressable_shards, strict=True):
        assert part.unsafe_buffer_pointer() == shard.data.unsafe_buffer_pointer()


def test_parts_and_whole_have_lives_of_their_own(named, nothing_left):
    parts = split(X, named("x"))
    whole = ad.make_array_from_single_device_arrays((8, 8), named("x"), parts)
    parts[0].delete()
    assert_same_bits(whole, X)
    whole.delete()
    assert_same_bits(parts[7], X[4:])


def test_shards_of_another_array_are_parts(named):
    source = ad.device_put(X, named("x"))
    shards = [shard.data for shard in source.addressable_shards]
    assert_same_bits(ad.make_array_from_single_device_arrays((8, 8), named("x"), shards), X)


def test_parts_that_are_still_on_their_way(line):
    big = np.arange(8 << 20, dtype=np.int32).reshape(8, -1)
    sharding = ad.NamedSharding(line, ad.P("x"))
    rows = [ad.device_put(ad.device_put(big[i : i + 1], ad.devices()[0]), ad.devices()[i]) for i in range(8)]
    assert_same_bits(ad.make_array_from_single_device_arrays(big.shape, sharding, rows), big)


def test_uneven_parts(line):
    sharding = ad.NamedSharding(line, ad.P("x"), uneven="last-short")
    value = np.arange(13)
    whole = ad.make_array_from_single_device_arrays(split(value, sharding), sharding)
    assert_same_bits(whole, value)


@pytest.mark.parametrize("world", [2, "2 nodes x 1"])
def test_replicas_must_be_the_same(world):
    with ad.simulate(world):
        sharding = ad.NamedSharding(ad.Mesh(ad.devices(), "x"), ad.P())
        parts = [ad.device_put(X, device) for device in ad.devices()]
        assert_same_bits(ad.make_array_from_single_device_arrays(X.shape, sharding, parts), X)
        other = [parts[0], ad.device_put(X + 1, ad.devices()[1])]
        if world == 2:  # one memory: one of them would be lost
            with pytest.raises(ValueError, match=r"arrays\[1\] on cpu:1 differs from arrays\[0\]"):
                ad.make_array_from_single_device_arrays(X.shape, sharding, other)
        big = np.zeros((6 << 20,), np.uint8)
        big_parts = [ad.device_put(big, device) for device in ad.devices()]
        assert_same_bits(ad.make_array_from_single_device_arrays(big.shape, sharding, big_parts), big)


def test_everything_that_is_wrong_is_listed(named, devices):
    sharding = named("x", "y")
    parts = split(X, sharding)
    with ad.simulate(8):
        foreign = ad.device_put(X[:4, :2], ad.devices()[3])
    parts[1] = ad.device_put(X[:4, :2].astype(np.int32), devices[1])
    parts[2] = ad.device_put(X[:3, :2], devices[2])
    parts[3] = foreign
    parts[4] = ad.device_put(X[:4, :2], devices[0])
    parts[5] = X[:4, :2]
    parts[6] = ad.device_put(X[:4, :2], named())
    parts[7].delete()
    with pytest.raises(ValueError, match="make_array_from_single_device_arrays") as raised:
        ad.make_array_from_single_device_arrays((8, 8), sharding, parts)
    text = str(raised.value)
    for problem in (
        "arrays[1] has dtype int32; expected float32 as arrays[0] has",
        "arrays[2] has shape (3, 2); expected (4, 2), the part of shape (8, 8) on cpu:2",
        "arrays[3] is on cpu:3 of another world",
        "arrays[4] is on cpu:0 as arrays[0] is",
        "arrays[5] is of type numpy.ndarray; expected an Array",
        "arrays[6] is on 8 devices; expected one",
        "arrays[7] was deleted",
        "no part for cpu:3",
    ):
        assert problem in text, (problem, text)


def test_a_wrong_count(named):
    parts = split(X, named("x"))
    with pytest.raises(ValueError, match="arrays has 7 entries; expected 8"):
        ad.make_array_from_single_device_arrays((8, 8), named("x"), parts[:7])
    with pytest.raises(ValueError, match="arrays has 9 entries; expected 8"):
        ad.make_array_from_single_device_arrays((8, 8), named("x"), [*parts, parts[0]])
    with pytest.raises(ValueError, match="arrays has 0 entries"):
        ad.make_array_from_single_device_arrays((8, 8), named("x"), [])
    with pytest.raises(ValueError, match="arrays has 0 entries"):
        ad.make_array_from_single_device_arrays([], named("x"))


def test_the_dtype_that_is_asked_for(named):
    parts = split(X, named("x"))
    assert ad.make_array_from_single_device_arrays((8, 8), named("x"), parts, dtype="float32").dtype == np.float32
    with pytest.raises(ValueError, match="has dtype float32; expected int32"):
        ad.make_array_from_single_device_arrays((8, 8), named("x"), parts, dtype=np.int32)


# --- make_array_from_callback ---


def test_replicas_in_several_memories_all_get_the_value():
    with ad.simulate("2 nodes x 2"):
        sharding = ad.NamedSharding(ad.Mesh(ad.devices(), "x"), ad.P())
        array = ad.make_array_from_callback((8, 8), sharding, lambda index: X[index])
        for shard in array.addressable_shards:
            assert_same_bits(shard.data, X)


@pytest.mark.parametrize("size", [8, 1 << 20])
def test_one_buffer_filled_again_and_again(size, line):
    buffer = np.empty((1, size), np.float32)

    def block(index):
        buffer[...] = index[0].start
        return buffer

    array = ad.make_array_from_callback((8, size), ad.NamedSharding(line, ad.P("x")), block)
    buffer[...] = -1
    assert np.asarray(array)[:, -1].tolist() == list(range(8))


def test_blocks_may_be_of_any_layout_and_kind(named, devices):
    array = ad.make_array_from_callback((8, 8), named("x"), lambda index: np.asfortranarray(X)[index])
    assert_same_bits(array, X)
    assert_same_bits(
        ad.make_array_from_callback((8, 8), named("y"), lambda index: ad.device_put(X[index], devices[3])), X
    )
    assert ad.make_array_from_callback((), named(), lambda index: 3).item() == 3


def test_all_blocks_that_do_not_fit_are_listed(line):
    sharding = ad.NamedSharding(line, ad.P("x"))

    def block(index):
        row = index[0].start
        return {2: X[:2], 5: X[index].astype(np.int8)}.get(row, X[index])

    with pytest.raises(ValueError, match="make_array_from_callback") as raised:
        ad.make_array_from_callback((8, 8), sharding, block)
    assert "cpu:2, index (slice(2, 3, None), slice(None, None, None)), has shape (2, 8); expected (1, 8)" in str(
        raised.value
    )
    assert "cpu:5" in str(raised.value)
    assert "has dtype int8; expected float32" in str(raised.value)


def test_replicas_of_a_callback_must_be_the_same(named):
    count = iter(range(100))
    with pytest.raises(ValueError, match=r"cpu:1.*differs from the part of an earlier device"):
        ad.make_array_from_callback((8, 8), named("x"), lambda index: X[index] + next(count))


def test_errors_of_callbacks(named, devices, nothing_left):
    make = ad.make_array_from_callback
    with pytest.raises(ZeroDivisionError):
        make((8, 8), named("x"), lambda index: 1 // 0)
    with pytest.raises(TypeError, match="the block of cpu:0"):
        make((8, 8), named("x"), lambda index: None)
    with pytest.raises(TypeError, match="data_callback"):
        make((8, 8), named("x"), None)
    with pytest.raises(TypeError, match="SingleDeviceSharding"):
        make((8, 8), devices[0], lambda index: X)
    with pytest.raises(ValueError, match="expected int32"):
        make((8, 8), named("x"), lambda index: X[index], dtype=np.int32)
    with pytest.raises(IndivisibleError):
        make((9, 8), named("x"), lambda index: X[index])
    with pytest.raises(TypeError, match="shape"):
        make((8.0, 8), named("x"), lambda index: X[index])


@pytest.mark.filterwarnings("ignore:.*64")  # the first narrowing of a process warns
def test_blocks_are_implicit_transfers_and_narrowed_where_64_bits_are_off(named):
    with ad.transfer_guard("disallow"), pytest.raises(RuntimeError, match="make_array_from_callback"):
        ad.make_array_from_callback((8, 8), named("x"), lambda index: X[index])
    with ad.enable_x64(False):
        for dtype in (None, np.float64, np.float32):
            array = ad.make_array_from_callback((8, 8), named("x"), lambda index: X[index].astype(np.float64), dtype)
            assert array.dtype == np.float32
            assert_same_bits(array, X)


def test_specs_and_formats_as_shardings(grid, named):
    with ad.set_mesh(grid):
        assert ad.make_array_from_callback((8, 8), ad.P("x"), lambda index: X[index]).sharding == named("x")
    row_major = Format(Layout((0, 1)), named("x"))
    assert_same_bits(ad.make_array_from_callback((8, 8), row_major, lambda index: X[index]), X)
    with pytest.raises(ValueError, match="orders 1 dimensions"):
        ad.make_array_from_callback((8, 8), Format(Layout((0,)), named("x")), lambda index: X[index])


# --- make_array_from_process_local_data ---


@pytest.mark.parametrize("shape", [(16, 8), (8,), (None, 8), [8, 8, 1]])
def test_another_global_shape_is_refused(shape, named):
    with pytest.raises(ValueError, match=r"data \(8, 8\)"):
        ad.make_array_from_process_local_data(named("x"), X, shape)


def test_a_global_shape_that_is_wrong_for_one_leaf_names_it(named):
    with pytest.raises(ValueError, match=r"leaf \['b'\]: global_shape \(4,\), data \(8,\)"):
        ad.make_array_from_process_local_data(named(), {"a": X, "b": X[0]}, {"a": (8, 8), "b": (4,)})
    with pytest.raises(ValueError, match="sharding is None"):
        ad.make_array_from_process_local_data(None, X)
