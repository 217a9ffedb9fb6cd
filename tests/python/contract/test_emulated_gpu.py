# SPDX-License-Identifier: Apache-2.0
"""Emulated GPUs: their facts, CPU devices beside them, and that the host reads their memory only by a transfer."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import cluster, models, planner


@pytest.fixture
def gpus():
    with ad.simulate(4, platform="gpu"):
        yield ad.devices()


@pytest.fixture
def values():
    return np.arange(32, dtype=np.float32).reshape(8, 4)


@pytest.fixture
def array(gpus, values):
    return ad.device_put(values, ad.NamedSharding(ad.Mesh(np.array(gpus), ("x",)), ad.P("x")))


def test_devices_are_gpus_and_the_cpu_is_beside_them(gpus):
    assert repr(gpus) == "[GpuDevice(id=0), GpuDevice(id=1), GpuDevice(id=2), GpuDevice(id=3)]"
    assert [str(device) for device in gpus] == ["gpu:0", "gpu:1", "gpu:2", "gpu:3"]
    assert {device.device_kind for device in gpus} == {"emulated GPU"}
    assert ad.devices("gpu") == gpus
    assert ad.default_backend() == "gpu"
    assert ad.device_count() == ad.device_count("gpu") == 4
    assert [device.platform for device in ad.devices("cpu")] == ["cpu"] * 8
    assert ad.local_device_count("cpu") == 8


def test_cpu_devices_are_those_of_the_nearest_world():
    with ad.simulate(3) as outer:
        with ad.simulate(2, platform="gpu"):
            assert ad.devices("cpu") == outer.devices()
        with pytest.raises(RuntimeError, match=r"devices: unknown or absent backend 'gpu': .* expected one of: cpu"):
            ad.devices("gpu")


def test_cpu_devices_can_be_the_default_beside_gpus(gpus):
    for default in (ad.devices("cpu")[1], "cpu"):
        with ad.default_device(default):
            placed = ad.device_put(np.ones(3))
        assert placed.device == (ad.devices("cpu")[0] if default == "cpu" else default)
    assert ad.device_put(np.ones(3)).device == gpus[0]
    assert pickle.loads(pickle.dumps(ad.devices("cpu")[2])) == ad.devices("cpu")[2]


def test_live_arrays_are_listed_by_platform(gpus):
    placed = [ad.device_put(np.ones(3), device) for device in (gpus[0], ad.devices("cpu")[0], gpus[1])]
    assert [any(x is y for y in ad.live_arrays("gpu")) for x in placed] == [True, False, True]
    assert [any(x is y for y in ad.live_arrays("cpu")) for x in placed] == [False, True, False]


def test_the_documents_facts_of_gpus_hold():
    with ad.simulate("4 x h100"):
        placement = ad.DevicePlacement()
        assert placement.hardware_type is ad.HardwareType.H100
        assert placement.get_device_info()["platforms"] == ["gpu"]


def test_other_backends_are_refused_with_those_that_are_there(gpus):
    with pytest.raises(RuntimeError, match=r"absent backend 'tpu': .* one of: gpu \(4 devices\), cpu; leave it out"):
        ad.devices("tpu")


def test_a_chip_of_the_catalogue_gives_kind_memory_and_limit():
    with ad.simulate("2 x h100"):
        (first, second) = ad.devices()
        assert second.device_kind == "NVIDIA H100 80GB HBM3"
        assert first.memory_bytes == first.bytes_limit == 80 * 2**30
        with pytest.raises(MemoryError, match=r"RESOURCE_EXHAUSTED: .* out of memory on gpu:0"):
            ad.device_put(np.broadcast_to(np.float64(0), (2**34,)), first)
    with pytest.raises(ValueError, match=r'simulate: .*"spam" is not a GPU'), ad.simulate("2 x spam"):
        pass


def test_a_chip_of_the_catalogue_gives_the_links_for_plans():
    model = models.transformer("llama-3-8b", batch=8, sequence=512)
    with ad.simulate("4 x h100"):
        mesh = ad.Mesh(np.array(ad.devices()), ("x",))
        plan = planner.plan_collective("all_gather", 1e9, "x", mesh)
        step = planner.plan_step(model, mesh, {"batch": "x"})
    node = cluster.gpus("h100", chips_per_node=4)
    expected = planner.plan_collective("all_gather", 1e9, "x", ad.Mesh(np.array(node.devices()), ("x",)))
    assert plan.seconds == expected.seconds > 0
    assert (step.cluster.device_count, step.cluster.parts["bandwidth"]) == (4, node.parts["bandwidth"])
    with ad.simulate(4, platform="gpu"):
        mesh = ad.Mesh(np.array(ad.devices()), ("x",))
        with pytest.raises(TypeError, match="expected a Cluster, or a Mesh of a cluster's devices"):
            planner.plan_collective("all_gather", 1e9, "x", mesh)


@pytest.mark.parametrize("platform", ["tpu", "GPU"])
def test_unknown_platforms_are_refused(platform):
    with pytest.raises(ValueError, match=f"simulate: platform is '{platform}'; expected 'cpu' or 'gpu'; leave it out"):
        ad.simulate(2, platform=platform)


def test_a_platform_that_contradicts_the_world_is_refused():
    with pytest.raises(ValueError, match="platform is 'cpu'; expected 'gpu', the platform of '2 x h100'"):
        ad.simulate("2 x h100", platform="cpu")
    with pytest.raises(TypeError, match="simulate: platform"):
        ad.simulate(2, platform=3)


def test_a_mixed_world_has_its_own_cpu_devices():
    with ad.simulate({"cpu": 2, "gpu": 4}) as client:
        assert client.platform == ad.default_backend() == "gpu"
        assert repr(ad.devices()) == "[GpuDevice(id=0), GpuDevice(id=1), GpuDevice(id=2), GpuDevice(id=3)]"
        assert repr(ad.devices("cpu")) == "[CpuDevice(id=0), CpuDevice(id=1)]"
        on_cpu = ad.device_put(np.arange(4.0), ad.devices("cpu")[1])
        on_gpu = ad.device_put(on_cpu, ad.devices("gpu")[3])
        assert (on_cpu.device, on_gpu.device) == (ad.devices("cpu")[1], ad.devices()[3])
        np.testing.assert_array_equal(ad.device_get(on_gpu), np.arange(4.0))
        with ad.simulate(3):
            assert (ad.default_backend(), ad.device_count()) == ("cpu", 3)
        assert ad.device_count() == 4
    assert (ad.default_backend(), ad.device_count()) == ("cpu", 8)


def test_the_order_of_a_mixed_world_and_its_descriptions_do_not_matter():
    for world in ({"gpu": "4 x h100", "cpu": "2 nodes x 2"}, {"cpu": "2 nodes x 2", "gpu": "4 x h100"}):
        with ad.simulate(world):
            assert ad.devices()[3].device_kind == "NVIDIA H100 80GB HBM3"
            assert [device.numa_nodes for device in ad.devices("cpu")] == [[0], [0], [1], [1]]
    with ad.simulate({"gpu": 2}):
        assert (ad.device_count(), ad.device_count("cpu")) == (2, 8)
    with ad.simulate({"cpu": 2}, all_threads=True):
        assert (ad.default_backend(), ad.device_count()) == ("cpu", 2)


def test_a_mixed_world_can_be_opened_again_and_left_by_an_error():
    world = ad.simulate({"cpu": 1, "gpu": 2}, bytes_limit=16)
    for _ in range(2):
        with pytest.raises(MemoryError, match="out of memory on cpu:0"), world:
            ad.device_put(np.zeros(4), ad.devices("cpu")[0])
        assert (ad.default_backend(), ad.device_count("cpu")) == ("cpu", 8)
    with world, world:
        assert ad.devices("cpu")[0].client is not ad.devices()[0].client
    assert ad.device_count() == 8


@pytest.mark.parametrize(
    ("world", "options", "error", "text"),
    [
        ({}, {}, ValueError, r"simulate: world is \{\}; expected a dict with 'gpu', 'cpu' or both"),
        ({"tpu": 4}, {}, ValueError, r"expected a dict with 'gpu', 'cpu' or both; write simulate\(\{\"cpu\": 2"),
        ({"gpu": 1.5}, {}, TypeError, r"world\['gpu'\] is 1.5 .*; expected a number of devices or a description"),
        ({"cpu": 0, "gpu": 1}, {}, ValueError, "0"),
        ({"cpu": "spam", "gpu": 1}, {}, ValueError, "spam"),
        ({"cpu": "2 x h100", "gpu": 1}, {}, ValueError, "h100"),
        ({"cpu": 1, "gpu": 1}, {"platform": "gpu"}, ValueError, "platform is 'gpu'; expected None with a dict"),
        ({"cpu": 1, "gpu": 1}, {"all_threads": True}, ValueError, "all_threads is True for a world of two platforms"),
    ],
)
def test_bad_mixed_worlds_are_refused(world, options, error, text):
    with pytest.raises(error, match=text), ad.simulate(world, **options):
        pass
    assert ad.device_count() == 8


def test_reading_is_a_transfer_once(array, values):
    with ad.transfers.record() as report:
        np.testing.assert_array_equal(np.asarray(array), values)
        assert report.bytes("device-to-host") == values.nbytes
        np.testing.assert_array_equal(np.asarray(array), values)
        np.testing.assert_array_equal(ad.device_get(array), values)
    assert report.bytes("device-to-host") == values.nbytes


def test_one_device_is_read_by_a_transfer_too(gpus, values):
    array = ad.device_put(values, gpus[2])
    with ad.transfers.record() as report:
        first = np.asarray(array)
    assert report.bytes("device-to-host") == values.nbytes
    assert not first.flags.writeable
    assert np.shares_memory(first, np.asarray(array))


@pytest.mark.parametrize(
    ("read", "operation"),
    [
        (np.asarray, "__array__"),
        (lambda x: x.tolist(), "tolist"),
        (lambda x: float(x.sum()), "float"),
        (lambda x: bool(x.sum() > 0), "bool"),
        (lambda x: x.sum().item(), "item"),
        (lambda x: x.item(3), "item"),
    ],
    ids=["asarray", "tolist", "float", "bool", "item", "item of an index"],
)
def test_a_guard_catches_implicit_reads(array, read, operation):
    with ad.transfer_guard("disallow"):
        with pytest.raises(
            ad.errors.TransferGuardError, match=f"{operation}: disallowed implicit device-to-host transfer"
        ):
            read(array)
        ad.device_get(array)
        with ad.transfer_guard_device_to_host("allow"):
            read(array)


def test_a_guard_catches_explicit_reads_where_asked(array):
    with ad.transfer_guard_device_to_host("disallow_explicit"):
        with pytest.raises(ad.errors.TransferGuardError, match="device_get: disallowed explicit device-to-host"):
            ad.device_get(array)
        with pytest.raises(ad.errors.TransferGuardError, match="copy_to_host_async: disallowed explicit"):
            array.copy_to_host_async()


def test_an_out_argument_of_the_host_is_an_implicit_read(array, values):
    out = np.empty((8, 4), np.float32)
    for write in (
        lambda: np.add(array, array, out=out),
        lambda: np.cumsum(array, axis=1, out=out),
        lambda: np.sum(array, axis=0, out=out[0]),
        lambda: np.matmul(array, array.T, out=np.empty((8, 8), np.float32)),
    ):
        with ad.transfer_guard("disallow"), pytest.raises(ad.errors.TransferGuardError, match="device-to-host"):
            write()
    np.add(array, array, out=out)
    np.testing.assert_array_equal(out, values * 2)


def test_operations_between_gpu_and_cpu_name_the_missing_transfer(array, values):
    there = ad.device_put(values, ad.devices("cpu")[0])
    with pytest.raises(ValueError, match="device_put"):
        array + there
    np.testing.assert_array_equal(ad.device_get(array + ad.device_put(there, array.sharding)), values * 2)
    back = ad.device_put(array, ad.devices("cpu")[1])
    assert back.device == ad.devices("cpu")[1]
    np.testing.assert_array_equal(np.asarray(back), values)


def test_views_of_the_memory_are_refused_with_the_transfer_that_is_missing(gpus, values):
    array = ad.device_put(values, gpus[0])
    for take in (memoryview, lambda x: x.__dlpack__(), lambda x: x.__dlpack_device__(), np.from_dlpack):
        with pytest.raises(
            BufferError, match=r"is in the memory of gpu:0, which the host cannot read; .*device_get\(x\)"
        ):
            take(array)
    with pytest.raises(ValueError, match="leave copy out"):
        ad.dlpack.from_dlpack(values, device=gpus[0], copy=False)
    np.testing.assert_array_equal(ad.device_get(ad.dlpack.from_dlpack(values, device=gpus[0])), values)


def test_a_put_never_shares_the_memory_of_the_host(gpus, values):
    array = ad.device_put(values, gpus[0], may_alias=True)
    values[0, 0] = 99
    assert float(array[0, 0]) == 0


def test_arrays_outlive_their_world(values):
    with ad.simulate(2, platform="gpu"):
        array = ad.device_put(values, ad.devices()[1])
    np.testing.assert_array_equal(np.asarray(array), values)
    assert array.device.platform == "gpu"


def test_the_host_cannot_read_the_reported_address():
    program = """
import ctypes, numpy as np, artifex_devices as ad
with ad.simulate(1, platform="gpu"):
    array = ad.device_put(np.ones(4), ad.devices()[0])
    print(float(array.sum()), flush=True)
    ctypes.string_at(array.unsafe_buffer_pointer(), 8)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "4.0\n"
    assert done.returncode == -signal.SIGSEGV


def test_memory_report_and_stats_count_gpu_memory(gpus, values):
    on_cpu = ad.devices("cpu")[0].memory_stats()["bytes_in_use"]  # of values that other tests keep
    array = ad.device_put(values, gpus[3])
    assert gpus[3].memory_stats()["bytes_in_use"] == values.nbytes
    assert gpus[3].memory_stats()["pool_bytes_in_use"] >= values.nbytes
    assert ad.devices("cpu")[0].memory_stats()["bytes_in_use"] == on_cpu
    assert str(gpus[0].memory("device")).startswith("DeviceMemory(id=0,")
    array.delete()
    assert gpus[3].memory_stats()["bytes_in_use"] == 0


READ_INDICES = {
    "index": ("x[i]", "x[i].shape"),
    "index of numbers": ("x[s]", "x[i].shape"),
    "slice": ("x[s:]", "x[i:].shape"),
    "index of a dimension": ("x[0, i]", "x[0, i].shape"),
    "take": ("np.take(x, i, axis=0)", "np.take(x, i, axis=0).shape"),
    "update": ("x.at[i].set(0.0)", "x.at[i].set(0.0).shape"),
    "mask": ("x[i]", "x[i].shape"),
}


@pytest.mark.parametrize("name", READ_INDICES)
def test_an_array_as_an_index_is_read_as_an_index(name, gpus):
    call, repaired = READ_INDICES[name]
    names = {"ad": ad, "np": np, "x": ad.device_put(np.arange(16.0).reshape(4, 4), gpus[0])}
    names |= {"i": ad.device_put(np.array([1, 3]), gpus[0]), "s": ad.device_put(np.array(2), gpus[0])}
    names |= {"i": ad.device_put(np.array([True, False, True, True]), gpus[0])} if name == "mask" else {}
    names["i"] = names["s"] if "s" in call.replace("axis", "").replace(".set", "") else names["i"]
    with ad.transfer_guard("disallow"):
        with pytest.raises(ad.errors.TransferGuardError) as raised:
            eval(call, names)
        text = str(raised.value)
        assert text.startswith("index: disallowed implicit device-to-host transfer of a ")
        exec(text.partition("read i first: ")[2].partition(", or put")[0], names)
        eval(repaired, names)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("np.repeat(x, repeats, axis=1)", "repeats"),
        ("np.compress(condition, x, axis=1)", "condition"),
        ("np.roll(x, shift, axis=1)", "shift"),
        ("np.searchsorted(a, x)", "a"),
        ("np.take(x, indices, axis=1, mode='clip')", "indices"),
    ],
)
def test_an_array_that_decides_what_a_function_does_is_read_by_its_name(call, name, gpus):
    values = {"condition": np.ones(4, bool), "a": np.arange(4.0), "indices": np.array([1, 9])}
    names = {"ad": ad, "np": np, "x": ad.device_put(np.arange(16.0).reshape(4, 4), gpus[0])}
    names[name] = ad.device_put(values.get(name, np.array(2)), gpus[0])
    expected = np.asarray(eval(call, {**names, name: values.get(name, np.array(2))}))
    with ad.transfer_guard_device_to_host("disallow"):
        with pytest.raises(ad.errors.TransferGuardError, match=rf"^\w+: disallowed .* read {name} first") as raised:
            eval(call, names)
        exec(str(raised.value).partition(f"read {name} first: ")[2].partition(", or put")[0], names)
        result = eval(call, names)
    np.testing.assert_array_equal(np.asarray(result), expected)
