# SPDX-License-Identifier: Apache-2.0
"""DeviceTopology: what it says of devices, devices made of it, its bytes, and bytes that are none."""

import copy
import pickle
import re
import subprocess
import sys
from pathlib import Path

import artifex_devices as ad
import numpy as np
import proto_schema
import pytest
from artifex_devices.xla_client import DeviceTopology, get_topology_for_devices

ROOT = Path(__file__).resolve().parents[3]
Proto = proto_schema.messages((ROOT / "docs" / "formats" / "device_topology.proto").read_text())["DeviceTopology"]

SYNTHETIC = [
    "pu:1",
    "numa:2 core:4 pu:2",
    "pack:2 [numa(memory=1GB)] [numa(memory=4GB)] core:4 pu:2",
    "pack:3 numa:2 core:5 pu:6",
    "numa:64 pu:1",
]
COMMITTED = sorted((ROOT / "tests" / "data" / "machines").glob("*.xml"))
SHARED = ROOT.parent / "shared" / "topologies"
RECORDED = sorted(SHARED.glob("*.xml"))


def topology_of(world):
    with ad.simulate(world):
        return get_topology_for_devices(ad.devices())


def message_of(topology):
    return Proto.FromString(topology.serialize())


def assert_round_trip(world):
    with ad.simulate(world) as client:
        devices = ad.devices()
        topology = get_topology_for_devices(devices)
        data = topology.serialize()
        back = DeviceTopology.deserialize(data)
        assert back == topology
        assert back.serialize() == data
        assert back.platform_version == topology.platform_version == client.platform_version
        assert back.device_descriptions == topology.device_descriptions
        for described, device in zip(back.device_descriptions, devices, strict=True):
            assert described["id"] == device.id
            assert described["kind"] == device.device_kind
            assert described["process_index"] == device.process_index
            assert described["cpuset"] == device.cpuset
            assert described["numa_nodes"] == device.numa_nodes
            assert described["memory_bytes"] == device.memory_bytes
        for planned, device in zip(back._make_compile_only_devices(), devices, strict=True):
            assert planned.is_compile_only
            assert (planned.id, planned.cpuset, planned.numa_nodes, planned.memory_bytes) == (
                device.id,
                device.cpuset,
                device.numa_nodes,
                device.memory_bytes,
            )
        assert message_of(back).SerializeToString(deterministic=True) == data


@pytest.mark.parametrize("world", [*SYNTHETIC, 8, "2 nodes x 4", *map(str, COMMITTED)])
def test_round_trip_of_machines(world):
    assert_round_trip(world)


@pytest.mark.skipif(not RECORDED, reason="the recorded machines of ../shared/topologies are not beside this checkout")
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_round_trip_of_recorded_machines(path):
    assert_round_trip(str(path))


def test_round_trip_of_this_machine():
    devices = ad.devices()
    topology = get_topology_for_devices(devices)
    assert DeviceTopology.deserialize(topology.serialize()) == topology
    assert topology.machine.source == "live"
    assert not topology.machine.is_live
    assert topology.machine.counts == ad.Machine.live().counts
    assert [each["id"] for each in topology.device_descriptions] == [device.id for device in devices]


def test_says_what_the_devices_and_the_machine_are():
    topology = topology_of("numa:2(memory=4GB) core:2 pu:2")
    assert topology.platform == "cpu"
    assert topology.device_descriptions == [
        {
            "id": number,
            "kind": "cpu",
            "process_index": 0,
            "cpu_domain": number,
            "cpuset": cpus,
            "numa_nodes": [number],
            "memory_bytes": 4_000_000_000,
            "memory_kinds": ("device", "pinned_host", "unpinned_host"),
        }
        for number, cpus in enumerate(["0-3", "4-7"])
    ]
    assert topology.machine.counts["pus"] == 8
    assert topology.machine.usable_memory_bytes == 8_000_000_000
    assert repr(topology) == "DeviceTopology(platform='cpu', 2 devices on numa:2(memory=4GB) core:2 pu:2)"
    with pytest.raises(RuntimeError, match="to_xml: this machine is known from a DeviceTopology only"):
        topology.machine.to_xml()


def test_protobuf_reads_the_bytes_by_the_documented_schema():
    topology = topology_of("pack:2 [numa(memory=1GB)] [numa(memory=4GB)] core:4 pu:2")
    message = message_of(topology)
    assert message.major_version == 1
    assert message.platform == "cpu"
    assert message.platform_version == topology.platform_version
    assert message.machine.source == topology.machine.source
    assert [list(node.cpus) for node in message.machine.numa_nodes] == [[0, 7], [0, 7], [8, 15], [8, 15]]
    assert [node.memory_bytes // 10**9 for node in message.machine.numa_nodes] == [1, 4, 1, 4]
    assert [list(domain.nodes) for domain in message.machine.cpu_domains] == [[0, 1], [2, 3]]
    assert [(run.first_id, run.count, run.cpu_domain) for run in message.devices] == [(0, 1, 0), (1, 1, 1)]
    assert message.device_count == 2
    assert message.machine.pus == 16


def test_planning_on_devices_of_another_machine():
    devices = topology_of("2 nodes x 4")._make_compile_only_devices()
    mesh = ad.Mesh(np.array(devices).reshape(4, 2), ("data", "model"))
    sharding = ad.NamedSharding(mesh, ad.P("data", "model"))
    assert sharding.shard_shape((8, 6)) == (2, 3)
    with pytest.raises(RuntimeError, match="has no memory"):
        ad.device_put(np.zeros((8, 6)), sharding)
    with pytest.raises(RuntimeError, match="has no memory"):
        ad.device_put(np.zeros(3), devices[0])
    assert devices[0] != topology_of("2 nodes x 4")._make_compile_only_devices()[0]


def test_planned_devices_have_the_same_topology():
    topology = topology_of("numa:2 core:4 pu:2")
    planned = DeviceTopology.deserialize(topology.serialize())._make_compile_only_devices()
    assert get_topology_for_devices(planned) == topology


@pytest.mark.parametrize(
    ("devices", "error", "text"),
    [
        ([], ValueError, "get_topology_for_devices: devices is empty; expected at least one device"),
        (None, TypeError, "get_topology_for_devices: devices is of type NoneType; expected a sequence of Device"),
        ("cpu", TypeError, "get_topology_for_devices: devices is of type str; expected a sequence of Device"),
        ([1], TypeError, "get_topology_for_devices: item 0 of devices is of type int; expected a Device"),
    ],
)
def test_what_are_not_devices_is_refused(devices, error, text):
    with pytest.raises(error, match=re.escape(text)):
        get_topology_for_devices(devices)


def test_devices_of_different_clients_are_refused():
    with ad.simulate(2):
        first = ad.devices()
    with (
        ad.simulate(2),
        pytest.raises(ValueError, match=r"come from different clients: cpu:0 at position 0 .* at position 2"),
    ):
        get_topology_for_devices([*first, *ad.devices()])


def test_is_a_value():
    topology = topology_of("numa:2 core:4 pu:2")
    same = topology_of("numa:2 core:4 pu:2")
    other = topology_of("numa:2 core:4 pu:1")
    assert same == topology
    assert same.fingerprint() == topology.fingerprint() != other.fingerprint()
    assert other != topology
    assert topology != "cpu"
    assert len({topology, same, other, copy.deepcopy(topology), pickle.loads(pickle.dumps(topology))}) == 2


def test_bytes_and_fingerprint_are_equal_in_other_processes():
    program = (
        "import artifex_devices as ad\n"
        "from artifex_devices.xla_client import get_topology_for_devices\n"
        "with ad.simulate('numa:2 core:4 pu:2'):\n"
        "    topology = get_topology_for_devices(ad.devices())\n"
        "print(topology.serialize().hex(), topology.fingerprint())\n"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    topology = topology_of("numa:2 core:4 pu:2")
    assert printed.split() == [topology.serialize().hex(), str(topology.fingerprint())]


def changed(**fields):
    message = message_of(topology_of("numa:2(memory=1GB) core:2 pu:1"))
    for path, value in fields.items():
        *parents, name = path.split("__")
        owner = message
        for parent in parents:
            owner = owner[int(parent)] if parent.isdigit() else getattr(owner, parent)
        if isinstance(value, list):
            del getattr(owner, name)[:]
            getattr(owner, name).extend(value)
        else:
            setattr(owner, name, value)
    return message.SerializeToString()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (lambda: changed(major_version=2), "the bytes have major version 2; expected 1, which this version"),
        (lambda: changed(major_version=0), "there is no major_version"),
        (lambda: changed(devices__1__first_id=0), "device 0 is there twice"),
        (lambda: changed(devices__1__first_id=5), "device 1 is missing"),
        (lambda: changed(devices__0__count=2**63), "DeviceRun: field 2 is -9223372036854775808, below 0"),
        (lambda: changed(devices__0__count=2**40), "1099511627776 devices follow device 0; the total is 1 to 16777216"),
        (lambda: changed(devices__0__memory_bytes=2**64 - 1), "DeviceRun: field 6 is -1, below 0"),
        (lambda: changed(machine__numa_nodes__1__logical_index=0), "NUMA node 0 is there twice"),
        (lambda: changed(machine__cpu_domains__1__default_node=9), "names NUMA node 9, which is not there"),
        (
            lambda: changed(machine__cpu_domains__0__cpus=[0, 2**32 - 1]),
            "is 4294967295, the maximum is 1048575",
        ),
        (lambda: changed(machine__cpu_domains__0__cpus=[0]), "a range of CPUs has no end"),
        (lambda: changed(machine__usable_cpus=0), "usable_cpus is 0, below 1"),
        (lambda: changed(device_count=3), "the bytes have 2 devices, and device_count says 3"),
        (lambda: changed(platform="xyz").replace(b"xyz", b"x\xffz"), "field 2 is text that is not UTF-8"),
        (lambda: b"\x0b" * 1_000_000, "groups are nested deeper than 32 at byte 0"),
        (lambda: b"\x08" + b"\xff" * 11, "a number has more than 64 bits"),
        (lambda: b"\x0a\x01x", "field 1 is a string or message by its wire type, 2, and not one of type 0, a number"),
        (
            lambda: b"\x08\x01\x22\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
            "a field of 9223372036854775807 bytes has only 0 left",
        ),
        (lambda: b"\x00" * (2**24 + 1), "16777217 bytes; expected at most 16777216"),
    ],
)
def test_hostile_bytes_are_refused_with_what_is_wrong(data, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        DeviceTopology.deserialize(data())


def test_devices_of_other_platforms_can_be_read_but_not_made():
    topology = DeviceTopology.deserialize(changed(platform="tpu"))
    assert topology.platform == "tpu"
    with pytest.raises(
        RuntimeError, match=r"_make_compile_only_devices: device 0 is of platform \"tpu\" and kind \"cpu\""
    ):
        topology._make_compile_only_devices()


def test_devices_with_other_kinds_of_memory_can_be_read_but_not_made():
    topology = DeviceTopology.deserialize(changed(devices__0__memory_kinds=["device", "disk"]))
    with pytest.raises(RuntimeError, match=r"device 0 is .* has memory kinds \[device, disk\]; expected .*pinned_host"):
        topology._make_compile_only_devices()


def test_planned_devices_say_why_they_take_no_data():
    device = topology_of("numa:1(memory=1GB) core:2 pu:1")._make_compile_only_devices()[0]
    with pytest.raises(RuntimeError, match="cpu:0 has no memory: it is for planning only, of a simulated cluster or a"):
        ad.device_put(1.0, device)


def test_text_is_not_a_bytes():
    with pytest.raises(TypeError, match=r"DeviceTopology.deserialize: the argument is of type str; expected bytes"):
        DeviceTopology.deserialize("bytes")
