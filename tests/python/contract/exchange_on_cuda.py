# SPDX-License-Identifier: Apache-2.0
"""Memory of GPUs shared with other libraries, and how clients allocate it; run by test_cuda_stand_in.py."""

from __future__ import annotations

import gc
import os

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices.dlpack import from_dlpack
from artifex_devices.xla_client import GpuAllocatorConfig, make_gpu_client
from cuda_driver import Consumed, Gpu, Produced

needs_two = pytest.mark.skipif(len(ad.devices("cuda")) < 2, reason="two GPUs are needed")
Kind = GpuAllocatorConfig.Kind
X = np.arange(24, dtype=np.float32).reshape(4, 6)


@pytest.fixture(scope="module")
def gpus():
    return [Gpu(0), Gpu(len(ad.devices("cuda")) - 1)]


@pytest.fixture
def devices():
    return [ad.devices("cuda")[0], ad.devices("cuda")[-1]]


def floats(data):
    return data.view(np.float32).reshape(X.shape)


def test_a_consumer_reads_the_memory_itself(gpus, devices):
    array = ad.device_put(X, devices[1])
    assert array.__dlpack_device__() == (2, gpus[1].ordinal)
    consumed = Consumed(array)
    assert (consumed.device, consumed.shape, consumed.strides) == ((2, gpus[1].ordinal), (4, 6), (6, 1))
    assert consumed.address == array.unsafe_buffer_pointer()
    np.testing.assert_array_equal(floats(gpus[1].read(consumed.address, X.nbytes)), X)
    consumed.free()


def test_memory_outlives_its_array_and_work_that_reads_it(gpus, devices):
    array = ad.device_put(X, devices[0])
    in_use = devices[0].memory_stats()["pool_bytes_in_use"]
    consumed = Consumed(array)
    array.delete()
    del array
    assert devices[0].memory_stats()["pool_bytes_in_use"] == in_use
    running = gpus[0].start_read(consumed.address, X.nbytes)
    consumed.free()  # waits for the copy, so that the memory can be used again
    assert devices[0].memory_stats()["pool_bytes_in_use"] < in_use
    np.testing.assert_array_equal(floats(running), X)
    again = [ad.device_put(X + i, devices[0]) for i in range(4)]
    assert [int(ad.device_get(each)[0, 0]) for each in again] == [0, 1, 2, 3]


def test_exported_memory_is_released_in_a_forked_child(devices):
    arrays = [ad.device_put(X, devices[0]) for _ in range(3)]
    consumed = [Consumed(array) for array in arrays]
    child = os.fork()
    if child == 0:
        arrays.clear()
        consumed[0].free()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for each in consumed:
        each.free()
    np.testing.assert_array_equal(ad.device_get(arrays[1]), X)


def test_an_exported_array_waits_for_work_on_it_when_it_ends(gpus, devices):
    array = ad.device_put(X, devices[0])
    running = gpus[0].start_read(array.__cuda_array_interface__["data"][0], X.nbytes)
    del array
    np.testing.assert_array_equal(floats(running), X)


@pytest.mark.parametrize("stream", [None, -1, 1, 2, 0x7F0000001000])
def test_streams_of_consumers_are_accepted(devices, stream):
    Consumed(ad.device_put(X, devices[0]), stream=stream).free()


@pytest.mark.parametrize(("stream", "error"), [(0, ValueError), ("1", TypeError), (True, TypeError), (1.0, TypeError)])
def test_bad_streams_are_refused(devices, stream, error):
    with pytest.raises(error, match=r"__dlpack__: stream is .*; write 1 instead of 0"):
        ad.device_put(X, devices[0]).__dlpack__(stream=stream)


def test_a_copy_for_the_consumer_has_memory_of_its_own(devices):
    array = ad.device_put(X, devices[0])
    consumed = Consumed(array, copy=True)
    assert consumed.address != array.unsafe_buffer_pointer()
    consumed.free()


@pytest.mark.parametrize("dl_device", [(1, 0), (2, 99)])
def test_other_devices_for_the_consumer_are_refused(devices, dl_device):
    with pytest.raises(BufferError, match=r"expected \(2, 0\), where the Array is; .*device_get\(x\)"):
        ad.device_put(X, devices[0]).__dlpack__(dl_device=dl_device)


def test_memory_of_a_producer_is_used_without_a_copy(gpus, devices):
    produced = Produced(gpus[1], X)
    array = from_dlpack(produced)
    assert produced.streams == [1]
    assert array.unsafe_buffer_pointer() == produced.address
    assert array.device == devices[1]
    np.testing.assert_array_equal(ad.device_get(array), X)
    moved = ad.device_put(array, devices[0], may_alias=False)
    consumed = Consumed(array)
    del array
    gc.collect()
    assert produced.freed == 0
    consumed.free()
    assert produced.freed == 1
    np.testing.assert_array_equal(ad.device_get(moved), X)


@needs_two
def test_memory_of_a_producer_is_copied_where_that_is_asked_for(gpus, devices):
    for options, device in (
        ({"copy": True}, devices[1]),
        ({"device": devices[0]}, devices[0]),
        ({"device": ad.devices("cpu")[0]}, ad.devices("cpu")[0]),
    ):
        produced = Produced(gpus[1], X)
        array = from_dlpack(produced, **options)
        assert produced.freed == 1
        assert array.device == device
        np.testing.assert_array_equal(ad.device_get(array), X)
    transposed = Produced(gpus[0], X, strides=[1, 4])
    array = from_dlpack(transposed)
    assert transposed.freed == 1
    np.testing.assert_array_equal(ad.device_get(array), X.reshape(6, 4).T)


@needs_two
def test_a_copy_that_is_needed_and_forbidden_is_refused(gpus, devices):
    with pytest.raises(ValueError, match="copy=False, but a copy is needed: the requested device is not the one"):
        from_dlpack(Produced(gpus[1], X), device=devices[0], copy=False)
    with pytest.raises(ValueError, match="copy=False, but a copy is needed: strides"):
        from_dlpack(Produced(gpus[1], X, strides=[1, 4]), copy=False)


@needs_two
def test_the_interface_describes_arrays_and_shards(gpus, devices):
    array = ad.device_put(X, devices[0])
    assert array.__cuda_array_interface__ == {
        "version": 3,
        "shape": (4, 6),
        "typestr": "<f4",
        "data": (array.unsafe_buffer_pointer(), True),
        "strides": None,
        "stream": None,
    }
    rows = ad.device_put(X, ad.NamedSharding(ad.Mesh(np.array(devices), ("x",)), ad.P("x")))
    assert not hasattr(rows, "__cuda_array_interface__")
    for i, shard in enumerate(rows.addressable_shards):
        interface = shard.data.__cuda_array_interface__
        assert interface["shape"] == (2, 6)
        data = gpus[i].read(interface["data"][0], X.nbytes // 2).view(np.float32).reshape(2, 6)
        np.testing.assert_array_equal(data, X[shard.index])
    assert ad.device_put(X[:0], devices[0]).__cuda_array_interface__["data"] == (0, True)


def test_arrays_without_the_interface_have_no_such_attribute(devices):
    for array in (
        ad.device_put(X, ad.devices("cpu")[0]),
        ad.device_put(X.astype(ml_dtypes.bfloat16), devices[0]),
        ad.device_put(X, ad.SingleDeviceSharding(devices[0], memory_kind="pinned_host")),
    ):
        with pytest.raises(AttributeError, match="__cuda_array_interface__: "):
            array.__cuda_array_interface__  # noqa: B018
    deleted = ad.device_put(X, devices[0])
    deleted.delete()
    assert not hasattr(deleted, "__cuda_array_interface__")


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_of_allocator_holds_arrays(kind):
    client = make_gpu_client(num_devices=1, allocator_config=GpuAllocatorConfig(kind, memory_fraction=0.5))
    (device,) = client.devices()
    assert device.memory_stats()["bytes_limit"] == device.memory_bytes // 2
    before = device.memory_stats()
    array = ad.device_put(X, device)
    np.testing.assert_array_equal(ad.device_get(array), X)
    mapped = device.memory_stats()["pool_bytes"] - before["pool_bytes"]
    divides = kind in (Kind.DEFAULT, Kind.BFC)
    assert mapped == (mapped // 2**20 * 2**20 if divides else 512)
    del array
    gc.collect()
    cached = device.memory_stats()["pool_bytes_cached"]
    assert (cached >= 2**20) if divides else (cached == before["pool_bytes_cached"])


def test_memory_is_preallocated_and_limited():
    device = ad.devices("cuda")[0]
    fraction = 64 * 2**20 / device.memory_bytes
    config = GpuAllocatorConfig(Kind.BFC, memory_fraction=fraction, preallocate=True)
    client = make_gpu_client(num_devices=1, allocator_config=config)
    (own,) = client.devices()
    assert own.default_memory().stats()["pool_bytes_preallocated"] == 64 * 2**20
    with pytest.raises(MemoryError, match=r"RESOURCE_EXHAUSTED: device_put: out of memory on gpu:0: .* limit"):
        ad.device_put(np.broadcast_to(np.float32(1), (2**25,)), own)
    for kind in (Kind.PLATFORM, Kind.CUDA_ASYNC):
        with pytest.raises(ValueError, match=f"make_gpu_client: .*{kind.name} takes each block from the driver"):
            make_gpu_client(allocator_config=GpuAllocatorConfig(kind, preallocate=True))


def test_more_devices_than_gpus_are_refused():
    count = len(ad.devices("cuda"))
    with pytest.raises(ValueError, match=f"make_gpu_client: .*{count + 1} CUDA devices are requested"):
        make_gpu_client(num_devices=count + 1)


def test_pinned_memory_is_locked_by_cuda_and_copied_without_staging(devices):
    pinned = ad.device_put(X, ad.SingleDeviceSharding(devices[0], memory_kind="pinned_host"))
    assert devices[0].memory("pinned_host").stats()["pool_bytes_in_use"] >= X.nbytes
    there = ad.device_put(pinned, devices[1])
    back = ad.device_put(there, pinned.sharding)
    np.testing.assert_array_equal(np.asarray(back), X)
