# SPDX-License-Identifier: Apache-2.0
"""Arrays over several processes, made of what each of them has."""

from __future__ import annotations

import artifex_devices as ad
import numpy as np
import pytest
from shared_worlds import Job, check_value, clients_of, entered, local_values

X = np.arange(32, dtype=np.float32).reshape(8, 4)


def in_each(counts, body):
    """What body(process index) returns in the world of each process, one after the other: nothing is sent."""
    results = []
    for index, client in enumerate(clients_of(counts)):
        with entered(client):
            results.append(body(index))
    return results


def named(sizes, names, *spec):
    return ad.NamedSharding(ad.make_mesh(sizes, names), ad.P(*spec))


def test_each_process_is_asked_for_its_own_blocks():
    def body(index):
        asked = []

        def block(where):
            asked.append(where)
            return X[where]

        x = ad.make_array_from_callback((8, 4), named((4,), ("x",), "x"), block)
        check_value(x, X)
        return asked, [number for number, *_ in local_values(x)]

    every = slice(None)
    assert in_each((2, 2), body) == [
        ([(slice(0, 2), every), (slice(2, 4), every)], [0, 1]),
        ([(slice(4, 6), every), (slice(6, 8), every)], [2, 3]),
    ]


def test_a_replicated_array_asks_once_in_each_process():
    def body(index):
        asked = []
        x = ad.make_array_from_callback((8, 4), named((4,), ("x",)), lambda where: asked.append(where) or X[where])
        assert np.asarray(x).tolist() == X.tolist()
        return asked

    assert in_each((2, 2), body) == [[(slice(None), slice(None))]] * 2


def test_a_process_without_devices_needs_the_dtype():
    def body(index):
        first = ad.NamedSharding(ad.Mesh(np.array(ad.local_devices(0)), ("x",)), ad.P("x"))
        if index == 1:
            with pytest.raises(
                ValueError, match=r"make_array_from_callback: no device of .* determines the dtype; expected"
            ):
                ad.make_array_from_callback((8, 4), first, X.__getitem__)
            with pytest.raises(
                ValueError, match="so no part determines shape and dtype; expected both, got a shape on"
            ):
                ad.make_array_from_single_device_arrays((8, 4), first, [])
            y = ad.make_array_from_single_device_arrays((8, 4), first, [], dtype=np.float32)
            assert (y.shape, y.dtype, y.addressable_shards) == ((8, 4), np.float32, [])
        x = ad.make_array_from_callback((8, 4), first, X.__getitem__, dtype=np.float32)
        assert x.shape == (8, 4)
        return len(x.addressable_shards)

    assert in_each((2, 2), body) == [2, 0]


def test_single_device_arrays_are_those_of_this_process():
    def body(index):
        sharding = named((4,), ("x",), "x")
        own = ad.local_devices()
        parts = [ad.device_put(X[2 * d.id : 2 * d.id + 2], d) for d in reversed(own)]
        check_value(ad.make_array_from_single_device_arrays((8, 4), sharding, parts), X)
        check_value(ad.make_array_from_single_device_arrays(parts, sharding), X)
        few = "arrays has 1 entries; expected 2, one for each device of this process of NamedSharding"
        with pytest.raises(ValueError, match=few):
            ad.make_array_from_single_device_arrays((8, 4), sharding, [parts[0]])

    in_each((2, 2), body)


def test_parts_on_wrong_devices_are_all_reported():
    with entered(clients_of((2, 2))[1]):
        sharding = named((4,), ("x",), "x")
        remote = ad.make_array_from_callback(
            (2, 4), ad.SingleDeviceSharding(ad.devices()[0]), lambda i: X[i], np.float32
        )
        good = ad.device_put(X[:3], ad.devices()[2])
        with pytest.raises(ValueError, match=r"^make_array_from_single_device_arrays: ") as caught:
            ad.make_array_from_single_device_arrays((8, 4), sharding, [remote, good])
        text = str(caught.value)
        assert "arrays[0] is on cpu:0 of another process, which is not a device of the sharding in this process" in text
        assert "no part for cpu:3" in text
        assert "arrays[1] has shape (3, 4); expected (2, 4), the part of shape (8, 4) on cpu:2" in text


# --- make_array_from_process_local_data ---


@pytest.mark.parametrize(
    ("sizes", "names", "spec", "local", "whole"),
    [
        ((4,), ("x",), ("x",), (4, 4), (8, 4)),
        ((4,), ("x",), (None, "x"), (8, 2), (8, 4)),
        ((4,), ("x",), (), (8, 4), (8, 4)),
        ((2, 2), ("p", "d"), ("p", "d"), (4, 4), (8, 4)),
        ((2, 2), ("p", "d"), ("d", "p"), (8, 2), (8, 4)),
        ((2, 2), ("p", "d"), ("d",), (8, 4), (8, 4)),
        ((2, 2), ("p", "d"), (None, "p"), (8, 2), (8, 4)),
        ((2, 2), ("p", "d"), (("p", "d"),), (4, 4), (8, 4)),
        ((2, 2), ("p", "d"), (("d", "p"),), (4, 4), (8, 4)),  # each process has every other quarter
    ],
)
def test_the_shape_of_the_whole_follows(sizes, names, spec, local, whole):
    def body(index):
        sharding = named(sizes, names, *spec)
        boxes = sharding.addressable_devices_indices_map(whole).values()
        rows = sorted({i for box in boxes for i in range(whole[0])[box[0]]})
        columns = sorted({i for box in boxes for i in range(whole[1])[box[1]]})
        data = X[np.ix_(rows, columns)]
        assert data.shape == local
        for shape in (None, whole, list(whole)):
            check_value(ad.make_array_from_process_local_data(sharding, data, shape), X)
        check_value(ad.make_array_from_process_local_data(sharding, X, (8, 4)), X)  # the whole is taken too

    in_each((2, 2), body)


def test_trees_and_numbers_of_any_shape():
    def body(index):
        rows, everywhere = named((4,), ("x",), "x"), named((4,), ("x",))
        made = ad.make_array_from_process_local_data(
            {"a": rows, "b": everywhere}, {"a": X[4 * index : 4 * index + 4], "b": (2.5, X)}, {"a": None, "b": None}
        )
        check_value(made["a"], X)
        assert made["b"][0].shape == ()
        assert float(made["b"][0]) == 2.5
        assert np.asarray(made["b"][1]).tolist() == X.tolist()

    in_each((2, 2), body)


def test_sizes_that_do_not_fit_are_all_reported():
    with entered(clients_of((2, 2))[0]):
        sharding = named((2, 2), ("p", "d"), "p", "d")
        with pytest.raises(ValueError, match="the data does not fit") as caught:
            ad.make_array_from_process_local_data(sharding, {"w": np.ones((3, 3))}, (8, 4))
        assert str(caught.value).startswith("make_array_from_process_local_data: leaf ['w']: the data does not fit ")
        assert (
            "dimension 0: global 8, this process's parts 4, data 3; dimension 1: global 4, this process's parts 4, "
            in (str(caught.value))
        )
        with pytest.raises(ValueError, match=r"global_shape does not fit the data; expected 2 sizes, got \(8,\)"):
            ad.make_array_from_process_local_data(sharding, np.ones((3, 3)), (8,))


@pytest.mark.parametrize(
    ("counts", "shape", "what", "size"),
    [
        ((2, 2), None, "leaf ['w']: the local data of shape (3, 4): ", 6),
        ((2, 2), (7, 4), "leaf ['w']: the local data of shape (3, 4): ", 7),
        ((4,), None, "leaf ['w']: ", 3),
    ],
)
def test_data_that_the_sharding_does_not_divide_is_an_error_of_this_function(counts, shape, what, size):
    with entered(clients_of(counts)[0]):
        with pytest.raises(ad.errors.IndivisibleError) as caught:
            ad.make_array_from_process_local_data(named((4,), ("x",), "x"), {"w": np.ones((3, 4))}, shape)
        padded = -(-size // 4) * 4
        assert str(caught.value) == (
            f"make_array_from_process_local_data: {what}dimension 0 of size {size} is split into 4 parts by mesh axis "
            f"'x', which does not divide; expected sizes that are multiples of the parts, got shape ({size}, 4) with "
            f"P('x',) on Mesh('x': 4); pad dimension 0 to {padded}, shard over other mesh axes, or use "
            'uneven="last-short"'
        )
        with pytest.raises(ValueError, match=r"^make_array_from_process_local_data: .* only valid for values of rank"):
            ad.make_array_from_process_local_data(named((4,), ("x",), None, "x"), np.ones(4))


def test_processes_with_different_parts_need_a_global_shape():
    with entered(clients_of((1, 3))[0]):
        sharding = named((4,), ("x",), "x")
        with pytest.raises(
            ValueError, match=r"local shape \(2, 4\) does not determine the global shape: in dimension 0 of .* give gl"
        ):
            ad.make_array_from_process_local_data(sharding, X[:2])
        check_value(ad.make_array_from_process_local_data(sharding, X[:2], (8, 4)), X)
    with entered(clients_of((1, 3))[1]):
        check_value(ad.make_array_from_process_local_data(named((4,), ("x",), "x"), X[2:], (8, 4)), X)


def test_a_process_that_has_no_device_cannot_give_data():
    with entered(clients_of((2, 2))[1]):
        first = ad.NamedSharding(ad.Mesh(np.array(ad.local_devices(0)), ("x",)), ad.P("x"))
        with pytest.raises(ValueError, match=r"no device of .* is of this process, 1; expected at least one"):
            ad.make_array_from_process_local_data(first, X)


def test_shardings_of_one_process_take_the_whole():
    def body(index):
        own = ad.NamedSharding(ad.Mesh(np.array(ad.local_devices()), ("x",)), ad.P("x"))
        x = ad.make_array_from_process_local_data(own, X + index)
        assert x.is_fully_addressable
        return np.asarray(x)[0, 0]

    assert in_each((2, 2), body) == [0, 1]


def test_guards_take_it_as_an_explicit_transfer():
    with entered(clients_of((2, 2))[0]):
        sharding = named((4,), ("x",), "x")
        with ad.transfer_guard("disallow"):
            check_value(ad.make_array_from_process_local_data(sharding, X[:4]), X)
        with ad.transfer_guard("disallow_explicit"), pytest.raises(ad.errors.TransferGuardError):
            ad.make_array_from_process_local_data(sharding, X[:4])


def test_host_values_go_to_devices_of_all_processes_where_they_are_equal():
    with Job((2, 2)) as job:

        def body(index):
            x = ad.device_put(X, named((4,), ("x",), "x"))
            check_value(x, X)
            assert x.committed
            with pytest.raises(ValueError, match="the processes do not have the same value") as caught:
                ad.device_put(X + index, named((4,), ("x",)))
            return str(caught.value)

        texts = job.run(body)
        assert texts[0] == texts[1]
        assert texts[0].startswith("device_put of float32(8, 4) to NamedSharding(")
        assert ": the processes do not have the same value; expected equal shapes, dtypes and bits" in texts[0]
        assert job.traffic() == [({}, {})] * 2  # digests do not count as data


def test_values_are_not_compared_where_that_is_not_wanted_or_not_possible():
    ad.config.update("distributed_checks", False)
    try:
        for index, client in enumerate(clients_of((2, 2))):
            with entered(client):
                assert np.asarray(ad.device_put(X + index, named((4,), ("x",))))[0, 0] == index
    finally:
        ad.config.update("distributed_checks", True)
    with entered(clients_of((2, 2))[0]):
        only_second = ad.NamedSharding(ad.Mesh(np.array(ad.local_devices(1)), ("x",)), ad.P("x"))
        assert ad.device_put(X, only_second).addressable_shards == []
        with pytest.raises(RuntimeError, match=r"no transport is installed; expected that of distributed"):
            ad.device_put(X, named((4,), ("x",)))


def test_arrays_that_no_place_was_asked_for_are_values_that_every_process_has():
    with Job((2, 1)) as job:

        def body(index):
            x = ad.device_put(X * 2)
            assert not x.committed
            y = ad.device_put(x, named((3,), ("x",), None), donate=True)
            assert x.is_deleted()
            check_value(y, X * 2)
            return [shard.device.id for shard in y.addressable_shards]

        assert job.run(body) == [[0, 1], [2]]
