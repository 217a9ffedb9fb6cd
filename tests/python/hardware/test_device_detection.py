# SPDX-License-Identifier: Apache-2.0
"""Detectors: what the kernel's files say of GPUs, and why there are none."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import artifex_devices as ad
import pytest
from artifex_devices import DeviceCapabilities, DeviceType


@pytest.fixture(autouse=True)
def eight_devices() -> Iterator[None]:
    with ad.simulate(8):
        yield


def test_capabilities_are_frozen_and_have_defaults() -> None:
    capabilities = DeviceCapabilities(DeviceType.CPU, 1)
    assert dataclasses.astuple(capabilities) == (DeviceType.CPU, 1, None, None, None, None, False, False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        capabilities.device_count = 2  # type: ignore[misc]
    assert [(m.name, m.value) for m in DeviceType] == [("CPU", "cpu"), ("GPU", "gpu"), ("TPU", "tpu")]


def test_detectors_are_recognized_at_run_time() -> None:
    class Ours:
        def detect_capabilities(self) -> DeviceCapabilities:
            return DeviceCapabilities(DeviceType.CPU, 1)

    assert isinstance(Ours(), ad.DeviceDetector)
    assert isinstance(ad.CUDADetector(), ad.DeviceDetector)
    assert not isinstance(object(), ad.DeviceDetector)


def machine(root: Path, *, gpus: int = 0, version: str = "", bus: dict[str, tuple[str, str]] | None = None) -> Path:
    """The files of a machine: GPUs of the driver, its version, vendor and class by PCI address."""
    for number in range(gpus):
        (root / f"proc/driver/nvidia/gpus/0000:0{number}:00.0").mkdir(parents=True)
    if version:
        (root / "proc/driver/nvidia/version").write_text(version)
    for address, (vendor, kind) in (bus or {}).items():
        folder = root / "sys/bus/pci/devices" / address
        folder.mkdir(parents=True)
        (folder / "vendor").write_text(vendor + "\n")
        (folder / "class").write_text(kind + "\n")
    return root


@pytest.mark.parametrize(
    "version",
    [
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC version: 12\n",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build  (root@x)\nGCC version: 9 x",
    ],
)
def test_gpus_of_the_driver(tmp_path: Path, version: str) -> None:
    detector = ad.CUDADetector(root=machine(tmp_path, gpus=2, version=version))
    assert detector.detect_capabilities() == DeviceCapabilities(
        DeviceType.GPU, 2, driver_version="550.54.15", supports_mixed_precision=True, supports_distributed=True
    )
    assert detector.reason is None


def test_one_gpu_without_a_readable_version(tmp_path: Path) -> None:
    assert ad.CUDADetector(root=machine(tmp_path, gpus=1)).detect_capabilities() == DeviceCapabilities(
        DeviceType.GPU, 1, supports_mixed_precision=True
    )


@pytest.mark.parametrize(
    ("bus", "reason"),
    [
        ({}, "sys/bus/pci/devices does not exist"),
        ({"0000:00:01.0": ("0x8086", "0x030000")}, "no NVIDIA GPU among 1 PCI devices"),
        ({"0000:00:01.0": ("0x10de", "0x040300")}, "no NVIDIA GPU among 1 PCI devices"),  # the sound of a GPU
        ({"0000:00:01.0": ("nonsense", "")}, "no NVIDIA GPU among 1 PCI devices"),
        (
            {"0000:0a:00.0": ("0x10de", "0x030200"), "0000:00:02.0": ("0x1af4", "0x020000")},
            "NVIDIA GPU on the PCI bus (0000:0a:00.0): its driver is not loaded, or hidden from this process",
        ),
    ],
)
def test_why_there_is_no_gpu(tmp_path: Path, bus: dict[str, tuple[str, str]], reason: str) -> None:
    detector = ad.CUDADetector(root=machine(tmp_path, bus=bus))
    assert detector.detect_capabilities() == DeviceCapabilities(DeviceType.CPU, 8, supports_distributed=True)
    assert detector.reason is not None
    assert detector.reason.startswith(f"no NVIDIA driver: {tmp_path}/proc/driver/nvidia/gpus does not exist; ")
    assert detector.reason.endswith(reason)


def test_folders_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/gpus").write_text("")
    detector = ad.CUDADetector(root=tmp_path)
    with ad.simulate(1):
        assert detector.detect_capabilities() == DeviceCapabilities(DeviceType.CPU, 1)
    assert detector.reason is not None
    assert "gpus cannot be read (Not a directory)" in detector.reason


def test_detection_starts_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise AssertionError("a program was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(os, "posix_spawn", refuse)
    ad.CUDADetector().detect_capabilities()


# --- Asking the driver, played by a stand-in ---

A100 = "gpu=NVIDIA A100, a name with a comma|85899345920|8.0|0:4:0|20b210de"
T4 = "gpu=Tesla T4|15843721216|7.5|0:5:0|1eb810de"


def asked(library: str, settings: str, monkeypatch: pytest.MonkeyPatch, root: Path) -> ad.CUDADetector:
    monkeypatch.setenv("NVML_STAND_IN", settings)
    return ad.CUDADetector(root=root, nvml_library=library)


def test_the_driver_reports_its_first_gpu(nvml_stand_in: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    detector = asked(nvml_stand_in(), f"driver=550.54.15;cuda=12040;{A100};{T4}", monkeypatch, tmp_path)
    assert detector.detect_capabilities() == DeviceCapabilities(
        DeviceType.GPU,
        2,
        total_memory_mb=81920,
        compute_capability="8.0",
        cuda_version="12.4",
        driver_version="550.54.15",
        supports_mixed_precision=True,
        supports_distributed=True,
    )
    assert detector.reason is None


def test_a_gpu_without_a_memory_size_is_still_a_gpu(
    nvml_stand_in: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    detector = asked(nvml_stand_in(), "gpu=NVIDIA GB10|N/A|12.1|f:1:0|2e1210de", monkeypatch, tmp_path)
    found = detector.detect_capabilities()
    assert (found.device_count, found.total_memory_mb, found.compute_capability) == (1, None, "12.1")
    assert detector.reason == "GPU 0: nvmlDeviceGetMemoryInfo: not supported (NVML error 3)"


@pytest.mark.parametrize(
    ("capability", "is_faster"),
    [("5.2", False), ("5.3", True), ("6.0", True), ("6.1", False), ("7.0", True), ("12.1", True), ("-1.0", True)],
)
def test_half_floats_by_compute_capability(
    nvml_stand_in: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capability: str, is_faster: bool
) -> None:
    detector = asked(nvml_stand_in(), f"gpu=X|1048576|{capability}|0:4:0|0", monkeypatch, tmp_path)
    assert detector.detect_capabilities().supports_mixed_precision is is_faster


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        (4, "no permission (NVML error 4)"),
        (9, "the driver is not loaded (NVML error 9)"),
        (18, "the library is of another version than the driver (NVML error 18)"),
    ],
)
def test_where_the_driver_refuses_the_kernels_files_remain(
    nvml_stand_in: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, failure: int, why: str
) -> None:
    library = nvml_stand_in()
    detector = asked(library, f"fail=nvmlInit_v2:{failure};{A100}", monkeypatch, tmp_path)
    assert detector.detect_capabilities() == DeviceCapabilities(DeviceType.CPU, 8, supports_distributed=True)
    assert detector.reason == (
        f"no NVIDIA driver: {tmp_path}/proc/driver/nvidia/gpus does not exist; {library}: nvmlInit_v2: {why}; "
        f"{tmp_path}/sys/bus/pci/devices does not exist"
    )
    machine(tmp_path, gpus=1, version="NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\n")
    assert detector.detect_capabilities() == DeviceCapabilities(
        DeviceType.GPU, 1, driver_version="550.54.15", supports_mixed_precision=True
    )
    assert detector.reason == (
        f"memory, compute capability and CUDA version are not known: {library}: nvmlInit_v2: {why}"
    )


def test_a_driver_that_counts_no_gpu(nvml_stand_in: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library = nvml_stand_in()
    detector = asked(library, "", monkeypatch, machine(tmp_path, gpus=2))
    assert detector.detect_capabilities() == DeviceCapabilities(DeviceType.CPU, 8, supports_distributed=True)
    assert detector.reason == (
        f"no NVIDIA GPU: {library} counts none; 2 of /proc/driver/nvidia/gpus are hidden from this process; "
        f"{tmp_path}/sys/bus/pci/devices does not exist"
    )


def test_a_driver_whose_library_lacks_functions(
    nvml_stand_in: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    library = nvml_stand_in("BARE")
    detector = asked(library, A100, monkeypatch, tmp_path)
    assert detector.detect_capabilities() == DeviceCapabilities(DeviceType.GPU, 1, supports_mixed_precision=True)
    assert detector.reason is not None
    assert f"{library}: nvmlSystemGetDriverVersion: the library has no such function; " in detector.reason


def test_a_library_that_is_not_there(tmp_path: Path) -> None:
    detector = ad.CUDADetector(root=tmp_path, nvml_library="/nowhere/libnvidia-ml.so.1")
    assert detector.detect_capabilities().device_type is DeviceType.CPU
    assert detector.reason is not None
    assert "; /nowhere/libnvidia-ml.so.1: cannot be loaded: " in detector.reason


def test_a_managers_info_lists_gpus_that_the_runtime_cannot_use(
    nvml_stand_in: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    detector = asked(nvml_stand_in(), f"driver=550.54.15;cuda=12040;{A100};{T4}", monkeypatch, tmp_path)
    with pytest.warns(UserWarning, match="the detector reports 2, the runtime has 0"):
        manager = ad.DeviceManager(detector=detector)
    with manager:
        info = manager.get_device_info()
        assert info["capabilities"].total_memory_mb == 81920
        assert (manager.has_gpu, manager.gpu_count, info["gpu_devices"], info["detection_problem"]) == (
            False,
            0,
            [],
            None,
        )
        assert info["not_applied"]["capabilities"] == (
            "the detector reports 2 gpu; the runtime has 8 devices, 0 of them GPUs"
        )
        assert info["not_applied"]["platform_priority"] == (
            "no device of cuda (the detector reports 2 gpu, which this package cannot place data on); the "
            "default platform is cpu"
        )


@pytest.mark.parametrize("name", ["root", "nvml_library"])
@pytest.mark.parametrize("made", [ad.CUDADetector, ad.find_accelerators])
def test_other_values_than_paths_are_refused(made: Any, name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{made.__name__}: {name} is 5 .int.; expected a path .*; leave it"):
        made(**{name: 5})
