# SPDX-License-Identifier: Apache-2.0
"""Devices, meshes and shardings of a world that several processes share, as each of them sees it."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import _core
from artifex_devices._core import internal
from shared_worlds import clients_of, entered


def world(index, counts=(2, 2), **more):
    return entered(clients_of(counts, **more)[index])


@pytest.mark.parametrize("index", [0, 1, 2])
def test_ids_count_over_processes_in_order(index):
    with world(index, (2, 1, 3)) as client:
        assert [(d.id, d.process_index, d.local_hardware_id) for d in ad.devices()] == [
            (0, 0, 0),
            (1, 0, 1),
            (2, 1, 0),
            (3, 2, 0),
            (4, 2, 1),
            (5, 2, 2),
        ]
        assert ad.device_count() == 6
        assert ad.local_device_count() == [2, 1, 3][index]
        assert ad.process_index() == ad.host_id() == client.process_index() == index
        assert ad.process_count() == ad.host_count() == client.process_count() == 3
        assert ad.process_indices() == ad.host_ids() == [0, 1, 2]
        own = [[0, 1], [2], [3, 4, 5]]
        assert [d.id for d in ad.local_devices()] == own[index]
        assert [[d.id for d in ad.local_devices(i)] for i in range(3)] == own
        assert client.device_from_local_hardware_id(0).id == own[index][0]
        with pytest.raises(ValueError, match="local_devices: process_index is 3; expected 0 to 2"):
            ad.local_devices(3)
        with pytest.raises(RuntimeError, match=f"no device has the number 3; expected 0 to {len(own[index]) - 1};"):
            client.device_from_local_hardware_id(3)


def test_clients_say_which_process_they_are_of_and_on_which_machines_the_others_are():
    with world(1, (1, 2), hosts=["left", "right"]) as client:
        assert repr(client) == "<Client of 3 cpu devices, process 1 of 2>"
        assert [client.process_host(i) for i in range(2)] == ["left", "right"]
        with pytest.raises(ValueError, match="process_host: process_index names no process; expected 0 to 1, got 2"):
            client.process_host(2)
    assert ad.devices()[0].client.process_host(0) == ""


def test_devices_of_other_processes_have_the_facts_of_their_process_but_no_memory():
    with world(0, machine="pack:2 numa:1 core:2 pu:1"):
        assert [d.cpuset for d in ad.devices()] == ["0-1", "2-3", "0-1", "2-3"]
        assert [d.numa_nodes for d in ad.devices()] == [[0], [1], [0], [1]]
        assert len({d.memory_bytes for d in ad.devices()}) == 1
        remote = ad.devices()[2]
        assert (str(remote), repr(remote)) == ("cpu:2", "CpuDevice(id=2)")
        for name, ask in {
            "memory_stats": remote.memory_stats,
            "live_buffers": remote.live_buffers,
            "set_bytes_limit": lambda: remote.set_bytes_limit(1),
            "memory": lambda: remote.default_memory().stats(),
        }.items():
            with pytest.raises(RuntimeError, match=f"{name}: cpu:2 belongs to process 1; expected a device of this"):
                ask()
        assert ad.devices()[1].memory_stats()["bytes_in_use"] == 0


def test_a_description_that_is_not_this_process_is_refused():
    machine = _core.Machine.from_synthetic("pack:1 numa:1 core:2 pu:1")
    mine = internal.describe_process(machine, 2)
    other = internal.describe_process(_core.Machine.from_synthetic("pack:2 numa:1 core:2 pu:1"), 2)
    assert mine[1:] == (2, [([0, 1], [0], [], 0, 2)], mine[3], [])
    with pytest.raises(ValueError, match="process_index is 2; expected 0 to 1, one of the 2 processes"):
        internal.make_shared_client(machine, [mine, mine], 2)
    with pytest.raises(ValueError, match="process 1, the current process, is described as 2 devices on 2 CPU domains"):
        internal.make_shared_client(machine, [mine, other], 1)
    with pytest.raises(ValueError, match="process 0 is described by 0 CPU domains and 1 memories"):
        internal.make_shared_client(machine, [(mine[0], 2, [], mine[3], []), mine], 1)
    with pytest.raises(ValueError, match="num_devices is 0; expected a number of devices from 1"):
        internal.make_shared_client(machine, [(mine[0], 0, mine[2], mine[3], []), mine], 1)


def test_joining_makes_the_base_world_and_only_before_its_first_use():
    code = """
import artifex_devices as ad
from artifex_devices import _core
mine = _core.internal.describe_process()
client = _core.internal.join_world([mine, mine], 1)
assert client is ad.devices()[0].client
assert [d.id for d in ad.local_devices()] == [3, 4, 5]
assert ad.device_put(1.5).device.id == 3
try:
    _core.internal.join_world([mine, mine], 1)
except RuntimeError as error:
    print(error)
"""
    variables = {**os.environ, "XLA_FLAGS": "", "JAX_NUM_CPU_DEVICES": "3"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=variables)
    assert done.stdout == (
        "distributed.initialize: the devices are in use already; expected to come before their first use; call it at "
        "the beginning of the program\n"
    )


def test_meshes_know_what_is_theirs():
    with world(1, (2, 4)):
        mesh = ad.make_mesh((3, 2), ("a", "b"))
        assert mesh.is_multi_process
        assert [d.id for d in mesh.local_devices] == [2, 3, 4, 5]
        assert mesh.device_ids.tolist() == [[0, 1], [2, 3], [4, 5]]
        assert [d.id for d in mesh._flat_devices_tuple] == [0, 1, 2, 3, 4, 5]
        assert mesh.local_mesh.device_ids.tolist() == [[2, 3], [4, 5]]
        assert mesh.local_mesh.axis_names == ("a", "b")
        assert not mesh.local_mesh.is_multi_process
        assert mesh.local_mesh.local_mesh is mesh.local_mesh
        assert pickle.loads(pickle.dumps(mesh)) is mesh
        turned = ad.Mesh(np.array(ad.devices())[[0, 2, 3, 1, 4, 5]].reshape(3, 2), ("a", "b"))
        with pytest.raises(ValueError, match=r"local_mesh: the 4 devices of process 1 .* are not a box of the mesh"):
            _ = turned.local_mesh
        remote = ad.Mesh(np.array(ad.local_devices(0)), ("a",))
        assert remote.is_multi_process
        assert remote.local_devices == []
        with pytest.raises(ValueError, match=r"local_mesh: .* has no device of this process, 1; .* processes 0$"):
            _ = remote.local_mesh


def test_shardings_know_what_is_theirs():
    with world(1):
        mesh = ad.make_mesh((4,), ("x",))
        sharding = ad.NamedSharding(mesh, ad.P("x"))
        assert not sharding.is_fully_addressable
        assert sharding.has_addressable_devices
        assert {d.id for d in sharding.device_set} == {0, 1, 2, 3}
        assert {d.id for d in sharding.addressable_devices} == {2, 3}
        assert {d.id: index for d, index in sharding.addressable_devices_indices_map((8,)).items()} == {
            2: (slice(4, 6),),
            3: (slice(6, 8),),
        }
        assert len(sharding.devices_indices_map((8,))) == 4
        devices = sharding._internal_device_list
        assert not devices.is_fully_addressable
        assert devices.process_indices == {0, 1}
        assert [d.id for d in devices.addressable_device_list] == [2, 3]
        own = devices.addressable_device_list
        assert own.addressable_device_list is own
        single = ad.SingleDeviceSharding(ad.devices()[0])
        assert not single.is_fully_addressable
        assert not single.has_addressable_devices
        assert single.addressable_devices == set()
        with pytest.raises(ValueError, match=r"addressable_device_list: no device .* belongs to this process, 1"):
            _ = single._internal_device_list.addressable_device_list
        assert ad.SingleDeviceSharding(ad.devices()[2]).is_fully_addressable


def test_what_has_no_place_named_goes_to_a_device_of_this_process():
    with world(1):
        x = ad.device_put(np.arange(3))
        assert x.device.id == 2
        assert x.is_fully_addressable
        with ad.default_device(ad.devices()[3]):
            assert ad.device_put(1).device.id == 3
        assert ad.dlpack.from_dlpack(np.arange(3.0)).device.id == 2
