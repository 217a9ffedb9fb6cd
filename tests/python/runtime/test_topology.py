# SPDX-License-Identifier: Apache-2.0
"""Machines: recorded ones as hwloc counts them, made-up ones, hostile files, and the devices that come of them."""

import json
import os
import subprocess
import sys

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import Machine

COUNTS = ("packages", "numanodes", "l3caches", "cores", "pus", "groups", "pci_devices", "os_devices")
RECORDED = [
    "cgroup-limited-6of32pus",
    "dgx2-16xV100",
    "epyc-1s-nps4-8xMI250X",
    "epyc-2s-8numa-4xMI50",
    "gb10-arm-5cpukinds",
    "knl-snc4-flat-mcdram",
    "kunpeng-2s-4numa",
    "laptop-i7-1370p-hybrid",
    "opteron-4s-8numa-sparse",
    "power9-2s-4xV100",
    "qemu-cxl-dax",
    "qemu-hbm-dram-nvm-tiers",
    "synthetic-4numa-memattrs",
    "xeon-1s-4c8t",
    "xeon-2s-2xP100",
    "xeon-2s-8xT4",
    "xeon-2s-nvm-nodes-memattrs",
    "xeon-2s-snc2-nvdimm-memcache",
]


@pytest.fixture(params=RECORDED)
def recorded(request, shared_topologies):
    expected = json.loads((shared_topologies / "expected.json").read_text())["machines"]
    name = f"{request.param}.xml"
    return str(shared_topologies / name), expected[name]


def test_every_recorded_machine_is_in_the_list(shared_topologies):
    expected = json.loads((shared_topologies / "expected.json").read_text())["machines"]
    assert sorted(expected) == [f"{name}.xml" for name in RECORDED]


def test_counts_are_hwlocs(recorded):
    path, expected = recorded
    machine = Machine.from_xml(path)
    assert {name: machine.counts[name] for name in COUNTS} == {name: expected[name] for name in COUNTS}
    assert not machine.is_live
    assert machine.source == path


def test_numa_nodes_are_hwlocs(recorded):
    path, expected = recorded
    nodes = Machine.from_xml(path).numa_nodes
    assert [{key: node[key] for key in expected["numa"][0]} for node in nodes] == expected["numa"]
    assert sum(node["memory_bytes"] for node in nodes) == expected["memory_bytes_total"]
    assert [node["os_index"] for node in nodes if not node["cpus"]] == expected["cpuless_nodes"]


def test_cpu_domains_are_those_expected(recorded):
    path, expected = recorded
    machine = Machine.from_xml(path)
    os_index = [node["os_index"] for node in machine.numa_nodes]
    found = [
        {
            "cpus": domain["cpus"],
            "nodes": sorted(os_index[node] for node in domain["nodes"]),
            "wider_nodes": sorted(os_index[node] for node in domain["wider_nodes"]),
        }
        for domain in machine.cpu_domains
    ]
    assert found == expected["cpu_domains"]


def test_a_domain_allocates_from_its_dram_else_from_its_largest_node(recorded):
    path, _ = recorded
    machine = Machine.from_xml(path)
    for domain in machine.cpu_domains:
        nodes = [machine.numa_nodes[number] for number in domain["nodes"]]
        plain = [node for node in nodes if node["subtype"] in (None, "DRAM")]
        best = max(plain or nodes, key=lambda node: node["memory_bytes"])
        assert machine.numa_nodes[domain["default_node"]]["memory_bytes"] == best["memory_bytes"]


def test_a_world_has_one_device_a_domain(recorded):
    path, expected = recorded
    with ad.simulate(path):
        devices = ad.devices()
        os_index = [node["os_index"] for node in Machine.from_xml(path).numa_nodes]
        assert [device.cpuset for device in devices] == [domain["cpus"] for domain in expected["cpu_domains"]]
        for device, domain in zip(devices, expected["cpu_domains"], strict=True):
            assert sorted(os_index[node] for node in device.numa_nodes) == sorted(domain["nodes"])
            assert device.memory_bytes > 0
        mesh = ad.Mesh(devices, "x")
        value = np.arange(len(devices) * 3)
        array = ad.device_put(value, ad.NamedSharding(mesh, ad.P("x")))
        assert np.array_equal(np.asarray(array), value)


def test_a_machine_written_as_xml_reads_the_same(recorded, tmp_path):
    path, _ = recorded
    machine = Machine.from_xml(path)
    copy = tmp_path / "copy.xml"
    copy.write_text(machine.to_xml())
    again = Machine.from_xml(str(copy))
    assert again.counts == machine.counts
    assert again.numa_nodes == machine.numa_nodes
    assert again.cpu_domains == machine.cpu_domains


# --- Made-up machines ---


@pytest.mark.parametrize(
    ("text", "pus", "domains"),
    [
        ("pu:1", 1, ["0"]),
        ("core:2 pu:2", 4, ["0-3"]),
        ("pack:2 numa:2 core:4 pu:2", 32, ["0-7", "8-15", "16-23", "24-31"]),
        ("numa:3 pu:2", 6, ["0-1", "2-3", "4-5"]),
        ("node:64 pu:64", 4096, None),
    ],
)
def test_synthetic_machines(text, pus, domains):
    machine = Machine.from_synthetic(text)
    assert machine.counts["pus"] == pus
    assert machine.source == text
    if domains:
        assert [domain["cpus"] for domain in machine.cpu_domains] == domains
    else:
        assert len(machine.cpu_domains) == 64


@pytest.mark.parametrize(
    "text",
    [
        "",
        "spam",
        "pack:2 spam:3",
        "pu:0",
        "pu:-1",
        "numa:2 pu:",
        "pu:4097",
        "node:4000000000 pu:4000000000",
        "pu:10000",
    ],
    ids=repr,
)
def test_malformed_and_oversized_descriptions_are_refused(text):
    with pytest.raises(ValueError, match="synthetic"):
        Machine.from_synthetic(text)
    assert Machine.from_synthetic("numa:2 pu:1").counts["pus"] == 2


def test_memory_is_divided_among_the_devices_on_a_node():
    with ad.simulate("2 nodes x 4"):
        devices = ad.devices()
        assert len({device.memory_bytes for device in devices}) == 1
        assert [device.numa_nodes[0] for device in devices] == [0, 0, 0, 0, 1, 1, 1, 1]
        assert devices[0].cpuset == devices[3].cpuset != devices[4].cpuset
    with ad.simulate("numa:2 pu:4"):
        assert ad.devices()[0].memory_bytes == 4 * devices[0].memory_bytes


# --- The live machine ---


def test_the_live_machine_uses_no_cpu_that_is_not_allowed():
    machine = Machine.live()
    allowed = os.sched_getaffinity(0)
    used = set()
    for domain in machine.cpu_domains:
        for part in domain["cpus"].split(","):
            first, _, last = part.partition("-")
            used |= set(range(int(first), int(last or first) + 1))
    assert machine.is_live
    assert used <= allowed
    assert 1 <= machine.usable_cpus <= len(allowed)
    assert machine.usable_memory_bytes > 0
    assert Machine.live().cpu_domains == machine.cpu_domains


def run_python(code, **environment):
    kept = {key: value for key, value in os.environ.items() if key not in ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES")}
    return subprocess.run(
        [sys.executable, "-c", code], env={**kept, **environment}, capture_output=True, text=True, timeout=60
    )


def count_of(**environment):
    done = run_python("import artifex_devices as ad; print(len(ad.devices()))", **environment)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def test_without_flags_there_is_one_device_a_domain():
    assert count_of() == str(len(Machine.live().cpu_domains))


@pytest.mark.parametrize(
    ("environment", "count"),
    [
        ({"XLA_FLAGS": "--xla_force_host_platform_device_count=5"}, "5"),
        ({"XLA_FLAGS": "--xla_other=1 --xla_force_host_platform_device_count=3 --xla_more"}, "3"),
        ({"XLA_FLAGS": "--xla_other=1"}, None),
        ({"JAX_NUM_CPU_DEVICES": "4"}, "4"),
        ({"JAX_NUM_CPU_DEVICES": "4", "XLA_FLAGS": "--xla_force_host_platform_device_count=5"}, "4"),
    ],
    ids=str,
)
def test_environment_variables_set_the_number_of_devices(environment, count):
    assert count_of(**environment) == (count or str(len(Machine.live().cpu_domains)))


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("JAX_NUM_CPU_DEVICES", "many"),
        ("JAX_NUM_CPU_DEVICES", "0"),
        ("JAX_NUM_CPU_DEVICES", "-3"),
        ("JAX_NUM_CPU_DEVICES", "99999999999999999999"),
        ("XLA_FLAGS", "--xla_force_host_platform_device_count=x"),
        ("XLA_FLAGS", "--xla_force_host_platform_device_count=0"),
    ],
)
def test_a_malformed_variable_is_an_error_that_names_it(variable, value):
    message = count_of(**{variable: value})
    assert message.startswith("ValueError")
    assert variable in message
    assert value.rpartition("=")[2] in message


def test_config_sets_the_number_before_first_use_only():
    code = """
import artifex_devices as ad
ad.config.update("jax_num_cpu_devices", 6)
print(len(ad.devices()))
try:
    ad.config.update("jax_num_cpu_devices", 7)
except RuntimeError as error:
    print("refused" if "jax_num_cpu_devices" in str(error) else error)
print(len(ad.devices()))
"""
    assert run_python(code, JAX_NUM_CPU_DEVICES="3").stdout.split() == ["6", "refused", "6"]


def test_import_loads_no_topology_and_starts_no_thread():
    code = """
import artifex_devices as ad
from artifex_devices import _core
threads = [line for line in open("/proc/self/status") if line.startswith("Threads:")][0].split()[1]
print(_core.internal.base_client_exists(), threads)
"""
    assert run_python(code, OPENBLAS_NUM_THREADS="1").stdout.split() == ["False", "1"]


@pytest.mark.parametrize("variable", ["HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_COMPONENTS", "HWLOC_PLUGINS_PATH"])
def test_hwlocs_own_variables_are_ignored(variable, tmp_path):
    value = {"HWLOC_XMLFILE": str(tmp_path / "no.xml"), "HWLOC_SYNTHETIC": "numa:7 pu:1"}.get(variable, str(tmp_path))
    assert count_of(**{variable: value}) == str(len(Machine.live().cpu_domains))


# --- Files that are none ---

HOSTILE = {
    "empty": b"",
    "other XML": b"<html><body/></html>",
    "future version": b'<?xml version="1.0"?><topology version="9.0"><object type="Machine"/></topology>',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_is_not_a_topology_is_refused(name, tmp_path, capfd):
    path = tmp_path / "machine.xml"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(ValueError, match=r"machine\.xml"):
        Machine.from_xml(str(path))
    with pytest.raises(ValueError, match=r"machine\.xml"), ad.simulate(str(path)):
        pass
    out, err = capfd.readouterr()
    assert out == ""
    assert "root:" not in err
    assert ad.device_count() == 8


def test_a_missing_file_is_file_not_found(tmp_path):
    missing = str(tmp_path / "no.xml")
    with pytest.raises(FileNotFoundError, match=r"no\.xml"):
        Machine.from_xml(missing)
    with pytest.raises(FileNotFoundError, match=r"no\.xml"), ad.simulate(missing):
        pass
