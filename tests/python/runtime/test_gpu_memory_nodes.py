# SPDX-License-Identifier: Apache-2.0
"""Memory of GPUs that the system lists as memory nodes (POWER9, Grace) is not memory of the host."""

import artifex_devices as ad
import pytest
from artifex_devices import cluster
from artifex_devices.command_line import main

HOST = 274_266_980_352
GPU = 17_179_869_184


@pytest.fixture(params=["subtype", "address", "no CPUs"])
def path(request, shared_topologies, tmp_path):
    """The POWER9 as hwloc describes it with HWLOC_KEEP_NVIDIA_GPU_NUMA_NODES=1, in several ways: GPU 0 is node 9."""
    lines = (shared_topologies / "power9-2s-4xV100.xml").read_text().splitlines(keepends=True)
    machine = next(i for i, line in enumerate(lines) if 'type="Machine"' in line)
    package = next(i for i, line in enumerate(lines) if 'type="Package"' in line)
    node = next(i for i, line in enumerate(lines) if 'type="NUMANode" os_index="0"' in line)
    lines[machine] = lines[machine].replace('"0x00000101"', '"0x00000301"')
    lines[package] = lines[package].replace('"0x00000001"', '"0x00000201"')
    gpu = lines[node].replace('os_index="0"', 'os_index="9"').replace('"0x00000001"', '"0x00000200"')
    gpu = gpu.replace('gp_index="356"', 'gp_index="99999"').replace("137100066816", str(GPU))
    subtype = "" if request.param == "address" else ' subtype="GPUMemory"'
    if request.param == "no CPUs":
        before, _, rest = gpu.partition(' cpuset="')
        gpu = f'{before} cpuset="0x0{rest[rest.index(chr(34)) :]}'
        before, _, rest = gpu.partition(' complete_cpuset="')
        gpu = f'{before} complete_cpuset="0x0{rest[rest.index(chr(34)) :]}'
    gpu = gpu.rstrip().removesuffix(">") + f'{subtype}><info name="PCIBusID" value="0004:04:00.0"/></object>\n'
    lines.insert(package + 3, gpu)
    changed = tmp_path / "power9.xml"
    changed.write_text("".join(lines))
    return changed


def test_the_memory_of_the_host_leaves_it_out(path, capsys):
    machine = ad.Machine.from_xml(str(path))
    assert {node["os_index"]: node["subtype"] for node in machine.numa_nodes} == {0: None, 8: None, 9: "GPUMemory"}
    assert machine.usable_memory_bytes == HOST
    assert cluster.from_xml(str(path)).parts["host_memory_bytes"] == (HOST, str(path))
    assert main(["topology", "--machine", str(path)]) == 0
    assert "255.4 GiB and 16.0 GiB of GPUs" in capsys.readouterr().out


def test_no_device_has_it(path):
    machine = ad.Machine.from_xml(str(path))
    by_index = {node["logical"]: node["os_index"] for node in machine.numa_nodes}
    assert [[by_index[node] for node in domain["nodes"]] for domain in machine.cpu_domains] == [[0], [8]]
    assert all(domain["wider_nodes"] == [] for domain in machine.cpu_domains)
    with ad.simulate(machine, compile_only=True):
        assert [device.memory_bytes for device in ad.devices()] == [137_100_066_816, 137_166_913_536]
        assert [[by_index[node] for node in device.numa_nodes] for device in ad.devices()] == [[0], [8]]
