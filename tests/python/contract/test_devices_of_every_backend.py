# SPDX-License-Identifier: Apache-2.0
"""What every backend must do: put, read, move, compute, count, guard and refuse, against NumPy."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices.layout import Format, Layout

DTYPES = [
    *(np.dtype(name) for name in ("bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "float64")),
    *(np.dtype(name) for name in ("complex64", "complex128")),
    *(np.dtype(each) for each in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4)),
]


def numbers(shape, dtype=np.float32):
    return np.random.default_rng(7).integers(0, 2, shape).astype(dtype)


def same_bits(array, expected):
    value = ad.device_get(array)
    assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
    return np.ascontiguousarray(value).tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_comes_back_bit_by_bit(grid, dtype):
    source = numbers((4, 8), dtype)
    for spec in (ad.P(), ad.P("x"), ad.P("y", "x"), ad.P(None, ("x", "y"))):
        array = ad.device_put(source, ad.NamedSharding(grid, spec))
        assert same_bits(array, source)
        moved = ad.device_put(array, ad.NamedSharding(grid, ad.P("x", "y")))
        assert same_bits(moved, source)
        assert [np.asarray(shard.data).tolist() for shard in moved.addressable_shards] == [
            source[shard.index].tolist() for shard in moved.addressable_shards
        ]


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(8, 12), (4, 3, 5, 7), (2, 3, 2, 2, 2, 2, 2, 2, 2, 2)], ids=len)
def test_elements_of_every_size_change_their_order_within_a_device(world, shape, dtype):
    """Boxes of one element each, of up to 10 dimensions."""
    device = ad.SingleDeviceSharding(ad.devices()[3])
    source = np.random.default_rng(len(shape)).integers(0, 99, shape).astype(dtype)
    array = ad.device_put(source, device)
    orders = [tuple(reversed(range(len(shape)))), tuple(np.random.default_rng(3).permutation(len(shape)).tolist())]
    for order in orders:
        changed = ad.device_put(array, Format(Layout(order), device))
        assert changed.format.layout.major_to_minor == order
        assert same_bits(changed, source)
        assert same_bits(ad.device_put(changed, Format(Layout(tuple(range(len(shape)))), device)), source)


def test_many_boxes_move_within_the_devices_of_one_gpu(grid):
    """More boxes than one launch of a kernel takes; rows of 3, 6 and 12 bytes have elements of 1, 2 and 4."""
    for dtype, columns in (("int8", 24), ("int16", 24), ("int32", 24), ("int8", 40)):
        source = np.random.default_rng(5).integers(0, 99, (40, columns)).astype(dtype)
        array = ad.device_put(source, ad.NamedSharding(grid, ad.P(("x", "y"))))
        moved = ad.device_put(array, ad.NamedSharding(grid, ad.P(None, ("x", "y"))))
        assert same_bits(moved, source)
        assert [np.asarray(shard.data).tolist() for shard in moved.addressable_shards] == [
            source[shard.index].tolist() for shard in moved.addressable_shards
        ]


def test_big_values_are_staged_by_several_workers(grid):
    """Above 1 MiB, in parts; dense, strided and broadcast ones, to and from shards of several devices."""
    whole = np.random.default_rng(11).integers(0, 1 << 30, (1536, 2048), dtype=np.int32)
    views = (whole, whole.T, whole[::-1, 1::2], np.broadcast_to(whole[:1], (1024, 2048)), whole[1:, 3:-1][:-7])
    for view in views:
        for spec in (ad.P(), ad.P(None, ("x", "y"))):
            if any(size % 8 for size in view.shape) and spec != ad.P():
                continue
            array = ad.device_put(view, ad.NamedSharding(grid, spec))
            assert same_bits(array, view)
    tree = [np.full(100_000 + i, i, np.float32) for i in range(24)]
    for value, array in zip(tree, ad.device_put(tree, ad.devices()[1]), strict=True):
        assert same_bits(array, value)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[::-1],
        lambda x: x[:, ::2],
        lambda x: x.T,
        lambda x: np.broadcast_to(x[:1], (8, 16)),
        lambda x: x[1:, 3:].reshape(7, 13),
    ],
    ids=["reversed", "step", "transposed", "broadcast", "offset"],
)
def test_every_stride_and_uneven_split_comes_back(grid, view):
    source = view(np.arange(128, dtype=np.int16).reshape(8, 16))
    for spec in (ad.P("x"), ad.P("x", "y"), ad.P(None, "y")):
        array = ad.device_put(source, ad.NamedSharding(grid, spec, uneven="last-short"))
        assert same_bits(array, source)


def test_a_reshard_moves_the_planned_bytes(grid):
    array = ad.device_put(numbers((16, 32)), ad.NamedSharding(grid, ad.P("x", "y")))
    target = ad.NamedSharding(grid, ad.P("y", "x"))
    plan = ad.planner.plan_reshard(array.shape, array.dtype, array.sharding, target, way="copies")
    with ad.transfers.record() as report:
        moved = ad.device_put(array, target).block_until_ready()
    assert report.bytes("device-to-device") == plan.bytes_copied > 0
    assert same_bits(moved, numbers((16, 32)))


def test_numpy_functions_run_on_the_devices(grid):
    left, right = numbers((8, 16)), numbers((8, 16)) + 1
    a, b = (ad.device_put(x, ad.NamedSharding(grid, ad.P("x", "y"))) for x in (left, right))
    with ad.transfers.record() as report:
        results = [a + b * 2, np.exp(a).sum(axis=0), a @ b.T, a[2:6], np.concatenate([a, b]), np.where(a > 0, a, b)]
    assert report.bytes("device-to-host") == 0
    assert {device.platform for x in results for device in x.devices()} == {ad.default_backend()}
    expected = [
        left + right * 2,
        np.exp(left).sum(axis=0),
        left @ right.T,
        left[2:6],
        np.concatenate([left, right]),
        np.where(left > 0, left, right),
    ]
    for result, value in zip(results, expected, strict=True):
        np.testing.assert_allclose(ad.device_get(result), value, rtol=1e-6)


def test_bodies_of_shard_map_run_on_the_devices(grid):
    source = numbers((8, 16))
    total = ad.shard_map(
        lambda block: ad.lax.psum(block.sum(), ("x", "y")), mesh=grid, in_specs=ad.P("x", "y"), out_specs=ad.P()
    )
    result = total(ad.device_put(source, ad.NamedSharding(grid, ad.P("x", "y"))))
    assert float(result) == source.sum()
    assert next(iter(result.devices())).platform == ad.default_backend()


def test_bytes_are_counted_and_limited_on_each_device(open_world, platform):
    with open_world(2, bytes_limit=100):
        first, second = ad.devices()
        array = ad.device_put(np.zeros(10), second)
        stats = [device.memory_stats() for device in (first, second)]
        assert [each["bytes_in_use"] for each in stats] == [0, 80]
        assert [each["bytes_limit"] for each in stats] == [100, 100]
        with pytest.raises(MemoryError, match=f"RESOURCE_EXHAUSTED: device_put: out of memory on {platform}:1"):
            ad.device_put(np.zeros(10), second)
        array.delete()
        assert second.memory_stats()["bytes_in_use"] == 0
        with pytest.raises(RuntimeError, match="deleted"):
            np.asarray(array)


def test_donation_deletes_the_source(world):
    first, second = ad.devices()[:2]
    array = ad.device_put(numbers(4), first)
    moved = ad.device_put(array, second, donate=True)
    assert array.is_deleted()
    assert same_bits(moved, numbers(4))


def test_pickles_and_copies_keep_value_and_place(grid):
    array = ad.device_put(numbers((8, 16)), ad.NamedSharding(grid, ad.P("x", "y")))
    for other in (pickle.loads(pickle.dumps(array)), copy.deepcopy(array)):
        assert other.sharding == array.sharding
        assert same_bits(other, numbers((8, 16)))


def test_memory_kinds_of_the_host_are_read_without_a_transfer(grid):
    array = ad.device_put(numbers((8, 16)), ad.NamedSharding(grid, ad.P("x"), memory_kind="pinned_host"))
    with ad.transfer_guard_device_to_host("disallow_explicit"):
        np.testing.assert_array_equal(np.asarray(array), numbers((8, 16)))
    back = ad.device_put(array, ad.NamedSharding(grid, ad.P("x"), memory_kind="device"))
    assert same_bits(back, numbers((8, 16)))


def test_a_forked_child_reads_its_arrays_unless_cuda_is_used(backend, platform):
    program = f"""
import contextlib, os, numpy as np, artifex_devices as ad
with contextlib.nullcontext() if {backend == "cuda"} else ad.simulate(2, platform={platform!r}):
    array = ad.device_put(np.arange(6.0), ad.devices({platform!r})[-1])
    started = ad.device_put(np.arange(6.0), array.device).copy_to_host_async()
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if float(ad.device_get(array).sum()) == 15.0 else 1)
        except RuntimeError as error:
            os._exit(2 if "spawn" in str(error) else 3)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), started.result().sum())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == ("2 15.0" if backend == "cuda" else "0 15.0")


def test_a_process_ends_while_copies_are_running(backend, platform):
    program = f"""
import contextlib, numpy as np, artifex_devices as ad
with contextlib.nullcontext() if {backend == "cuda"} else ad.simulate(2, platform={platform!r}):
    devices = ad.devices({platform!r})
    first, last = devices[0], devices[-1]
    arrays = [ad.device_put(np.ones((256, 1024)), first) for _ in range(8)]
    moved = [ad.device_put(array, last, may_alias=False) for array in arrays]
    copies = [array.copy_to_host_async() for array in moved]
print("end")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_arrays_are_deleted_while_copies_of_them_run(world):
    first, last = ad.devices()[0], ad.devices()[7]
    for size in (4, 1 << 18):
        arrays = [ad.device_put(np.full(size, i), first) for i in range(6)]
        moved = [ad.device_put(array, last, may_alias=False) for array in arrays]
        for array in arrays:
            array.delete()
        new = [ad.device_put(np.full(size, -i), first) for i in range(6)]
        assert [int(ad.device_get(array)[-1]) for array in (*moved, *new)] == [0, 1, 2, 3, 4, 5, 0, -1, -2, -3, -4, -5]


def test_guards_refuse_implicit_reads_where_they_are_transfers(world, platform):
    array = ad.device_put(numbers((8, 16)), ad.devices()[1])
    with ad.transfer_guard("disallow"):
        if platform == "cpu":
            np.asarray(array)
        else:
            with pytest.raises(ad.errors.TransferGuardError, match="__array__: disallowed implicit device-to-host"):
                np.asarray(array)
        assert same_bits(array, numbers((8, 16)))
