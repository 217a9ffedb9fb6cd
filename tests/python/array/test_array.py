# SPDX-License-Identifier: Apache-2.0
"""Array: what it says of itself, how it gives its value, what is left when it is deleted."""

import gc
import inspect
import pickle
import weakref
from typing import Any

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.testing import assert_same_bits, shardable_arrays
from hypothesis import given
from hypothesis import strategies as st

X = np.arange(64, dtype=np.float32).reshape(8, 8)


@pytest.fixture
def sharded(named):
    return ad.device_put(X, named("x", "y"))


@given(shardable_arrays())
def test_facts_are_those_of_the_value(placement):
    value, sharding = placement.value, placement.sharding
    array = ad.device_put(value, sharding)
    assert array.shape == value.shape
    assert array.dtype == value.dtype
    assert array.ndim == value.ndim
    assert array.size == value.size
    assert array.nbytes == value.nbytes
    assert array.itemsize == value.itemsize
    assert array.sharding == sharding
    assert array.devices() == sharding.device_set
    assert array.committed
    assert array.is_fully_addressable
    assert array.is_fully_replicated is sharding.is_fully_replicated
    assert not array.is_deleted()
    assert array.block_until_ready() is array
    assert array.is_ready()


@given(shardable_arrays())
def test_shards_are_the_parts_of_the_sharding(placement):
    value, sharding = placement.value, placement.sharding
    array = ad.device_put(value, sharding)
    indices = sharding.devices_indices_map(value.shape)
    assert [(shard.device, shard.index) for shard in array.addressable_shards] == list(indices.items())
    seen = []
    for position, shard in enumerate(array.addressable_shards):
        assert shard.replica_id == sum(index == shard.index for index in seen)
        seen.append(shard.index)
        assert shard.data.devices() == {shard.device}
        assert shard.data.device == shard.device
        assert_same_bits(shard.data, value[shard.index])
        assert_same_bits(array.addressable_data(position), value[shard.index])
    parts = {str(index): value[index].nbytes for index in seen}
    assert array.on_device_size_in_bytes() == sum(parts[str(index)] for index in seen)


def test_on_device_size_counts_replicas(named):
    assert ad.device_put(X, named()).on_device_size_in_bytes() == 8 * X.nbytes
    assert ad.device_put(X, named("x")).on_device_size_in_bytes() == 4 * X.nbytes
    assert ad.device_put(X, named("x", "y")).on_device_size_in_bytes() == X.nbytes


def test_replica_ids_count_in_mesh_order(named):
    array = ad.device_put(X, named("x"))
    assert [shard.replica_id for shard in array.addressable_shards] == [0, 1, 2, 3] * 2
    array = ad.device_put(X, named(None, "y"))
    assert [shard.replica_id for shard in array.addressable_shards] == [0] * 4 + [1] * 4


def test_device_is_a_device_or_the_sharding_and_can_be_called(sharded, devices):
    single = ad.device_put(X, devices[5])
    assert single.device == devices[5]
    assert single.device() == devices[5]
    assert sharded.device == sharded.sharding


def test_an_uncommitted_array_is_placed_on_the_first_device(devices):
    array = ad.device_put(X)
    assert array.devices() == {devices[0]}
    assert not array.committed
    assert isinstance(array.sharding, ad.SingleDeviceSharding)


def test_asarray_gives_a_read_only_array(sharded, devices):
    for array in (sharded, ad.device_put(X, devices[2])):
        value = np.asarray(array)
        assert type(value) is np.ndarray
        assert not value.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            value[0, 0] = 1
        with pytest.raises(ValueError, match="WRITEABLE"):
            value.flags.writeable = True
        assert_same_bits(value, X)


def test_one_buffer_is_shown_without_a_copy(devices):
    array = ad.device_put(X, devices[2])
    assert np.shares_memory(np.asarray(array), np.asarray(array))
    replicated = ad.device_put(X, ad.NamedSharding(ad.Mesh(devices, "x"), ad.P()))
    assert np.shares_memory(np.asarray(replicated), np.asarray(replicated.addressable_shards[0].data))


def test_a_gathered_value_is_cached(sharded):
    assert np.shares_memory(np.asarray(sharded), np.asarray(sharded))


def test_array_protocol_takes_dtype_and_copy(sharded):
    assert_same_bits(np.asarray(sharded, dtype=np.float64), X.astype(np.float64))
    copied = np.array(sharded)
    assert copied.flags.writeable
    copied[0, 0] = 5
    assert_same_bits(sharded, X)
    with pytest.raises(ValueError, match="copy=False"):
        np.array(sharded, dtype=np.int8, copy=False)


def test_len_is_the_first_size(sharded):
    assert len(sharded) == 8
    with pytest.raises(TypeError, match="no length"):
        len(ad.device_put(1.0))
    assert_same_bits(np.asarray(sharded)[2:5, ::-2], X[2:5, ::-2])


def test_an_array_cannot_be_written(sharded):
    with pytest.raises(TypeError):
        sharded[0] = 1
    with pytest.raises(AttributeError):
        sharded.shape = (64,)


@pytest.mark.parametrize("value", [np.float32(2.5), np.int64(-3), np.bool_(True), np.complex64(1 + 2j)], ids=str)
def test_scalars_become_python_numbers(value):
    array = ad.device_put(value)
    assert array.shape == ()
    assert array.item() == value.item()
    assert type(array.item()) is type(value.item())
    assert array.tolist() == value.item()
    assert complex(array) == complex(value)
    assert bool(array) is bool(value)
    if value.dtype.kind != "c":
        assert float(array) == float(value)
        assert int(array) == int(value)


def test_integers_can_index():
    assert "abc"[ad.device_put(np.int8(2))] == "c"
    with pytest.raises(TypeError):
        "abc"[ad.device_put(np.float32(2))]


@pytest.mark.parametrize("convert", [float, int, complex])
def test_arrays_with_dimensions_are_not_converted_to_numbers(convert):
    with pytest.raises(TypeError, match=r"\(1, 1\)"):
        convert(ad.device_put(np.ones((1, 1))))


def test_item_and_tolist(sharded):
    assert sharded.tolist() == X.tolist()
    assert ad.device_put(np.ones((1, 1))).item() == 1.0
    with pytest.raises(ValueError, match="size 1"):
        sharded.item()
    with pytest.raises(ValueError, match="item: another number of indices than of dimensions; expected 2"):
        sharded.item(0, 0, 0)


def test_truth_of_many_elements_is_refused(sharded):
    with pytest.raises(ValueError, match="ambiguous"):
        bool(sharded)


def test_arrays_are_unhashable(sharded):
    with pytest.raises(TypeError, match="unhashable"):
        hash(sharded)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.arange(4, dtype=np.float32), "Array([0., 1., 2., 3.], dtype=float32)"),
        (np.arange(3), "Array([0, 1, 2], dtype=int64)"),
        (np.array(True), "Array(True, dtype=bool)"),
        (np.zeros((0, 3), np.int8), "Array([], shape=(0, 3), dtype=int8)"),
        (np.eye(2, dtype=np.int32), "Array([[1, 0],\n       [0, 1]], dtype=int32)"),
    ],
    ids=["floats", "ints", "bool", "empty", "matrix"],
)
def test_repr_is_jax_text(value, text):
    assert repr(ad.device_put(value)) == text
    assert str(ad.device_put(value)) == str(value)


def test_repr_of_a_shard(named):
    shard = ad.device_put(np.arange(4, dtype=np.int32), named("x")).addressable_shards[4]
    assert repr(shard) == "Shard(device=CpuDevice(id=4), index=(slice(2, 4, None),), replica_id=0, data=[2 3])"


# --- Deletion ---


def test_a_deleted_array_still_has_its_shape_and_dtype(sharded):
    sharding = sharded.sharding
    sharded.delete()
    sharded.delete()
    assert sharded.is_deleted()
    assert (sharded.shape, sharded.dtype, sharded.sharding) == ((8, 8), np.dtype("float32"), sharding)
    assert "deleted" in repr(sharded)
    assert "deleted" in str(sharded)


@pytest.mark.parametrize(
    "use",
    [
        np.asarray,
        lambda array: array.addressable_shards,
        lambda array: array.addressable_data(0),
        lambda array: array.devices(),
        lambda array: array.block_until_ready(),
        lambda array: array.tolist(),
        lambda array: ad.device_put(array, ad.devices()[0]),
        lambda array: ad.device_get({"a": array}),
        lambda array: pickle.dumps(array),
        lambda array: array.is_ready(),
        lambda array: array.on_device_size_in_bytes(),
    ],
    ids="asarray shards data devices block tolist put get pickle is_ready size".split(),  # noqa: SIM905
)
def test_use_after_delete_is_an_error(sharded, use):
    sharded.delete()
    with pytest.raises(RuntimeError, match=r"deleted"):
        use(sharded)


@pytest.mark.thread_unsafe(reason="it deletes an Array of a fixture")
def test_deleting_a_shard_deletes_the_array(sharded):
    first, last = sharded.addressable_shards[0].data, sharded.addressable_shards[7].data
    first.delete()
    assert sharded.is_deleted()
    assert last.is_deleted()


@pytest.mark.thread_unsafe(reason="it deletes an Array of a fixture")
def test_deleting_the_array_deletes_its_shards(sharded):
    part = sharded.addressable_shards[3].data
    sharded.delete()
    assert part.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(part)


def test_exported_views_outlive_the_array(devices):
    array = ad.device_put(X, devices[1])
    view = np.asarray(array)
    array.delete()
    del array
    gc.collect()
    for _ in range(4):
        ad.device_put(np.full_like(X, 7), devices[1])
    assert_same_bits(view, X)


def test_a_shard_outlives_its_array(named):
    part = ad.device_put(X, named("x", "y")).addressable_shards[5].data
    gc.collect()
    assert_same_bits(part, X[4:, 2:4])


@pytest.mark.thread_unsafe(reason="it deletes an Array of a fixture")
def test_shards_of_a_resharded_array_are_its_own(sharded, devices):
    moved = ad.device_put(sharded, devices[0])
    sharded.delete()
    assert_same_bits(moved, X)


# --- Life and memory ---


def test_live_arrays_are_exact(settled):
    before = len(ad.live_arrays())
    one, two = ad.device_put(X), ad.device_put([X, X])
    assert len(ad.live_arrays()) == before + 3
    assert any(array is one for array in ad.live_arrays())
    part = one.addressable_shards[0].data
    assert len(ad.live_arrays()) == before + 3
    two[0].delete()
    del one, part
    gc.collect()
    assert len(ad.live_arrays()) == before + 1


def test_memory_is_counted_per_device_and_released(devices, named, settled):
    before = [device.memory_stats()["bytes_in_use"] for device in devices]
    array = ad.device_put(np.zeros((8, 128), np.int64), named("x"))
    assert [d.memory_stats()["bytes_in_use"] - b for d, b in zip(devices, before, strict=True)] == [4096] * 8
    array.delete()
    assert [d.memory_stats()["bytes_in_use"] for d in devices] == before
    with ad.simulate(2):
        device = ad.devices()[1]
        array = ad.device_put(np.zeros(1000, np.int8), device)
        stats = device.memory_stats()
        assert stats["bytes_in_use"] == stats["peak_bytes_in_use"] == stats["largest_alloc_size"] == 1000
        assert stats["num_allocs"] == 1
        del array
        gc.collect()
        stats = device.memory_stats()
        assert (stats["bytes_in_use"], stats["peak_bytes_in_use"]) == (0, 1000)
        assert ad.devices()[0].memory_stats()["num_allocs"] == 0


def test_an_array_holds_no_reference_to_its_source():
    class Source(np.ndarray):
        pass

    source = X.copy().view(Source)
    gone = weakref.ref(source)
    array = ad.device_put(source)
    del source
    gc.collect()
    assert gone() is None
    assert_same_bits(array, X)


@given(st.lists(st.sampled_from("abc"), max_size=12))
def test_any_order_of_life_and_death_keeps_values(moves):
    held = {}
    for number, name in enumerate(moves):
        if name in held:
            array, value = held.pop(name)
            assert_same_bits(array, value)
            array.delete()
        else:
            value = np.full((8, 8), number, np.int32)
            mesh = ad.make_mesh((2, 4), ("x", "y"))
            held[name] = ad.device_put(value, ad.NamedSharding(mesh, ad.P("x", "y"))), value
    for array, value in held.values():
        assert_same_bits(array, value)


def test_round_without_digits_gives_integers(named):
    x = ad.device_put(np.array([1.5, 2.5, -0.4, 3.49] * 2), named("x"))
    assert round(x).tolist() == [2, 2, 0, 3] * 2
    assert round(x).dtype.kind == "i"
    assert round(x, 1).tolist() == [1.5, 2.5, -0.4, 3.5] * 2
    assert round(ad.device_put(15), -1).tolist() == 20


@pytest.mark.parametrize("index", [(0,), (-1,), (31,), (np.int8(5),), (1, 2), (-1, -4), ((7, 3),), (np.uint64(2), 1)])
def test_item_takes_an_index(index, named):
    values = np.arange(64.0).reshape(8, 8)[:, :4].copy()
    for spec in (("x", "y"), (None, "y"), ()):
        assert ad.device_put(values, named(*spec)).item(*index) == values.item(*index)


def test_item_of_a_number_and_of_a_vector(named):
    assert ad.device_put(2.5).item(0) == 2.5
    assert type(ad.device_put(np.arange(8), named("x")).item(3)) is int


@pytest.mark.parametrize(
    ("index", "error"), [((64,), IndexError), ((0, 8), IndexError), ((0, 0, 0), ValueError), (("a",), TypeError)]
)
def test_item_refuses_other_indices(index, error, named):
    with pytest.raises(error):
        ad.device_put(np.ones((8, 8)), named("x")).item(*index)


def test_methods_that_call_numpy_have_its_parameters_with_types():
    signature = inspect.signature(ad.Array.diagonal)
    assert str(signature) == "(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> artifex_devices.Array"
    kinds = {name: each.annotation for name, each in inspect.signature(ad.Array.argpartition).parameters.items()}
    assert kinds == {"self": inspect.Parameter.empty, "kth": Any, "axis": int, "kind": str, "order": Any}
    for name in ("sum", "std", "sort", "round", "searchsorted", "take", "squeeze", "trace"):
        ours = inspect.signature(getattr(ad.Array, name)).parameters.values()
        theirs = inspect.signature(getattr(np, name)).parameters.values()
        assert [(each.kind, each.default) for each in ours][1:] == [(each.kind, each.default) for each in theirs][1:]
        assert [each.name for each in ours][1:] == [each.name for each in theirs][1:]


def test_shards_and_their_data_are_made_once_and_go_with_the_array() -> None:
    with ad.simulate(4):
        x = ad.device_put(np.arange(8.0), ad.NamedSharding(ad.make_mesh((4,), ("x",)), ad.P("x")))
        shards = x.addressable_shards
        assert x.addressable_shards[2] is shards[2]
        assert shards[2].data is x.addressable_shards[2].data
        shards.clear()  # the caller's own list
        assert [shard.data.tolist() for shard in x.addressable_shards] == [
            [0.0, 1.0],
            [2.0, 3.0],
            [4.0, 5.0],
            [6.0, 7.0],
        ]
        kept = weakref.ref(x.addressable_shards[1].data)
        assert kept() is not None
        del x
        assert kept() is None
        y = ad.device_put(np.arange(4.0), ad.devices()[1])
        shard = y.addressable_shards[0]
        shard.data.delete()
        with pytest.raises(RuntimeError, match="deleted"):
            y.addressable_shards  # noqa: B018
        with pytest.raises(RuntimeError, match="deleted"):
            shard.data  # noqa: B018
