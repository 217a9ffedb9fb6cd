# SPDX-License-Identifier: Apache-2.0
"""All accelerators: recorded machines, a stand-in for NVIDIA's library, made-up files of TPUs and AMD's GPUs."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import artifex_devices as ad
import pytest
from artifex_devices import DeviceType, FoundAccelerator, HardwareType, Machine, NvLink

BUILD = Callable[..., str]
MACHINE = Path(__file__).resolve().parents[2] / "data/machines/two_nodes_accelerators.xml"
A100 = "gpu=NVIDIA A100-SXM4-80GB|85899345920|8.0|0:4:0|20b210de|switch@0:b0:0,off"


def put_pci(root: Path, address: str, vendor: str, device: str, kind: str, node: int = 0) -> None:
    folder = root / "sys/bus/pci/devices" / address
    folder.mkdir(parents=True)
    for name, text in {"vendor": vendor, "device": device, "class": kind, "numa_node": str(node)}.items():
        (folder / name).write_text(f"{text}\n")


def test_recorded_machines_have_the_gpus_that_hwloc_merges(shared_topologies: Path) -> None:
    machines = json.loads((shared_topologies / "expected.json").read_text())["machines"]
    counts = {}
    for name, expected in machines.items():
        found = ad.find_accelerators(Machine.from_xml(str(shared_topologies / name)))
        counts[name] = len(found.accelerators)
        assert found.problems == ()
        assert [
            {
                "pci": gpu.pci_address,
                "vendor_device": gpu.pci_id,
                "pcie_gbytes_per_s": gpu.link_bytes_per_s and round(gpu.link_bytes_per_s / 1e9, 2),
                "near_nodes": ",".join(map(str, gpu.numa_os_indexes)),
                "osdevs": list(gpu.os_devices),
                "model": gpu.name,
                "memory_kib": gpu.memory_bytes and gpu.memory_bytes // 1024,
            }
            for gpu in found.accelerators
        ] == expected["gpus"], name
        assert all(gpu.device_type is DeviceType.GPU and gpu.sources == ("hwloc",) for gpu in found.accelerators)
        types = {gpu.hardware_type for gpu in found.accelerators}
        assert types <= ({HardwareType.V100} if "V100" in name else {HardwareType.UNKNOWN}), name
    assert {name: count for name, count in counts.items() if count} == {
        "dgx2-16xV100.xml": 16,
        "epyc-1s-nps4-8xMI250X.xml": 8,
        "epyc-2s-8numa-4xMI50.xml": 4,
        "power9-2s-4xV100.xml": 4,
        "xeon-2s-2xP100.xml": 2,
        "xeon-2s-8xT4.xml": 8,
    }


def test_gpus_and_a_tpu_of_a_made_up_machine() -> None:
    found = ad.find_accelerators(Machine.from_xml(str(MACHINE)))
    assert [(each.pci_address, each.name, each.hardware_type) for each in found.accelerators] == [
        ("0000:04:00.0", "NVIDIA A100-SXM4-80GB", HardwareType.A100),
        ("0000:06:00.0", "GV100GL [Tesla V100 SXM2 32GB]", HardwareType.V100),
        ("0001:81:00.0", "TPU v5e", HardwareType.TPU_V5E),
        ("0001:83:00.0", "AMD Instinct MI250X", HardwareType.UNKNOWN),
    ]
    assert [each.device_type.value for each in found.accelerators] == ["gpu", "gpu", "tpu", "gpu"]
    assert (found.driver_version, found.cuda_version) == (None, None)


def test_the_driver_and_the_bus_together(nvml_stand_in: BUILD, monkeypatch: pytest.MonkeyPatch) -> None:
    library = nvml_stand_in()
    monkeypatch.setenv("NVML_STAND_IN", f"driver=535.54.03;cuda=12020;{A100};gpu=Tesla T4|N/A|7.5|0:99:0|1eb810de")
    found = ad.find_accelerators(Machine.from_xml(str(MACHINE)), nvml_library=library)
    assert (found.driver_version, found.cuda_version, found.problems) == ("535.54.03", "12.2", ())
    assert len(found.accelerators) == 5
    assert found.accelerators[0] == FoundAccelerator(
        device_type=DeviceType.GPU,
        name="NVIDIA A100-SXM4-80GB",
        hardware_type=HardwareType.A100,
        catalogue_name="NVIDIA A100 SXM 80GB",
        pci_address="0000:04:00.0",
        pci_id="10de:20b2",
        memory_bytes=85899345920,
        compute_capability="8.0",
        link_bytes_per_s=31.5e9,
        numa_os_indexes=(0,),
        nvml_index=0,
        nvlinks=(NvLink(0, True, "switch", "0000:b0:00.0"), NvLink(1, False, None, None)),
        os_devices=("opencl0d0", "cuda0", "nvml0"),
        backends=("OpenCL", "CUDA", "NVML"),
        sources=("hwloc", library),
        problems=(),
    )
    t4 = found.accelerators[4]
    assert (t4.name, t4.memory_bytes, t4.numa_os_indexes, t4.nvlinks) == ("Tesla T4", None, (), ())
    assert t4.problems == (
        "0000:99:00.0 is not among the PCI devices: its NUMA node is not known",
        "nvmlDeviceGetMemoryInfo: not supported (NVML error 3)",
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        t4.name = "mine"  # type: ignore[misc]


def test_a_root_is_a_folder_wherever_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_pci(tmp_path / "copy", "0000:01:00.0", "0x1ae0", "0x0063", "0xff0000")
    monkeypatch.chdir(tmp_path)
    assert [each.name for each in ad.find_accelerators(root="copy").accelerators] == ["TPU v5e"]
    assert ad.find_accelerators(root="copy").accelerators[0].sources == (f"{tmp_path}/copy/sys/bus/pci/devices",)
    assert "No such file" in ad.find_accelerators(root="").problems[0]  # this folder, not this machine


def test_without_sysfs_the_reason_is_reported(tmp_path: Path) -> None:
    found = ad.find_accelerators(root=tmp_path)
    folder = f"{tmp_path}/sys/bus/pci/devices"
    assert found.accelerators == ()
    assert found.problems == (f"{folder}: {folder} cannot be read (No such file or directory)",)


def test_this_machine_is_asked_by_the_loader(nvml_stand_in: BUILD) -> None:
    """The driver's own library is found by its name alone, and its GPUs are counted."""
    program = (
        "import artifex_devices as ad\n"
        "found = ad.find_accelerators()\n"
        "detector = ad.CUDADetector()\n"
        "print([(each.name, each.sources) for each in found.accelerators if each.nvml_index is not None])\n"
        "print(detector.detect_capabilities().total_memory_mb, found.driver_version)\n"
    )
    folder = str(Path(nvml_stand_in()).parent)
    settings = {"LD_LIBRARY_PATH": folder, "NVML_STAND_IN": f"driver=1.2;{A100.replace('0:4:0', '7fff:4:0')}"}
    result = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **settings}, capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines() == [
        "[('NVIDIA A100-SXM4-80GB', ('libnvidia-ml.so.1',))]",
        "81920 1.2",
    ]


def test_other_threads_run_while_the_library_is_slow(
    nvml_stand_in: BUILD, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setenv("NVML_STAND_IN", f"wait={pipe};{A100}")
    opened = threading.Thread(target=lambda: os.close(os.open(pipe, os.O_WRONLY)))
    opened.start()  # it opens once the library reads, which would hold the GIL for ever
    found = ad.find_accelerators(Machine.from_synthetic("pu:1"), nvml_library=nvml_stand_in())
    opened.join()
    assert [each.name for each in found.accelerators] == ["NVIDIA A100-SXM4-80GB"]


def test_wrong_arguments() -> None:
    machine = Machine.from_synthetic("pu:1")
    with pytest.raises(TypeError, match=r"find_accelerators: machine is .*str.; expected a Machine"):
        ad.find_accelerators("x.xml")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="find_accelerators: expected a machine or a root"):
        ad.find_accelerators(machine, root="/nowhere")


def test_other_machines_are_not_mixed_with_this_ones_driver(nvml_stand_in: BUILD) -> None:
    program = (
        "import artifex_devices as ad\n"
        "print(ad.find_accelerators(ad.Machine.from_synthetic('pu:1')).accelerators)\n"
        "print(ad.find_accelerators(root='/nowhere').accelerators)\n"
        "print(ad.CUDADetector(root='/nowhere').detect_capabilities().device_type)\n"
    )
    settings = {"LD_LIBRARY_PATH": str(Path(nvml_stand_in()).parent), "NVML_STAND_IN": A100}
    result = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **settings}, capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines() == ["()", "()", "DeviceType.CPU"]
