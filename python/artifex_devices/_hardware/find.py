# SPDX-License-Identifier: Apache-2.0
"""All GPUs and TPUs of a machine, with what is known of each and why the rest is not."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from artifex_devices import _core
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Machine
from artifex_devices._hardware.batch_size import HardwareType
from artifex_devices._hardware.detection import DeviceType, nvml_library_path, path_text

__all__ = ["AcceleratorReport", "FoundAccelerator", "NvLink", "find_accelerators"]


@public("artifex_devices")
@dataclass(frozen=True)
class NvLink:
    """One NVLink of a GPU.

    Attributes:
        link: Its number on that GPU.
        is_active: Whether it is in use.
        peer_kind: What is at its other end: "gpu", "switch", "npu" (a POWER CPU); None where not known.
        peer_pci_address: The PCI address there; None where not known.
    """

    link: int
    is_active: bool
    peer_kind: str | None
    peer_pci_address: str | None


@public("artifex_devices")
@dataclass(frozen=True)
class FoundAccelerator:
    """One GPU or TPU. What is None is not known.

    Attributes:
        device_type: DeviceType.GPU or DeviceType.TPU.
        name: The model.
        hardware_type: What batch-size advice calls it; HardwareType.UNKNOWN for models without a table.
        catalogue_name: Its row in the catalogue: `accelerators.accelerator(catalogue_name)` has its peaks, and
            `get_batch_size_recommendation(catalogue_name)` what follows from them.
        pci_address: "0000:34:00.0".
        pci_id: Vendor and device id, "10de:1db1".
        memory_bytes: All of its memory, in bytes.
        compute_capability: CUDA compute capability, "8.0".
        link_bytes_per_s: Of its PCI link, one way, in bytes per second; as hwloc derives it from lanes and generation.
        numa_os_indexes: NUMA nodes that it is near to, by the numbers of the operating system (`os_index` in
            `Machine.numa_nodes`); empty where not known.
        nvml_index: Its number in NVIDIA's management library.
        nvlinks: Its NVLinks; empty where it has none.
        os_devices: Names that hwloc has for it, "cuda0".
        backends: What hwloc knows it by, "CUDA".
        sources: Who says so: "hwloc", a folder of sysfs, the path or name of the management library.
        problems: Why something is not known.
        is_display_card: Whether it is a VGA controller of a model that no table lists, and no compute driver (CUDA,
            NVML, RSMI, Linux's KFD) runs it.
    """

    device_type: DeviceType
    name: str | None
    hardware_type: HardwareType
    catalogue_name: str | None
    pci_address: str | None
    pci_id: str | None
    memory_bytes: int | None
    compute_capability: str | None
    link_bytes_per_s: float | None
    numa_os_indexes: tuple[int, ...]
    nvml_index: int | None
    nvlinks: tuple[NvLink, ...]
    os_devices: tuple[str, ...]
    backends: tuple[str, ...]
    sources: tuple[str, ...]
    problems: tuple[str, ...]
    is_display_card: bool = False


@public("artifex_devices")
@dataclass(frozen=True)
class AcceleratorReport:
    """What `find_accelerators` found.

    Attributes:
        accelerators: GPUs and TPUs in the order of the bus; then those that only the driver knows.
        driver_version: Of NVIDIA's driver; None where not known.
        cuda_version: The newest CUDA that the driver supports; None where not known.
        problems: Why something is not known, each with the place where it was looked for.
    """

    accelerators: tuple[FoundAccelerator, ...]
    driver_version: str | None
    cuda_version: str | None
    problems: tuple[str, ...]


def find_accelerators(
    machine: Machine | None = None,
    *,
    root: str | os.PathLike[str] = "/",
    nvml_library: str | os.PathLike[str] | None = None,
) -> AcceleratorReport:
    """Finds all GPUs and TPUs, anew at each call.

    They are hardware, not devices of the runtime: those are `devices()`. NVIDIA's GPUs are asked through the driver's
    management library (NVML), the PCI bus through hwloc, AMD's GPUs also through Linux's KFD. No program is started,
    and no CUDA context is made. CUDA_VISIBLE_DEVICES is not looked at, and a GPU that is cut into MIG instances is one
    GPU with all of its memory.

    Args:
        machine: A machine read from XML, for what is recorded there; None is the one of this process.
        root: "/", or a folder with a copy of another machine's `sys`.
        nvml_library: Absolute path of a management library; None is the driver's own, `libnvidia-ml.so.1` as the
            loader finds it, which is asked for this process's machine only.

    Returns:
        An AcceleratorReport. A library that is not there, a failing call, an unreadable folder: a text in `problems`.

    Raises:
        ValueError: `nvml_library` is no absolute path, or both a recorded machine and a root are given.
        TypeError: `machine` is no Machine, `root` or `nvml_library` no path.

    Example:
        >>> import artifex_devices as ad
        >>> ad.find_accelerators(ad.Machine.from_synthetic("numa:2 pu:2")).accelerators
        ()
    """
    folder = os.path.abspath(path_text("find_accelerators", "root", root))
    if machine is not None and not isinstance(machine, Machine):
        raise TypeError(
            f"find_accelerators: machine is of type {type(machine).__name__}; expected a Machine or None, got "
            f"{shown(machine)}; write Machine.from_xml(path)"
        )
    is_here = not folder.strip("/")
    if machine is not None and not is_here:
        raise ValueError(
            f"find_accelerators: expected a machine or a root, got {shown(machine)} and root={shown(folder)}; leave "
            "one out"
        )
    if machine is None and is_here:
        machine = Machine.live()
    library = nvml_library_path("find_accelerators", nvml_library, is_here and (machine is None or machine.is_live))
    found = _core._find_accelerators(machine, folder.rstrip("/"), library)
    return AcceleratorReport(
        tuple(_accelerator(row) for row in found["accelerators"]),
        found["driver_version"],
        found["cuda_version"],
        tuple(found["problems"]),
    )


def _accelerator(row: dict[str, Any]) -> FoundAccelerator:
    return FoundAccelerator(
        device_type=DeviceType(row["kind"]),
        name=row["name"],
        hardware_type=HardwareType(row["hardware_type"]),
        catalogue_name=row["catalogue_name"],
        pci_address=row["pci_address"],
        pci_id=row["pci_id"],
        memory_bytes=row["memory_bytes"],
        compute_capability=row["compute_capability"],
        link_bytes_per_s=row["link_bytes_per_s"],
        numa_os_indexes=tuple(row["numa_os_indexes"]),
        nvml_index=row["nvml_index"],
        nvlinks=tuple(NvLink(*link) for link in row["links"]),
        os_devices=tuple(row["os_devices"]),
        backends=tuple(row["backends"]),
        is_display_card=row["is_display_card"],
        sources=tuple(row["sources"]),
        problems=tuple(row["problems"]),
    )
