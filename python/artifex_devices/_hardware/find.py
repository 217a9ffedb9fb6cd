# SPDX-License-Identifier: Apache-2.0
"""Search for all GPUs and TPUs of a machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from artifex_devices._base.checks import check_type
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Machine, internal
from artifex_devices._hardware.batch_size import HardwareType
from artifex_devices._hardware.detection import DeviceType, nvml_library_path, path_text


@public("artifex_devices")
@dataclass(frozen=True)
class NvLink:
    """One NVLink of a GPU.

    Attributes:
        link: Number of the link on that GPU.
        is_active: Whether it is in use.
        peer_kind: Kind of the other end: "gpu", "switch", "npu" (a POWER CPU); None if not known.
        peer_pci_address: PCI address of the other end; None if not known.
    """

    link: int
    is_active: bool
    peer_kind: str | None
    peer_pci_address: str | None


@public("artifex_devices")
@dataclass(frozen=True)
class FoundAccelerator:
    """One GPU or TPU. Unknown values are None.

    Attributes:
        device_type: DeviceType.GPU or DeviceType.TPU.
        name: Name of the model.
        hardware_type: HardwareType of batch size recommendations; HardwareType.UNKNOWN for other models.
        catalogue_name: Name of its row in the catalogue: `accelerators.accelerator(catalogue_name)` has its peaks, and
            `get_batch_size_recommendation(catalogue_name)` its batch sizes.
        pci_address: PCI address, "0000:34:00.0".
        pci_id: Vendor and device id, "10de:1db1".
        memory_bytes: Total memory, in bytes.
        compute_capability: CUDA compute capability, "8.0".
        link_bytes_per_s: Bytes/s of its PCI link, one way, as hwloc derives it from lanes and generation.
        numa_os_indexes: Nearest NUMA nodes, by the numbers of the operating system (`os_index` in
            `Machine.numa_nodes`); empty if not known.
        nvml_index: Number in NVIDIA's management library.
        nvlinks: NVLinks of the GPU; empty for a GPU without NVLinks.
        os_devices: Names of its OS devices in hwloc, "cuda0".
        backends: Backends of hwloc that report it, "CUDA".
        sources: Sources of these facts: "hwloc", a folder of sysfs, the path or name of the management library.
        problems: Reasons for unknown values.
        is_display_card: Whether it is a VGA controller of a model that is in no table and that no compute driver (CUDA,
            NVML, RSMI, Linux's KFD) runs.
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
    """Result of `find_accelerators`.

    Attributes:
        accelerators: GPUs and TPUs in the order of the bus; then GPUs that only the driver reports.
        driver_version: Version of NVIDIA's driver; None if not known.
        cuda_version: Newest CUDA that the driver supports; None if not known.
        problems: Reasons for unknown values, each with the place that was searched.
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
    """Finds all GPUs and TPUs; each call searches again.

    They are hardware; `devices()` returns the devices of the runtime. NVIDIA's GPUs are read through the driver's
    management library (NVML), the PCI bus through hwloc, AMD's GPUs also through Linux's KFD. No program is started,
    and no CUDA context is created. CUDA_VISIBLE_DEVICES has no effect, and a GPU that is divided into MIG instances
    counts as one GPU with its full memory.

    Args:
        machine: A machine read from XML, for its recorded accelerators; None means the machine of this process.
        root: "/", or a folder with a copy of another machine's `sys`.
        nvml_library: Absolute path of a management library. By default the driver's own, `libnvidia-ml.so.1` as the
            loader finds it, but only for this process's machine.

    Returns:
        An AcceleratorReport. A missing library, a failing call or an unreadable folder is reported in `problems`.

    Raises:
        ValueError: `nvml_library` is not an absolute path, or both a recorded machine and a root are passed.
        TypeError: `machine` is not a Machine, or `root` or `nvml_library` is not a path.

    Example:
        >>> import artifex_devices as ad
        >>> ad.find_accelerators(ad.Machine.from_synthetic("numa:2 pu:2")).accelerators
        ()
    """
    folder = os.path.abspath(path_text("find_accelerators", "root", root))
    expected, fix = "a Machine or None", "write Machine.from_xml('machine.xml')"
    check_type("find_accelerators", "machine", machine, (Machine, type(None)), expected, fix)
    is_here = not folder.strip("/")
    if machine is not None and not is_here:
        got = f"{safe_repr(machine)} and root={safe_repr(folder)}"
        raise ValueError(f"find_accelerators: expected a machine or a root, got {got}; leave one out")
    if machine is None and is_here:
        machine = Machine.live()
    library = nvml_library_path("find_accelerators", nvml_library, is_here and (machine is None or machine.is_live))
    found = internal.find_accelerators(machine, folder.rstrip("/"), library)
    rows = tuple(_accelerator(row) for row in found["accelerators"])
    return AcceleratorReport(rows, found["driver_version"], found["cuda_version"], tuple(found["problems"]))


def _accelerator(row: dict[str, Any]) -> FoundAccelerator:
    kind, links = row.pop("kind"), row.pop("links")
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    fields["hardware_type"] = HardwareType(row["hardware_type"])
    return FoundAccelerator(device_type=DeviceType(kind), nvlinks=tuple(NvLink(*link) for link in links), **fields)
