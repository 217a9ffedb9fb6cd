# SPDX-License-Identifier: Apache-2.0
"""Capabilities of the hardware, and their detectors."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from artifex_devices._base.checks import wrong_type, wrong_value
from artifex_devices._base.pickled_enum import PickledEnum
from artifex_devices._base.public_path import public
from artifex_devices._core import internal
from artifex_devices._hardware.system_files import SystemFiles
from artifex_devices._runtime.devices import device_count

_NVIDIA = 0x10DE
_DISPLAY = 0x03  # base class of display controllers on the PCI bus, 3D controllers included


@public("artifex_devices.device_manager")
class DeviceType(PickledEnum):
    """Kinds of devices."""

    CPU = "cpu"
    GPU = "gpu"
    TPU = "tpu"


@public("artifex_devices.device_manager")
@dataclass(frozen=True)
class DeviceCapabilities:
    """Result of a detector.

    Attributes:
        device_type: CPU, GPU or TPU.
        device_count: Number of devices.
        total_memory_mb: Memory of the first GPU in units of 2**20 bytes, as nvidia-smi prints it; None if not known,
            and for CPUs.
        compute_capability: CUDA compute capability, "8.0".
        cuda_version: Newest CUDA that the driver supports, "12.1".
        driver_version: Version of the GPU's driver.
        supports_mixed_precision: Whether the hardware multiplies 16-bit floats faster.
        supports_distributed: Whether there is more than one device.
    """

    device_type: DeviceType
    device_count: int
    total_memory_mb: int | None = None
    compute_capability: str | None = None
    cuda_version: str | None = None
    driver_version: str | None = None
    supports_mixed_precision: bool = False
    supports_distributed: bool = False


@public("artifex_devices.device_manager")
@runtime_checkable
class DeviceDetector(Protocol):
    """Protocol of a DeviceManager's detector: any object with this method."""

    def detect_capabilities(self) -> DeviceCapabilities:
        """Detects the hardware."""
        ...


@public("artifex_devices.device_manager")
class CUDADetector:
    """Detects NVIDIA GPUs through the driver; on a machine without GPUs, counts the CPU devices.

    The driver's management library (NVML) is loaded, queried and shut down; no program is started. If it is not
    available, the kernel's files are read instead: /proc/driver/nvidia/gpus (a folder for each GPU that the driver
    runs) and /proc/driver/nvidia/version; memory, compute capability and CUDA version then stay None. To explain a
    missing GPU, the vendors in /sys/bus/pci/devices are read. A folder that cannot be read counts as empty, and
    `reason` reports it.

    GPUs are counted as the driver counts them: CUDA_VISIBLE_DEVICES has no effect, and a GPU that is divided into MIG
    instances counts as one GPU with its full memory. `find_accelerators()` lists every GPU; this detector returns the
    memory and compute capability of the first one only.

    Attributes:
        reason: Why the last detection found no GPU, or which facts it could not find, or None before the first
            detection and if nothing is missing.

    Example:
        >>> from artifex_devices import CUDADetector, DeviceType
        >>> detector = CUDADetector(root="/nowhere")
        >>> detector.detect_capabilities().device_type
        <DeviceType.CPU: 'cpu'>
        >>> detector.reason
        'no NVIDIA driver: /nowhere/proc/driver/nvidia/gpus does not exist; /nowhere/sys/bus/pci/devices does not exist'
    """

    def __init__(
        self, *, root: str | os.PathLike[str] = "/", nvml_library: str | os.PathLike[str] | None = None
    ) -> None:
        """Creates a detector for a folder of system files and a management library.

        Args:
            root: Folder with proc and sys: "/", or a copy of a machine's files.
            nvml_library: Absolute path of a management library; None means the driver's own, libnvidia-ml.so.1 as the
                loader finds it. It describes the machine of this process, so it is not used with another root.

        Raises:
            ValueError: `nvml_library` is not an absolute path.
            TypeError: `root` or `nvml_library` is not a path.
        """
        self._root = Path(path_text("CUDADetector", "root", root))
        self._files = SystemFiles(self._root)
        self._library = nvml_library_path("CUDADetector", nvml_library, self._root == Path("/"))
        self._is_here = self._root == Path("/") and nvml_library is None
        self.reason: str | None = None

    def detect_capabilities(self) -> DeviceCapabilities:
        """Detects again: the GPUs that the driver runs, or, without GPUs, the CPU devices of the current world.

        In a world of emulated GPUs these are the result, with the driver version "emulated".
        """
        if self._is_here and (emulated := self._emulated_gpus()) is not None:
            return emulated
        report = None if self._library is None else internal.read_nvml(self._library)
        if report is not None and report["is_ready"]:
            return self._reported_by_the_driver(report)
        problems = [] if report is None else [f"{report['library']}: {text}" for text in report["problems"]]
        gpus, problem = _entries(self._root / "proc/driver/nvidia/gpus")
        if not gpus:
            return self._no_gpu("no NVIDIA driver: " + "; ".join([problem, *problems, self._on_the_bus()]))
        text, _ = self._files.read("/proc/driver/nvidia/version")
        version = re.search(r"^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)(?:\s|$)", text or "", re.MULTILINE)
        unknown = f"memory, compute capability and CUDA version are not known: {'; '.join(problems)}"
        self.reason = unknown if problems else None
        driver = version[1] if version else None
        return _gpus(len(gpus), driver_version=driver, supports_mixed_precision=True)

    def _emulated_gpus(self) -> DeviceCapabilities | None:
        client = internal.current_client()
        if not client._is_emulated:
            return None
        self.reason = "the GPUs are emulated by simulate(): compute capability and CUDA version are not known"
        first = client.devices()[0]
        return _gpus(
            client.device_count(),
            total_memory_mb=first.memory_bytes // 2**20,
            driver_version="emulated",
            supports_mixed_precision=True,
        )

    def _reported_by_the_driver(self, report: dict[str, Any]) -> DeviceCapabilities:
        gpus = report["gpus"]
        problems = [f"{report['library']}: {text}" for text in report["problems"]]
        problems += [f"GPU {number}: {text}" for number, gpu in enumerate(gpus) for text in gpu["problems"]]
        if not gpus:
            reasons = [f"no NVIDIA GPU: {report['library']} counts none"]
            if folders := _entries(self._root / "proc/driver/nvidia/gpus")[0]:
                reasons.append(f"{len(folders)} of /proc/driver/nvidia/gpus are hidden from this process")
            return self._no_gpu("; ".join([*reasons, *problems, self._on_the_bus()]))
        self.reason = "; ".join(problems) or None
        first = gpus[0]
        memory, capability = first["memory_bytes"], first["compute_capability"]
        return _gpus(
            len(gpus),
            total_memory_mb=None if memory is None else memory // 2**20,
            compute_capability=capability,
            cuda_version=report["cuda_version"],
            driver_version=report["driver_version"],
            supports_mixed_precision=capability is None or _multiplies_half_floats_faster(capability),
        )

    def _no_gpu(self, reason: str) -> DeviceCapabilities:
        self.reason = reason
        count = device_count()
        return DeviceCapabilities(DeviceType.CPU, count, supports_distributed=count > 1)

    def _on_the_bus(self) -> str:
        """Describes NVIDIA's GPUs on the PCI bus."""
        devices, problem = _entries(self._root / "sys/bus/pci/devices")
        if not devices:
            return problem
        found = [
            device.name
            for device in devices
            if self._hexadecimal(device, "vendor") == _NVIDIA and self._hexadecimal(device, "class") >> 16 == _DISPLAY
        ]
        if not found:
            return f"no NVIDIA GPU among {len(devices)} PCI devices"
        return f"NVIDIA GPU on the PCI bus ({', '.join(found)}): its driver is not loaded, or hidden from this process"

    def _hexadecimal(self, device: Path, name: str) -> int:
        """Returns the number in a file of sysfs; 0 if the file has no number."""
        text, _ = self._files.read(f"/sys/bus/pci/devices/{device.name}/{name}")
        try:
            return int(text or "0", 16)
        except ValueError:
            return 0


def path_text(operation: str, name: str, path: str | os.PathLike[str]) -> str:
    """Returns the path as text; raises TypeError unless it is a path, ValueError unless it is UTF-8."""
    try:
        text = os.fsdecode(path)
        text.encode()
        return text
    except UnicodeEncodeError:
        raise wrong_value(operation, name, path, "a path in UTF-8", "rename it") from None
    except TypeError:
        fix = "leave it out for this machine's own"
        raise wrong_type(operation, name, path, "a path as str or os.PathLike", fix) from None


def nvml_library_path(operation: str, library: str | os.PathLike[str] | None, is_here: bool) -> str | None:
    """Returns the path of the NVML library, "" for the driver's own, or None; ValueError unless it is absolute."""
    if library is None:
        return "" if is_here else None
    path = path_text(operation, "nvml_library", library)
    if not os.path.isabs(path) or "\0" in path:
        expected = "the absolute path of a library, such as '/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1'"
        raise wrong_value(operation, "nvml_library", library, expected, "leave it out for the driver's own")
    return path


def _gpus(count: int, **facts: Any) -> DeviceCapabilities:
    return DeviceCapabilities(DeviceType.GPU, count, supports_distributed=count > 1, **facts)


def _multiplies_half_floats_faster(capability: str) -> bool:
    """Returns whether the compute capability has fast half floats: all with tensor cores, and three before them.

    Source: CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions".
    """
    major, minor = map(int, capability.split("."))
    return major >= 7 or (major, minor) in ((5, 3), (6, 0), (6, 2))


def _entries(folder: Path) -> tuple[list[Path], str]:
    """Returns the sorted entries of a folder, and the reason if it has no entries."""
    try:
        found = sorted(folder.iterdir())
    except FileNotFoundError:
        return [], f"{folder} does not exist"
    except OSError as error:
        return [], f"{folder} cannot be read ({error.strerror or error})"
    return found, f"{folder} is empty"
