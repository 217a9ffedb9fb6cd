# SPDX-License-Identifier: Apache-2.0
"""Jobs whose devices are GPUs: real processes use the stand-in for CUDA, simulated processes emulated GPUs."""

import warnings

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices import P, checkpoint, lax, multihost_utils

VALUE = np.arange(192.0).reshape(8, 24)


def mesh_of_all():
    return ad.Mesh(np.array(ad.devices()), ("x",))


def facts():
    """What a process says of its devices and of those of others."""
    x = ad.device_put(VALUE, ad.NamedSharding(mesh_of_all(), P("x")))
    with ad.transfer_guard_device_to_host("disallow"), pytest.raises(RuntimeError, match="disallow"):
        np.asarray(x.addressable_shards[0].data)
    return (
        [device.id for device in ad.local_devices()],
        [(device.platform, device.process_index, device.local_hardware_id) for device in ad.devices()],
        {(device.device_kind, device.memory_bytes) for device in ad.devices()},
        [device.memory_stats()["bytes_in_use"] for device in ad.local_devices()],
        ad.devices("cpu")[0].platform,
    )


def test_all_gpus_form_one_world(processes):
    found = processes(2, facts, platform="gpu").values
    assert [ids for ids, *_ in found] == [[0, 1], [2, 3]]
    assert found[0][1] == found[1][1] == [("gpu", 0, 0), ("gpu", 0, 1), ("gpu", 1, 0), ("gpu", 1, 1)]
    assert found[0][2] == found[1][2]  # each knows the GPUs of the other
    assert len(found[0][2]) == 1
    assert [in_use for *_, in_use, _ in found] == [[2 * 24 * 8] * 2] * 2
    assert {cpu for *_, cpu in found} == {"cpu"}


def moved(dtype):
    """The value after a way through shardings, layouts and memory kinds, as every process reads it at the end."""
    mesh = ad.Mesh(np.array(ad.devices()).reshape(2, -1), ("x", "y"))
    value = VALUE.astype(dtype)
    x = ad.device_put(value, ad.NamedSharding(mesh, P("x", "y")))
    x = ad.device_put(x, ad.NamedSharding(mesh, P(None, ("y", "x"))))
    x = ad.device_put(x, ad.NamedSharding(mesh, P("x"), memory_kind="pinned_host"))
    x = ad.device_put(x, ad.NamedSharding(ad.Mesh(np.array(ad.devices())[::-1], "z"), P("z")))
    shards = [np.array_equal(ad.device_get(shard.data), value[shard.index]) for shard in x.addressable_shards]
    everywhere = ad.device_put(x, ad.NamedSharding(mesh, P()))
    gathered = multihost_utils.process_allgather(x, tiled=True)
    if np.dtype(dtype).itemsize > 1:  # CuPy has no float8
        shards += [
            np.array_equal(ad.device_get(shard.data), (value + value)[shard.index])
            for shard in (x + x).addressable_shards
        ]
    return all(shards), ad.device_get(everywhere).tobytes(), gathered.tobytes()


@pytest.mark.parametrize("dtype", [np.float64, np.int8, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_values_pass_from_gpu_to_gpu(processes, dtype):
    value = VALUE.astype(dtype).tobytes()
    assert processes(2, moved, dtype, platform="gpu").values == [(True, value, value)] * 2


def collectives():
    """What bodies get of every collective between the processes."""
    mesh = mesh_of_all()
    rows = ad.NamedSharding(mesh, P("x"))

    def body(block):
        return (
            lax.psum(block, "x"),
            lax.pmax(block, "x"),
            lax.pmean(block, "x"),
            lax.all_gather(block, "x", tiled=True),
            lax.psum_scatter(block, "x", scatter_dimension=1, tiled=True),
            lax.all_to_all(block, "x", 1, 0, tiled=True),
            lax.ppermute(block, "x", [(i, (i + 1) % mesh.size) for i in range(mesh.size)]),
        )

    specs = (P(), P(), P(), P(), P(None, "x"), P("x"), P("x"))
    results = ad.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=specs)(ad.device_put(VALUE, rows))
    return [multihost_utils.process_allgather(each, tiled=True) for each in results]


@pytest.mark.parametrize("count", [2, 4])
def test_collectives_between_gpus(processes, count):
    members = 2 * count
    parts = VALUE.reshape(members, -1, 24)
    exchanged = np.concatenate(np.split(VALUE, members, axis=1))
    shifted = np.roll(VALUE, 8 // members, axis=0)
    total = parts.sum(0)
    expected = [total, parts.max(0), total / members, VALUE, total, exchanged, shifted]
    for found in processes(count, collectives, platform="gpu").values:
        assert [each.tolist() for each in found] == [each.tolist() for each in expected]


def replicated(differ):
    """A result that out_specs call replicated, which is another value in each process."""
    scale = float(ad.process_index() if differ else 3)
    body = ad.shard_map(lambda block: block * scale, mesh=mesh_of_all(), in_specs=P(), out_specs=P())
    return ad.device_get(body(VALUE[0]).addressable_shards[-1].data).tolist()


def test_replicated_results_on_gpus_are_compared_between_processes(processes):
    assert processes(2, replicated, False, platform="gpu").values == [(VALUE[0] * 3).tolist()] * 2
    errors = processes(2, replicated, True, platform="gpu").errors
    assert [name for name, _ in errors] == ["ValueError"] * 2
    assert all("replicated by its spec, but not the same in processes 0, 1" in text for _, text in errors)


def save(folder):
    checkpoint.save(folder, {"x": ad.device_put(VALUE, ad.NamedSharding(mesh_of_all(), P("x")))})


def restore(folder):
    columns = ad.NamedSharding(mesh_of_all(), P(None, "x"))
    x = checkpoint.restore(folder, {"x": columns})["x"]
    return x.sharding == columns and x.devices() == set(ad.devices()), multihost_utils.process_allgather(x, tiled=True)


def test_checkpoints_of_gpus_are_restored_by_another_number_of_processes(processes, tmp_path):
    folder = str(tmp_path / "saved")
    assert processes(2, save, folder, platform="gpu").values == [None, None]
    for is_placed, value in processes(3, restore, folder, platform="gpu").values:
        assert is_placed
        assert value.tolist() == VALUE.tolist()
    assert checkpoint.restore(folder)["x"].tolist() == VALUE.tolist()


def initialized(**arguments):
    from artifex_devices import distributed

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        distributed.initialize(**arguments)
    texts = [str(each.message) for each in caught if "use GPU" in str(each.message)]
    return texts, [device.id for device in ad.local_devices()], [device.platform for device in ad.devices()]


def share_one():
    return initialized(local_device_ids=0)


def choose_the_last():
    return initialized(local_device_ids=[3])


def platforms():
    return {device.platform for device in ad.devices()}


@pytest.mark.real_processes
@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"JAX_PLATFORMS": "gpu,cpu"}, {"gpu"}),
        ({"JAX_PLATFORMS": "", "JAX_PLATFORM_NAME": "cuda"}, {"gpu"}),
        ({"JAX_PLATFORMS": "cpu,cuda"}, {"cpu"}),
    ],
)
def test_the_first_platform_decides(processes, variables, expected):
    assert processes(2, platforms, platform="gpu", environment=variables).values == [expected] * 2


@pytest.mark.real_processes
def test_processes_share_a_gpu_if_asked_and_are_warned(processes):
    (warned, ids, platforms), (quiet, others, _) = processes(2, share_one, platform="gpu", initialize=False).values
    assert (ids, others, platforms) == ([0], [1], ["gpu", "gpu"])
    assert quiet == []
    (text,) = warned
    assert "processes 0-1 use GPU 0000:" in text
    assert "expected one process for each GPU" in text


def join_with_few():
    from artifex_devices import distributed

    distributed.initialize()


def refusals(processes, count, body, **environment):
    """The error of all processes, which is the same."""
    errors = processes(count, body, platform="gpu", initialize=False, environment=environment).errors
    assert errors == errors[:1] * count
    return errors[0]


@pytest.mark.real_processes
def test_more_processes_than_gpus_are_refused_in_all(processes):
    assert refusals(processes, 3, join_with_few, CUDA_STAND_IN="gpus=2") == (
        "ValueError",
        "distributed.initialize: 3 processes of one machine see 2 GPUs; expected at least as many GPUs; start fewer "
        "processes, or let them share GPUs by distributed.initialize(local_device_ids=0)",
    )


@pytest.mark.real_processes
def test_a_number_of_a_gpu_that_is_not_there_is_refused_in_all(processes):
    assert refusals(processes, 2, choose_the_last, CUDA_STAND_IN="gpus=2") == (
        "ValueError",
        "distributed.initialize: local_device_ids names GPU 3 in process 0; expected 0 to 1, the GPUs that it sees; "
        "correct it, or leave it out",
    )


@pytest.mark.real_processes
def test_a_job_of_gpus_needs_a_driver_in_all(processes):
    name, text = refusals(processes, 2, join_with_few, ARTIFEX_CUDA_LIBRARY="/none")
    assert name == "RuntimeError"
    assert "not all processes have GPUs: process 0: " in text
    assert text.endswith("run `artifex_devices doctor` there, or leave JAX_PLATFORMS out")
