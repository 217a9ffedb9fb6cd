# SPDX-License-Identifier: Apache-2.0
"""Catalogue of accelerators: published numbers of TPUs and GPUs, with their sources."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from artifex_devices import _core
from artifex_devices._base.checks import check_str, failure
from artifex_devices._base.html import facts, folded, page
from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.text import bytes_text
from artifex_devices._hardware.batch_size import HardwareType

__all__ = ["Accelerator", "Links", "Source", "accelerator", "accelerators"]
add_public_lookup(__name__)


@dataclass(frozen=True)
class Source:
    """Source of a number.

    Attributes:
        title: Title of the page, paper or file.
        address: Its address, or "" without an address.
    """

    title: str
    address: str = ""


@dataclass(frozen=True)
class Links:
    """Links between chips of one kind. Bandwidths are bytes/s of one link in one direction.

    Attributes:
        kind: "ICI", "NVLink 4" and the like.
        links: Number of links of one chip.
        torus_dims: Number of dimensions of the torus; None for chips behind switches or joined all to all.
        one_way: Bandwidth that programs reach; None if not published.
        nominal_one_way: Bandwidth by the vendor's page, if it differs.
        pod: Shape of the largest torus, or None.
        wrap: Rule of the wraparound: "cube4" (multiples of 4x4x4 wrap), "axis16" (axes of length 16 wrap) or "".
        domain_chips: Number of GPUs that reach each other over these links; None if there are several designs.
        switches: Number of switches that join them; 0 for none.
        note: Other facts and assumptions.
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
        """Bytes/s out of one chip over all its links, or None if not published."""
        return None if self.one_way is None else self.links * self.one_way


@dataclass(frozen=True, eq=False)
class Accelerator:
    """One accelerator, per chip: dense FLOP/s, bytes, bytes/s. Unpublished values are None or missing.

    Attributes:
        name: The catalogue's name.
        hardware_type: HardwareType of the chip, or None.
        platform: "tpu" or "gpu".
        device_kinds: Values of JAX's `device_kind`.
        pci_ids: "vendor:device" in hexadecimal.
        peak_flops: FLOP/s by number format: "bfloat16", "float16", "float32", "tensorfloat32", "int8", "float8",
            "int4", "float4".
        memory_bytes: Bytes of its own memory.
        memory_bandwidth: Bytes/s between that memory and the chip.
        cores_per_chip: Number of TensorCores of a TPU.
        devices_per_chip: Number of JAX devices of a chip: 2 if each core is one.
        links: Links between chips, or None.
        chips_per_host: Number of chips of one host.
        host_shape: Shape of a host's chips in the torus.
        pcie_one_way: Bytes/s between host and chip.
        network_per_chip: Bytes/s of network for each chip, one way.
        sources: Sources of FLOP/s, memory and its bandwidth.
        link_sources: Sources of links, host and network.
        pci_source: Source of the PCI ids, or None.
        note: Contradictions between sources, and unchecked facts.
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

    def _repr_html_(self) -> str:
        rows = [
            ("platform", self.platform),
            *((f"peak {dtype}", f"{rate / 1e12:.4g} TFLOP/s") for dtype, rate in self.peak_flops.items()),
            ("memory", f"{bytes_text(self.memory_bytes)}, {self.memory_bandwidth / 1e9:.4g} GB/s"),
        ]
        if self.links is not None:
            rows.append(("links", f"{self.links.links} x {self.links.kind}{_rate_text(self.links.one_way, 'each')}"))
        if self.chips_per_host is not None:
            rows.append(("host", f"{self.chips_per_host} chips{_rate_text(self.pcie_one_way, 'to each')}"))
        if self.network_per_chip is not None:
            rows.append(("network", f"{self.network_per_chip / 1e9:.4g} GB/s for each chip, one way"))
        if self.note:
            rows.append(("note", self.note))
        sources = dict.fromkeys((*self.sources, *self.link_sources))
        return page(self.name, facts(rows), folded("sources", facts((each.title, each.address) for each in sources)))


def _rate_text(rate: float | None, receiver: str) -> str:
    return "" if rate is None else f", {rate / 1e9:.4g} GB/s {receiver}, one way"


def accelerators() -> tuple[Accelerator, ...]:
    """Returns all accelerators of the catalogue: TPUs first, older before newer.

    Example:
        >>> from artifex_devices.roofline import accelerators
        >>> [each.name for each in accelerators() if each.hardware_type is None and "SXM" in each.name]
        ['NVIDIA H800 SXM', 'NVIDIA H200 SXM']
    """
    return tuple(_catalogue().values())


def accelerator(hardware: HardwareType | str) -> Accelerator:
    """Finds one accelerator of the catalogue.

    Args:
        hardware: A HardwareType or its value ("h100"), a name of the catalogue, the name that the device reports ("TPU
            v5 lite", "NVIDIA H100 80GB HBM3"), or a PCI id ("10de:2330"); case does not matter. For a HardwareType of
            several chips, the chip of the batch size table: A100 with 80 GB, V100 with 16 GB.

    Raises:
        ValueError: The catalogue does not have it: a part of a GPU, or the PCIe card of a module, has other numbers.
        TypeError: `hardware` is neither.

    Example:
        >>> from artifex_devices.roofline import accelerator
        >>> accelerator("h100").peak_flops["bfloat16"], accelerator("TPU v5").name
        (989000000000000.0, 'TPU v5p')
    """
    if isinstance(hardware, HardwareType):
        hardware = hardware.value
    check_str("accelerator", "hardware", hardware, 'write accelerator("h100")', expected="a HardwareType or a str")
    keys = (("type", hardware.lower()), ("name", hardware), ("kind", hardware), ("pci", hardware))
    for by, text in keys if hardware.isascii() else ():  # all names in the catalogue are ASCII
        name = _core.find_accelerator(by, text)
        if name is not None:
            return _catalogue()[name]
    hint = {
        "cpu": "measure it, with roofline(device) or measure_roofline(device)",
        "unknown": "pass the name of a chip, or the name that its device reports",
    }.get(hardware.lower(), "see accelerators() for all")
    raise failure(
        ValueError,
        "accelerator",
        f"{safe_repr(hardware)} is not in the catalogue",
        expected=f"one of {', '.join(_catalogue())}, a device kind, a PCI id or a HardwareType's value",
        fix=hint,
    )


@functools.cache
def _catalogue() -> Mapping[str, Accelerator]:
    sources = {key: Source(title, address) for key, title, address in _core.catalogue_sources()}
    return MappingProxyType({row["name"]: _accelerator(row, sources) for row in _core.accelerator_catalogue()})


def source_notes(text: str) -> dict[str, str]:
    """Returns the title and address of each source that a text names by its code, in order of first use.

    Example:
        >>> source_notes("memory 819 GB/s [S2 S7]")["S2"]
        'Google Cloud, "TPU v5e", https://docs.cloud.google.com/tpu/docs/v5e'
    """
    sources = {key: ", ".join(filter(None, place)) for key, *place in _core.catalogue_sources()}
    codes = (code for found in re.findall(r"[\[(](S[0-9]+(?: S[0-9]+)*)[\])]", text) for code in found.split())
    return {code: sources[code] for code in dict.fromkeys(codes) if code in sources}


def _accelerator(row: dict[str, Any], sources: dict[str, Source]) -> Accelerator:
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
