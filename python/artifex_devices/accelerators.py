# SPDX-License-Identifier: Apache-2.0
"""The catalogue of accelerators: what their makers and others publish about TPUs and GPUs."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from artifex_devices import _core
from artifex_devices._base.safe_repr import shown
from artifex_devices._hardware.batch_size import HardwareType

__all__ = ["Accelerator", "Links", "Source", "accelerator", "accelerators"]


@dataclass(frozen=True)
class Source:
    """Where a number is from.

    Attributes:
        title: What the page, paper or file calls itself.
        address: Where it is; "" where there is no address to give.
    """

    title: str
    address: str = ""


@dataclass(frozen=True)
class Links:
    """How chips of one kind are joined. Bandwidths are bytes/s of one link in one direction.

    Attributes:
        kind: "ICI", "NVLink 4" and the like.
        links: Links of one chip.
        torus_dims: Dimensions of the torus; None for chips behind switches or joined all to all.
        one_way: What programs get; None where not published.
        nominal_one_way: What the vendor's page divides to, where it differs.
        pod: Largest torus, or None.
        wrap: Rule of the wraparound: "cube4" (whole 4x4x4 cubes wrap), "axis16" (axes of length 16 wrap) or "".
        domain_chips: GPUs that reach each other over these links; None where there are several designs.
        switches: Switches that join them; 0 for none.
        note: What else is known, and what is assumed.
    """

    kind: str
    links: int
    torus_dims: int | None
    one_way: float | None
    nominal_one_way: float | None
    pod: tuple[int, ...] | None
    wrap: str
    domain_chips: int | None
    switches: int | None
    note: str

    @property
    def egress_one_way(self) -> float | None:
        """Bytes/s out of one chip over all of its links; None where not published."""
        return None if self.one_way is None else self.links * self.one_way


@dataclass(frozen=True, eq=False)
class Accelerator:
    """One accelerator, per chip: dense FLOP/s, bytes, bytes/s. What is not published is None, or missing.

    Attributes:
        name: The catalogue's name.
        hardware_type: The HardwareType that it is, None for chips that the documents do not know.
        platform: "tpu" or "gpu".
        device_kinds: What the device calls itself in JAX.
        pci_ids: "vendor:device" in hexadecimal.
        peak_flops: FLOP/s by number format: "bfloat16", "float16", "float32", "tensorfloat32", "int8", "float8",
            "int4", "float4".
        memory_bytes: Bytes of its own memory.
        memory_bandwidth: Bytes/s between that memory and the chip.
        cores_per_chip: TensorCores of a TPU.
        devices_per_chip: JAX devices of a chip: 2 where each core is one.
        links: How chips are joined, or None.
        chips_per_host: Chips of one host.
        host_shape: How they lie in the torus.
        pcie_one_way: Bytes/s between host and chip.
        network_per_chip: Bytes/s of network for each chip, one way.
        sources: Of FLOP/s, memory and its bandwidth.
        link_sources: Of links, host and network.
        pci_source: Of the PCI ids, or None.
        note: Where sources disagree, and what is not checked.
    """

    name: str
    hardware_type: HardwareType | None
    platform: str
    device_kinds: tuple[str, ...]
    pci_ids: tuple[str, ...]
    peak_flops: Mapping[str, float]
    memory_bytes: int
    memory_bandwidth: float
    cores_per_chip: int | None
    devices_per_chip: int | None
    links: Links | None
    chips_per_host: int | None
    host_shape: tuple[int, ...] | None
    pcie_one_way: float | None
    network_per_chip: float | None
    sources: tuple[Source, ...]
    link_sources: tuple[Source, ...]
    pci_source: Source | None
    note: str

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return accelerator, (self.name,)


def accelerators() -> tuple[Accelerator, ...]:
    """All accelerators that the catalogue has: TPUs first, older before newer.

    Example:
        >>> from artifex_devices.roofline import accelerators
        >>> [each.name for each in accelerators() if each.hardware_type is None and each.platform == "gpu"]
        ['NVIDIA H200 SXM', 'NVIDIA B200 (HGX, 1000 W)', 'NVIDIA GB200 NVL72 (per GPU)', 'AMD MI300X']
    """
    return tuple(_catalogue().values())


def accelerator(hardware: HardwareType | str) -> Accelerator:
    """One accelerator of the catalogue.

    Args:
        hardware: A HardwareType or its value ("h100"), a name of the catalogue, what the device calls itself ("TPU v5
            lite", "NVIDIA H100 80GB HBM3"), or a PCI id ("10de:2330"); all without case. Of the types that several
            chips have, the one that the document's batch table is about: A100 with 80 GB, V100 with 16 GB.

    Raises:
        ValueError: If the catalogue does not have it: a part of a GPU, or the PCIe card of a module, has other numbers.
        TypeError: If `hardware` is neither.

    Example:
        >>> from artifex_devices.roofline import accelerator
        >>> accelerator("h100").peak_flops["bfloat16"], accelerator("TPU v5").name
        (989000000000000.0, 'TPU v5p')
    """
    if isinstance(hardware, HardwareType):
        hardware = hardware.value
    if not isinstance(hardware, str):
        raise TypeError(
            f"accelerator: hardware is {shown(hardware)} ({type(hardware).__name__}); expected a HardwareType or a "
            "str; "
            'say "h100"'
        )
    ways = (("type", hardware.lower()), ("name", hardware), ("kind", hardware), ("pci", hardware))
    for by, text in ways if hardware.isascii() else ():  # no name there has other characters
        name = _core.find_accelerator(by, text)
        if name is not None:
            return _catalogue()[name]
    hint = {
        "cpu": "measure it, with roofline(device) or measure_roofline(device)",
        "unknown": "give the name of a chip, or what its device calls itself",
    }.get(hardware.lower(), "see accelerators() for all")
    raise ValueError(
        f"accelerator: {shown(hardware)} is not in the catalogue; expected one of {', '.join(_catalogue())}, a device "
        f"kind, a PCI id or a HardwareType's value; {hint}"
    )


@functools.cache
def _catalogue() -> Mapping[str, Accelerator]:
    sources = {key: Source(title, address) for key, title, address in _core.catalogue_sources()}
    return MappingProxyType({row["name"]: _made(row, sources) for row in _core.accelerator_catalogue()})


def _made(row: dict[str, Any], sources: dict[str, Source]) -> Accelerator:
    links = row["links"]
    if links is not None:
        notes = [links.pop(name) for name in ("pod_note", "wrap_note", "domain_note")]
        links = Links(**links, note="; ".join(note for note in notes if note))
    changed = {
        "hardware_type": HardwareType(row["hardware_type"]) if row["hardware_type"] else None,
        "peak_flops": MappingProxyType(row["peak_flops"]),
        "links": links,
        "sources": tuple(sources[key] for key in row["sources"]),
        "link_sources": tuple(sources[key] for key in row["link_sources"]),
        "pci_source": sources[row["pci_source"]] if row["pci_source"] else None,
    }
    return Accelerator(**{**row, **changed})
