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


def test_detectors_are_told_at_run_time() -> None:
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
        ({}, "sys/bus/pci/devices is not there"),
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
    assert detector.reason.startswith(f"no NVIDIA driver: {tmp_path}/proc/driver/nvidia/gpus is not there; ")
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
