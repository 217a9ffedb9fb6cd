# SPDX-License-Identifier: Apache-2.0
"""What hardware there is: capabilities, and detectors that find them out."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from artifex_devices import _core
from artifex_devices._base.pickled_enum import PickledEnum
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import shown
from artifex_devices._runtime.devices import device_count

__all__ = ["CUDADetector", "DeviceCapabilities", "DeviceDetector", "DeviceType"]

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
    """What a detector found.

    Attributes:
        device_type: CPU, GPU or TPU.
        device_count: How many.
        total_memory_mb: Memory of the first GPU in units of 2**20 bytes, as nvidia-smi prints it; None where it is not
            known, and for CPUs.
        compute_capability: CUDA compute capability, "8.0".
        cuda_version: The newest CUDA that the driver supports, "12.1".
        driver_version: Of the GPU's driver.
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
    """Any object with this method can be a DeviceManager's detector."""

    def detect_capabilities(self) -> DeviceCapabilities:
        """Finds out what hardware there is."""
        ...


@public("artifex_devices.device_manager")
class CUDADetector:
    """Asks NVIDIA's driver which GPUs there are, and counts the CPU devices where there are none.

    The driver's management library (NVML) is loaded, asked and shut down; no program is started. Where it cannot be
    asked, what the kernel shows to this process remains: /proc/driver/nvidia/gpus (a folder for each GPU that the
    driver runs) and /proc/driver/nvidia/version; memory, compute capability and CUDA version then stay None. To say why
    there is no GPU, the vendors in /sys/bus/pci/devices are read. A folder that cannot be read counts as empty, and
    `reason` says so.

    GPUs are counted as the driver counts them: CUDA_VISIBLE_DEVICES is not looked at, and a GPU that is cut into MIG
    instances is one GPU with all of its memory. `find_accelerators()` shows every GPU; here only the first one's memory
    and compute capability are told.

    Attributes:
        reason: Why the last detection found no GPU, or what of the GPUs it could not find out; None before the first
            one and where nothing is missing.

    Example:
        >>> from artifex_devices import CUDADetector, DeviceType
        >>> detector = CUDADetector(root="/nowhere")
        >>> detector.detect_capabilities().device_type
        <DeviceType.CPU: 'cpu'>
        >>> detector.reason
        'no NVIDIA driver: /nowhere/proc/driver/nvidia/gpus is not there; /nowhere/sys/bus/pci/devices is not there'
    """

    def __init__(
        self, *, root: str | os.PathLike[str] = "/", nvml_library: str | os.PathLike[str] | None = None
    ) -> None:
        """Takes the places to look at.

        Args:
            root: The folder that holds proc and sys: "/", or a copy of a machine's files.
            nvml_library: Absolute path of a management library; None is the driver's own, libnvidia-ml.so.1 as the
                loader finds it. It speaks of the machine of this process, so for another root it is not asked.

        Raises:
            ValueError: `nvml_library` is no absolute path.
            TypeError: `root` or `nvml_library` is no path.
        """
        self._root = Path(path_text("CUDADetector", "root", root))
        self._library = nvml_library_path("CUDADetector", nvml_library, self._root == Path("/"))
        self.reason: str | None = None

    def detect_capabilities(self) -> DeviceCapabilities:
        """Looks anew.

        Returns:
            The GPUs that the driver runs; without one the CPU devices of the current world.
        """
        report = None if self._library is None else _core._read_nvml(self._library)
        if report is not None and report["is_ready"]:
            return self._told_by_the_driver(report)
        problems = [] if report is None else [f"{report['library']}: {text}" for text in report["problems"]]
        gpus, problem = _entries(self._root / "proc/driver/nvidia/gpus")
        if not gpus:
            return self._no_gpu("no NVIDIA driver: " + "; ".join([problem, *problems, self._on_the_bus()]))
        self.reason = None
        if problems:
            self.reason = f"memory, compute capability and CUDA version are not known: {'; '.join(problems)}"
        return DeviceCapabilities(
            DeviceType.GPU,
            len(gpus),
            driver_version=self._driver_version(),
            supports_mixed_precision=True,
            supports_distributed=len(gpus) > 1,
        )

    def _told_by_the_driver(self, report: dict[str, Any]) -> DeviceCapabilities:
        gpus = report["gpus"]
        problems = [f"{report['library']}: {text}" for text in report["problems"]]
        problems += [f"GPU {number}: {text}" for number, gpu in enumerate(gpus) for text in gpu["problems"]]
        if not gpus:
            shown, _ = _entries(self._root / "proc/driver/nvidia/gpus")
            hidden = [f"{len(shown)} of /proc/driver/nvidia/gpus are hidden from this process"] if shown else []
            return self._no_gpu(
                "; ".join([f"no NVIDIA GPU: {report['library']} counts none", *hidden, *problems, self._on_the_bus()])
            )
        self.reason = "; ".join(problems) or None
        first = gpus[0]
        memory, capability = first["memory_bytes"], first["compute_capability"]
        return DeviceCapabilities(
            DeviceType.GPU,
            len(gpus),
            total_memory_mb=None if memory is None else memory // 2**20,
            compute_capability=capability,
            cuda_version=report["cuda_version"],
            driver_version=report["driver_version"],
            supports_mixed_precision=capability is None or _multiplies_half_floats_faster(capability),
            supports_distributed=len(gpus) > 1,
        )

    def _no_gpu(self, reason: str) -> DeviceCapabilities:
        self.reason = reason
        count = device_count()
        return DeviceCapabilities(DeviceType.CPU, count, supports_distributed=count > 1)

    def _driver_version(self) -> str | None:
        text = _text_of(self._root / "proc/driver/nvidia/version")
        found = re.search(r"^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", text, re.MULTILINE)
        return found.group(1) if found else None

    def _on_the_bus(self) -> str:
        """What the PCI bus says of NVIDIA's GPUs."""
        devices, problem = _entries(self._root / "sys/bus/pci/devices")
        if not devices:
            return problem
        found = [
            device.name
            for device in devices
            if _hexadecimal(device / "vendor") == _NVIDIA and _hexadecimal(device / "class") >> 16 == _DISPLAY
        ]
        if not found:
            return f"no NVIDIA GPU among {len(devices)} PCI devices"
        return f"NVIDIA GPU on the PCI bus ({', '.join(found)}): its driver is not loaded, or hidden from this process"


def path_text(operation: str, name: str, path: str | os.PathLike[str]) -> str:
    """The path as text.

    Raises:
        TypeError: It is no path.
        ValueError: It is no UTF-8, which the core takes and errors show.
    """
    try:
        text = os.fsdecode(path)
        text.encode()
        return text
    except UnicodeEncodeError:
        raise ValueError(f"{operation}: {name} is {shown(path)}; expected a path in UTF-8; rename it") from None
    except TypeError:
        raise TypeError(
            f"{operation}: {name} is of type {type(path).__name__}; expected a path as text or os.PathLike, got "
            f"{shown(path)}; leave it out for this machine's own"
        ) from None


def nvml_library_path(operation: str, library: str | os.PathLike[str] | None, is_here: bool) -> str | None:
    """Which library NVML is: "" for the driver's own, a path, or None for none.

    Raises:
        ValueError: The path is not absolute.
        TypeError: It is no path.
    """
    if library is None:
        return "" if is_here else None
    path = path_text(operation, "nvml_library", library)
    if not os.path.isabs(path) or "\0" in path:
        raise ValueError(
            f"{operation}: nvml_library is {shown(library)}; expected the absolute path of a library, such as "
            "'/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1'; leave it out for the driver's own"
        )
    return path


def _multiplies_half_floats_faster(capability: str) -> bool:
    """By compute capability: all with tensor cores, and three before them.

    Source: CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions".
    """
    major, minor = map(int, capability.split("."))
    return major >= 7 or (major, minor) in ((5, 3), (6, 0), (6, 2))


def _entries(folder: Path) -> tuple[list[Path], str]:
    """What is in a folder, sorted; or nothing, and why."""
    try:
        found = sorted(folder.iterdir())
    except FileNotFoundError:
        return [], f"{folder} is not there"
    except OSError as error:
        return [], f"{folder} cannot be read ({error.strerror or error})"
    return found, f"{folder} is empty"


def _text_of(file: Path) -> str:
    """A small file's text; "" where it cannot be read."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _hexadecimal(file: Path) -> int:
    """The number in a file of sysfs; 0 where there is none."""
    try:
        return int(_text_of(file).strip() or "0", 16)
    except ValueError:
        return 0
