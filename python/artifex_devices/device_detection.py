# SPDX-License-Identifier: Apache-2.0
"""What hardware there is: capabilities, and detectors that find them out."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol, runtime_checkable

from artifex_devices.discovery import device_count

__all__ = ["CUDADetector", "DeviceCapabilities", "DeviceDetector", "DeviceType"]

_NVIDIA = 0x10DE
_DISPLAY = 0x03  # base class of display controllers on the PCI bus, 3D controllers included


class DeviceType(Enum):
    """Kinds of devices."""

    CPU = "cpu"
    GPU = "gpu"
    TPU = "tpu"


@dataclass(frozen=True)
class DeviceCapabilities:
    """What a detector found.

    Attributes:
        device_type: CPU, GPU or TPU.
        device_count: How many.
        total_memory_mb: Memory of the first GPU in MB; None where it is not known, and for CPUs.
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


@runtime_checkable
class DeviceDetector(Protocol):
    """Any object with this method can be a DeviceManager's detector."""

    def detect_capabilities(self) -> DeviceCapabilities:
        """Finds out what hardware there is."""
        ...


class CUDADetector:
    """Looks for NVIDIA GPUs by what the kernel shows to this process, and counts the CPU devices where there are none.

    It reads /proc/driver/nvidia/gpus (a folder for each GPU that the driver runs) and /proc/driver/nvidia/version; and
    to say why there is no GPU, the vendors in /sys/bus/pci/devices. It starts no program and loads no library, so the
    GPUs' memory, compute capability and CUDA version stay None. CUDA_VISIBLE_DEVICES is not looked at. A folder that
    cannot be read counts as empty, and `reason` says so.

    Attributes:
        reason: Why the last detection found no GPU; None before the first one and where it found one.

    Example:
        >>> from artifex_devices import CUDADetector, DeviceType
        >>> detector = CUDADetector(root="/nowhere")
        >>> detector.detect_capabilities().device_type
        <DeviceType.CPU: 'cpu'>
        >>> detector.reason
        'no NVIDIA driver: /nowhere/proc/driver/nvidia/gpus is not there; /nowhere/sys/bus/pci/devices is not there'
    """

    def __init__(self, *, root: str | os.PathLike[str] = "/") -> None:
        """Takes the folder that holds proc and sys.

        Args:
            root: "/", or a copy of a machine's files.
        """
        self._root = Path(root)
        self.reason: str | None = None

    def detect_capabilities(self) -> DeviceCapabilities:
        """Looks anew.

        Returns:
            The GPUs that the driver runs; without one the CPU devices of the current world.
        """
        gpus, problem = _entries(self._root / "proc/driver/nvidia/gpus")
        if gpus:
            self.reason = None
            return DeviceCapabilities(
                DeviceType.GPU,
                len(gpus),
                driver_version=self._driver_version(),
                supports_mixed_precision=True,
                supports_distributed=len(gpus) > 1,
            )
        self.reason = f"no NVIDIA driver: {problem}; {self._on_the_bus()}"
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
