# SPDX-License-Identifier: Apache-2.0
"""What Arrays over devices of several processes do in one of them, without a message."""

from __future__ import annotations

import copy
import pickle

import artifex_devices as ad
import numpy as np
import pytest
from shared_worlds import Job, check_value, clients_of, entered

X = np.arange(32, dtype=np.float32).reshape(8, 4)
NOT_HERE = (
    r": the Array of shape \(8, 4\) and dtype float32 spans devices that are not addressable: 2 of 4 belong to "
    r"other processes than the current process 1; .* multihost_utils.process_allgather\(x\), or look at "
    r"x.addressable_shards"
)


@pytest.fixture
def client():
    """Process 1 of 2 with 2 devices each."""
    with entered(clients_of((2, 2))[1]) as client:
        yield client


def named(sizes, names, *spec, **more):
    return ad.NamedSharding(ad.make_mesh(sizes, names), ad.P(*spec), **more)


def placed(value, sharding):
    return ad.make_array_from_callback(value.shape, sharding, value.__getitem__, value.dtype)


@pytest.fixture
def rows(client):
    return placed(X, named((4,), ("x",), "x"))


def test_shards_are_those_of_this_process_and_all_of_them(rows):
    assert not rows.is_fully_addressable
    assert [(s.device.id, s.index[0], s.replica_id) for s in rows.addressable_shards] == [
        (2, slice(4, 6), 0),
        (3, slice(6, 8), 0),
    ]
    assert [s.device.id for s in rows.global_shards] == [0, 1, 2, 3]
    assert [s.data is None for s in rows.global_shards] == [True, True, False, False]
    assert rows.global_shards[0].index[0] == slice(0, 2)
    assert np.asarray(rows.global_shards[3].data).tolist() == X[6:].tolist()
    assert repr(rows.global_shards[0]) == (
        "Shard(device=CpuDevice(id=0), index=(slice(0, 2, None), slice(None, None, None)), replica_id=0, data=None)"
    )
    assert rows.addressable_data(1).tolist() == X[6:].tolist()
    with pytest.raises(IndexError, match="addressable_data: shard 2 does not exist; expected 0 to 1"):
        rows.addressable_data(2)
    assert {d.id for d in rows.devices()} == {0, 1, 2, 3}


def test_replicas_count_over_all_processes(client):
    x = placed(X, named((4,), ("x",)))
    assert [s.replica_id for s in x.addressable_shards] == [2, 3]
    pair = placed(X, named((2, 2), ("p", "d"), "d"))
    assert [(s.index[0], s.replica_id) for s in pair.addressable_shards] == [(slice(0, 4), 1), (slice(4, 8), 1)]


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("device_get", np.asarray),
        ("device_get", ad.device_get),
        ("device_get", lambda x: x.tolist()),
        ("device_get", lambda x: x.item()),
        ("device_get", lambda x: bool(x)),
        ("__array__", lambda x: np.asarray(x, copy=False) if np.__version__ >= "2" else x.__array__(copy=False)),
        ("copy_to_host_async", lambda x: ad.copy_to_host_async(x).result()),
        ("copy_to_host_async", lambda x: x.copy_to_host_async().result(1)),
        ("copy_to_host_async", lambda x: ad.copy_to_host_async({"a": x, "b": 1}).result()),
    ],
)
def test_values_that_are_not_here_cannot_be_read(rows, name, read):
    with pytest.raises(RuntimeError, match=f"^{name}{NOT_HERE}"):
        read(rows)


def test_a_copy_to_the_host_begins_though_only_parts_are_here(rows):
    coming = ad.copy_to_host_async(rows)
    assert coming.done()
    assert repr(coming) == "<HostCopy of 1 leaf, done>"
    assert [np.asarray(shard.data).tolist() for shard in rows.addressable_shards] == [X[4:6].tolist(), X[6:].tolist()]
    error = coming.exception()
    assert type(error) is RuntimeError
    with pytest.raises(RuntimeError) as raised:
        coming.result()
    assert str(raised.value) == str(error)
    rows.delete()
    with pytest.raises(RuntimeError, match=r"copy_to_host_async: .* was deleted"):
        ad.copy_to_host_async(rows)


def test_values_of_which_every_part_is_here_can_be_read(client):
    for x in (
        placed(X, named((4,), ("x",))),
        placed(X, named((2, 2), ("p", "d"), "d")),
        placed(X, named((2, 2), ("p", "d"), None, "d")),
    ):
        assert not x.is_fully_addressable
        assert np.asarray(x).tolist() == X.tolist()
        assert ad.device_get({"a": x})["a"].tolist() == X.tolist()
        assert ad.copy_to_host_async(x).result().tolist() == X.tolist()
    number = placed(np.float32(2.5), named((4,), ("x",)))
    assert (float(number), number.item(), bool(number)) == (2.5, 2.5, True)


def test_texts_are_those_of_jax(client, rows):
    assert repr(rows) == str(rows) == "Array(shape=(8, 4), dtype=float32)"
    whole = placed(np.arange(3), named((4,), ("x",)))
    assert repr(whole) == "Array([0, 1, 2], dtype=int64)"
    assert str(whole) == "[0 1 2]"
    remote = placed(np.arange(3), ad.SingleDeviceSharding(ad.devices()[0]))
    assert repr(remote) == "Array(shape=(3,), dtype=int64)"
    assert f"{rows}" == "Array(shape=(8, 4), dtype=float32)"
    rows.delete()
    assert repr(rows) == "Array(shape=(8, 4), deleted, dtype=float32)"


def test_descriptions_say_what_is_here(rows):
    text = rows.describe()
    assert "shards    4 of (2, 4), 2 of them in this process" in text
    assert "memory    128 bytes logical, 32 bytes per device; 64 bytes physical in 2 buffers" in text
    assert "Array" in rows._repr_html_()
    remote = placed(X, ad.SingleDeviceSharding(ad.devices()[0]))
    assert "shards    1 of (8, 4), none of them in this process" in remote.describe()


def test_only_devices_of_this_process_are_charged_and_deletion_ends_that(client):
    def in_use():
        return [d.memory_stats()["bytes_in_use"] for d in ad.local_devices()]

    big = placed(np.ones((8, 1 << 16), np.float32), named((4,), ("x",), "x"))
    small = placed(X, named((4,), ("x",)))
    assert in_use() == [(1 << 19) + 128] * 2
    assert (big.on_device_size_in_bytes(), big.nbytes, small.on_device_size_in_bytes()) == (1 << 21, 1 << 21, 512)
    part = big.addressable_shards[1].data
    big.delete()
    assert part.is_deleted()
    assert in_use() == [128, 128]
    part = small.addressable_shards[0].data
    del small
    assert in_use() == [128, 0]
    del part
    assert in_use() == [0, 0]
    remote = placed(X, ad.SingleDeviceSharding(ad.devices()[0]))
    assert in_use() == [0, 0]
    assert remote.block_until_ready() is remote
    assert remote.on_device_size_in_bytes() == 128
    remote.delete()
    assert remote.is_deleted()


def test_uneven_shards_know_their_sizes(client):
    x = placed(np.arange(10), named((4,), ("x",), "x", uneven="last-short"))
    assert [np.asarray(s.data).tolist() for s in x.addressable_shards] == [[6, 7, 8], [9]]
    assert x.on_device_size_in_bytes() == 80
    assert [d.memory_stats()["bytes_in_use"] for d in ad.local_devices()] == [24, 8]


def test_what_only_one_process_could_do_is_refused(rows):
    remote = placed(X, ad.SingleDeviceSharding(ad.devices()[0]))
    with pytest.raises(RuntimeError, match=r"pickle: the Array of shape .* is on devices of several processes"):
        pickle.dumps(rows)
    with pytest.raises(RuntimeError, match=r"unsafe_buffer_pointer: the Array of shape .* spans devices"):
        remote.unsafe_buffer_pointer()
    with pytest.raises(RuntimeError, match=r"device_get: the Array of shape .* spans devices"):
        np.from_dlpack(remote)
    with pytest.raises(BufferError, match="__dlpack__: the Array is on 4 devices; expected one"):
        rows.__dlpack__()
    with pytest.raises(BufferError, match=r"device_get: the Array of shape .* spans devices"):
        memoryview(remote)
    assert remote.global_shards[0].data is None


def test_copies_stay_where_they_are(rows):
    for other in (copy.copy(rows), copy.deepcopy(rows), rows.copy()):
        check_value(other, X)
        assert other.sharding == rows.sharding
        assert other.addressable_data(0).unsafe_buffer_pointer() != rows.addressable_data(0).unsafe_buffer_pointer()


def test_element_by_element_work_stays_where_it_is(client):
    for sharding in (
        named((4,), ("x",), "x"),
        named((4,), ("x",), None, "x"),
        named((4,), ("x",)),
        named((2, 2), ("p", "d"), "d", "p"),
        named((4,), ("x",), "x", uneven="last-short"),
    ):
        x, y = placed(X, sharding), placed(X[::-1] + 1, sharding)
        for result, expected in [
            (x + y, X + (X[::-1] + 1)),
            (2 * x - 1, 2 * X - 1),
            (np.sqrt(x), np.sqrt(X)),
            (x < y, np.less(X, X[::-1] + 1)),
            (np.where(x < 3, x, y), np.where(X < 3, X, X[::-1] + 1)),
            (x**2, X**2),
            (-x, -X),
            (abs(x), abs(X)),
            (x + X[:1], X + X[:1]),
            (x.astype(np.int16), X.astype(np.int16)),
        ]:
            check_value(result, expected)
            assert result.sharding == sharding
    big = np.arange(1 << 20, dtype=np.float64).reshape(1024, -1)
    x = placed(big, named((4,), ("x",), "x"))
    check_value(x * x + x, big * big + big)


def test_operands_that_are_cut_otherwise_are_moved_between_processes():
    with Job((2, 2)) as job:

        def body(index):
            rows, columns = placed(X, named((4,), ("x",), "x")), placed(X, named((4,), ("x",), None, "x"))
            check_value(ad.device_put(rows, columns.sharding) + columns, X + X)
            mesh = ad.Mesh(np.array(ad.devices()), ("x",))  # Auto: moved by the operator itself
            rows, columns = (placed(X, ad.NamedSharding(mesh, ad.P(*spec))) for spec in (("x",), (None, "x")))
            check_value(rows + columns, X + X)

        job.run(body)
        assert sum(sum(sent.values()) for sent, _ in job.traffic()) == 2 * 64


@pytest.mark.parametrize(
    "work",
    [
        lambda x: x.sum(),
        lambda x: np.mean(x, axis=0),
        lambda x: np.argmax(x),
        lambda x: np.sort(x, axis=0),
        lambda x: np.cumsum(x, axis=0),
        lambda x: x[0],
        lambda x: x[1:3],
        lambda x: list(x),
        lambda x: np.concatenate([x, x]),
        lambda x: np.array_equal(x, x),
        lambda x: np.unique(x),
        lambda x: np.add(x, x, out=np.empty((8, 4), np.float32)),
        lambda x: np.median(x),
        lambda x: x[x > 3],
        lambda x: np.nonzero(x),
        lambda x: np.take(x, [1, 2], axis=0),
        lambda x: np.linalg.norm(x),
    ],
)
def test_what_needs_other_processes_is_an_error_and_never_a_wrong_value(rows, work):
    hints = "process_allgather|move it first|np.asarray"  # the last two: as in one process
    with pytest.raises((RuntimeError, TypeError, ValueError), match=hints):
        work(rows)


def test_everything_works_on_values_that_are_whole_everywhere():
    with Job((2, 1)) as job:

        def body(index):
            x = placed(X, named((3,), ("x",)))
            assert float(x.sum()) == X.sum()
            assert np.asarray(x[1:3]).tolist() == X[1:3].tolist()
            assert np.asarray(np.sort(x, axis=0)).tolist() == np.sort(X, axis=0).tolist()
            assert np.array_equal(x, x)
            assert np.asarray(x @ x.T).tolist() == (X @ X.T).tolist()

        job.run(body)


def test_participants_of_one_process_need_no_transport(rows):
    mesh = rows.sharding.mesh
    local = ad.device_put(X, ad.NamedSharding(mesh.local_mesh, ad.P("x")))
    total = ad.shard_map(
        lambda block: ad.lax.psum(block, "x"), mesh=mesh.local_mesh, in_specs=ad.P("x"), out_specs=ad.P()
    )
    assert total(local).tolist() == (X[:4] + X[4:]).tolist()


def test_families_of_device_put_take_devices_of_this_process(client):
    own = ad.local_devices()
    assert ad.device_put_replicated(X, own).shape == (2, 8, 4)
    assert ad.device_put_sharded([X, X + 1], own).tolist() == [X.tolist(), (X + 1).tolist()]
    with pytest.raises(
        ValueError, match="device_put_sharded: cpu:1 of other processes than this process, 1; expected dev"
    ):
        ad.device_put_sharded([X, X], ad.devices()[1:3])
    with pytest.raises(
        ValueError, match="device_put_replicated: cpu:0, cpu:1 of other processes than this process, 1;"
    ):
        ad.device_put_replicated(X, ad.devices())


def test_memory_reports_count_this_process(rows):
    with ad.memory_report() as report:
        other = rows + 1
    assert {device.id: held for device, held in report.bytes_in_use.items()} == {0: 0, 1: 0, 2: 64, 3: 64}
    assert other.nbytes == 128
