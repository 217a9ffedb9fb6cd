# SPDX-License-Identifier: Apache-2.0
"""Batch sizes that suit a hardware."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

from artifex_devices import _core
from artifex_devices._base.pickled_enum import PickledEnum
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Device
from artifex_devices._runtime.device_arguments import check_device, whole_number
from artifex_devices._runtime.devices import devices

__all__ = [
    "BatchSizeRecommendation",
    "HardwareType",
    "detect_hardware_type",
    "get_batch_size_recommendation",
    "hardware_name",
    "validate_batch_size",
]


_INT64_MAX = 2**63 - 1


@public("artifex_devices.device_placement")
class HardwareType(PickledEnum):
    """Enumeration of supported hardware types."""

    TPU_V5E = "tpu_v5e"
    TPU_V5P = "tpu_v5p"
    TPU_V4 = "tpu_v4"
    H100 = "h100"
    A100 = "a100"
    V100 = "v100"
    CPU = "cpu"
    UNKNOWN = "unknown"


@public("artifex_devices.device_placement")
@dataclass(frozen=True)
class BatchSizeRecommendation:
    """Hardware-specific batch size recommendations; sizes in examples.

    Attributes:
        min_batch_size: Minimum batch size for reasonable efficiency.
        optimal_batch_size: Optimal batch size for peak throughput.
        critical_batch_size: Critical batch size for reaching roofline (per JAX guide).
        max_memory_batch_size: Maximum batch size before OOM (estimate).
        notes: Additional notes about the recommendation.
    """

    min_batch_size: int
    optimal_batch_size: int
    critical_batch_size: int
    max_memory_batch_size: int | None = None
    notes: str = ""


def get_batch_size_recommendation(
    hardware_type: HardwareType | str | None = None,
    *,
    bytes_per_example: int | None = None,
    model_state_bytes: int = 0,
    device: Device | None = None,
    free_bytes: int | None = None,
) -> BatchSizeRecommendation:
    """Batch sizes for a hardware, whether one owns it or not.

    Args:
        hardware_type: A HardwareType or its value ("h100"); or a chip of the catalogue (`accelerators`): its name,
            what its device calls itself ("NVIDIA H200"), or its PCI id. None is what `device` is.
        bytes_per_example: Bytes that one example takes on the device, activations included. Where given,
            `max_memory_batch_size` is estimated: (free - model_state_bytes) // bytes_per_example, at least 0.
        model_state_bytes: Bytes that are taken beside the batch: parameters, gradients, optimizer state.
        device: A device at hand, for its hardware and its free memory; None is the first one.
        free_bytes: Free memory in bytes. None is that of `device`: its limit less what is in use. Needed for
            the estimate on hardware that one does not own.

    Returns:
        A BatchSizeRecommendation. Source of the sizes: the device-placement document's table. For chips that it does
        not have but the catalogue has, sizes that follow from published FLOP/s and memory bandwidth; `notes` then says
        so, with the numbers and their sources. `measure_batch_size` measures a function of one's own instead; its
        result's `to_recommendation()` is one of these, too.

    Raises:
        ValueError: If the hardware is none of the members and not in the catalogue, a number of bytes is negative or
            bytes_per_example is 0, or the memory of that hardware is not known here.
        TypeError: If a number of bytes is no integer, or `device` no Device.

    Example:
        >>> import artifex_devices as ad
        >>> ad.get_batch_size_recommendation(ad.HardwareType.H100).critical_batch_size
        298
        >>> ad.get_batch_size_recommendation(
        ...     "h100", bytes_per_example=4_000_000, model_state_bytes=8 * 10**9, free_bytes=80 * 10**9
        ... ).max_memory_batch_size
        18000
        >>> ad.get_batch_size_recommendation("NVIDIA H200").critical_batch_size  # derived: notes has the numbers
        206
    """
    if device is not None:
        check_device("get_batch_size_recommendation", "device", device)
    hardware = _named(hardware_type) if hardware_type else _hardware_of(device or devices()[0])
    if bytes_per_example is None:
        return hardware.row
    if free_bytes is None:
        free_bytes = _free_bytes(device or devices()[0], hardware)
    counts = {
        "free_bytes": free_bytes,
        "bytes_per_example": bytes_per_example,
        "model_state_bytes": model_state_bytes,
    }
    numbers = [whole_number("get_batch_size_recommendation", name, count) for name, count in counts.items()]
    if max(map(abs, numbers)) > _INT64_MAX:
        raise ValueError(
            f"get_batch_size_recommendation: expected counts of bytes below 2**63, got {counts}; use bytes"
        )
    return replace(hardware.row, max_memory_batch_size=_core.max_memory_batch_size(*numbers))


def hardware_name(hardware_type: HardwareType | str | None = None) -> str:
    """What a hardware is called here: a HardwareType's value, or the catalogue's name of a chip that has none.

    Args:
        hardware_type: As of `get_batch_size_recommendation`; None is the first device's.

    Raises:
        ValueError: If it is none of the members and not in the catalogue.
    """
    return (_named(hardware_type) if hardware_type else _hardware_of(devices()[0])).name


def validate_batch_size(
    batch_size: int, hardware_type: HardwareType | str | None, warn_suboptimal: bool, *, device: Device | None = None
) -> tuple[bool, str]:
    """See `DevicePlacement.validate_batch_size`; chips of the catalogue are judged by their derived sizes.

    `hardware_type` None is what `device` is; that, None, is the first one.
    """
    size = whole_number("validate_batch_size", "batch_size", batch_size)
    if abs(size) > _INT64_MAX:
        raise ValueError(
            f"validate_batch_size: batch_size is {size}; expected a number of examples below 2**63; is it one of bytes?"
        )
    hardware = _named(hardware_type) if hardware_type else _hardware_of(device or devices()[0])
    row = hardware.row
    is_valid, message = _core.validate_batch_size(
        size,
        hardware.name,
        row.min_batch_size,
        row.optimal_batch_size,
        row.critical_batch_size,
        bool(warn_suboptimal),
    )
    return is_valid, message


def detect_hardware_type(device: Device) -> HardwareType:
    """The hardware that a device's platform and kind say; UNKNOWN for chips that the table does not have."""
    return _hardware_of_kind(device.platform, device.device_kind or "")


@functools.cache
def _hardware_of_kind(platform: str, device_kind: str) -> HardwareType:
    return HardwareType(_core.detect_hardware_type(platform, device_kind))


@functools.cache
def _table_row(hardware: HardwareType) -> BatchSizeRecommendation:
    return BatchSizeRecommendation(*_core.batch_size_advice(hardware.value))


@dataclass(frozen=True)
class _Hardware:
    """A type of the document's, or a chip of the catalogue that it does not have; with its batch sizes."""

    name: str
    row: BatchSizeRecommendation


def _named(hardware_type: Any) -> _Hardware:
    try:
        member = HardwareType(hardware_type if isinstance(hardware_type, (HardwareType, str)) else "")
    except ValueError:
        found = _of_catalogue(hardware_type) if isinstance(hardware_type, str) else None
        if found is None:
            members = ", ".join(f"HardwareType.{member.name} ({member.value!r})" for member in HardwareType)
            raise ValueError(
                f"get_batch_size_recommendation: {shown(hardware_type)} is no hardware type; expected one of "
                f"{members}, or a chip of accelerators.accelerators(); leave it out for the hardware at hand"
            ) from None
        return found
    return _Hardware(member.value, _table_row(member))


def _hardware_of(device: Device) -> _Hardware:
    member = detect_hardware_type(device)
    derived = _of_catalogue(device.device_kind or "") if member is HardwareType.UNKNOWN else None
    return derived or _Hardware(member.value, _table_row(member))


@functools.cache
def _of_catalogue(chip: str) -> _Hardware | None:
    found = _core._derived_batch_size(chip)
    if found is None:
        return None
    name, member, least, optimal, critical, notes = found
    if member:
        return _Hardware(member, _table_row(HardwareType(member)))
    return _Hardware(name, BatchSizeRecommendation(least, optimal, critical, None, notes))


def _free_bytes(device: Device, hardware: _Hardware) -> int:
    """Bytes that arrays may still take on the device, if it is of that hardware."""
    found = _hardware_of(device)
    if found.name != hardware.name:
        raise ValueError(
            f"get_batch_size_recommendation: the free memory of a {hardware.name} is not known, {device} "
            f"is a {found.name}; expected free_bytes; say free_bytes=80 * 10**9 for 80 GB"
        )
    stats = device.memory_stats()
    free: int = stats["bytes_limit"] - stats["bytes_in_use"]
    return max(0, free)
