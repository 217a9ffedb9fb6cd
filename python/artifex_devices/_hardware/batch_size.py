# SPDX-License-Identifier: Apache-2.0
"""Recommended batch sizes of hardware."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

from artifex_devices import _core
from artifex_devices._base.checks import failure, wrong_value
from artifex_devices._base.html import facts, note, page
from artifex_devices._base.pickled_enum import PickledEnum
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Device, internal
from artifex_devices._runtime.device_arguments import check_device, whole_number

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

    def _repr_html_(self) -> str:
        rows = [
            ("minimum", f"{self.min_batch_size:,}"),
            ("optimal", f"{self.optimal_batch_size:,}"),
            ("critical", f"{self.critical_batch_size:,}"),
            (
                "largest in memory",
                "not estimated" if self.max_memory_batch_size is None else f"{self.max_memory_batch_size:,}",
            ),
        ]
        return page("Batch sizes, in examples", facts(rows), note(self.notes) if self.notes else "")


def get_batch_size_recommendation(
    hardware_type: HardwareType | str | None = None,
    *,
    bytes_per_example: int | None = None,
    model_state_bytes: int = 0,
    device: Device | None = None,
    free_bytes: int | None = None,
) -> BatchSizeRecommendation:
    """Recommends batch sizes for hardware, of this machine or not.

    Args:
        hardware_type: A HardwareType or its value ("h100"); or a chip of the catalogue (`accelerators`): its name, the
            name that its device reports ("NVIDIA H200"), or its PCI id. None means the hardware of `device`.
        bytes_per_example: Bytes of one example on the device, activations included. If passed,
            `max_memory_batch_size` is estimated: (free - model_state_bytes) // bytes_per_example, at least 0.
        model_state_bytes: Bytes in use without the batch: parameters, gradients, optimizer state.
        device: A device, for its hardware and its free memory, by default the default device.
        free_bytes: Free memory in bytes, by default of `device`: its limit less the bytes in use. Needed for the
            estimate on other hardware.

    Returns:
        A BatchSizeRecommendation. Source of the sizes: the table in the device placement guide. For other chips of the
        catalogue the sizes are derived from published FLOP/s and memory bandwidth; `notes` then has the numbers and
        their sources. `measure_batch_size` measures a function of yours instead; `to_recommendation()` of its result
        returns a BatchSizeRecommendation too.

    Raises:
        ValueError: The hardware is unknown, a number of bytes is negative, `bytes_per_example` is 0, or the free memory
            of the hardware is not known.
        TypeError: A number of bytes is not an int, or `device` is not a Device.

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
    hardware = _hardware(hardware_type, device)
    if bytes_per_example is None:
        return hardware.row
    if free_bytes is None:
        free_bytes = _free_bytes(device or internal.default_device(), hardware)
    given = (free_bytes, bytes_per_example, model_state_bytes)
    counts = dict(zip(("free_bytes", "bytes_per_example", "model_state_bytes"), given, strict=True))
    numbers = [whole_number("get_batch_size_recommendation", name, count) for name, count in counts.items()]
    if max(map(abs, numbers)) > _INT64_MAX:
        raise ValueError(
            f"get_batch_size_recommendation: expected numbers of bytes below 2**63, got {counts}; correct them"
        )
    from artifex_devices import _planner

    return replace(hardware.row, max_memory_batch_size=_planner.max_memory_batch_size(*numbers))


def hardware_name(hardware_type: HardwareType | str | None = None) -> str:
    """Returns the name of hardware, by default the default device's: a HardwareType's value, or a chip's name."""
    return _hardware(hardware_type).name


def validate_batch_size(
    batch_size: int, hardware_type: HardwareType | str | None, warn_suboptimal: bool, *, device: Device | None = None
) -> tuple[bool, str]:
    """Implements `DevicePlacement.validate_batch_size`; chips of the catalogue have derived sizes."""
    size = whole_number("validate_batch_size", "batch_size", batch_size)
    if abs(size) > _INT64_MAX:
        raise wrong_value("validate_batch_size", "batch_size", size, "a number of examples below 2**63")
    hardware = _hardware(hardware_type, device)
    row = hardware.row
    sizes = (row.min_batch_size, row.optimal_batch_size, row.critical_batch_size)
    from artifex_devices import _planner

    is_valid, message = _planner.validate_batch_size(size, hardware.name, *sizes, bool(warn_suboptimal))
    return is_valid, message


def detect_hardware_type(device: Device) -> HardwareType:
    """Finds the hardware by a device's platform and kind; UNKNOWN for chips outside of the table."""
    return HardwareType(_core.detect_hardware_type(device.platform, device.device_kind or ""))


@dataclass(frozen=True)
class _Hardware:
    """A HardwareType, or another chip of the catalogue, with its batch sizes."""

    name: str
    row: BatchSizeRecommendation


@functools.cache
def _of_type(member: HardwareType) -> _Hardware:
    from artifex_devices import _planner

    return _Hardware(member.value, BatchSizeRecommendation(*_planner.batch_size_advice(member.value)))


def _hardware(hardware_type: HardwareType | str | None, device: Device | None = None) -> _Hardware:
    """Returns the named hardware, or that of the device; None is the default device."""
    return _named(hardware_type) if hardware_type else _hardware_of(device or internal.default_device())


def _named(hardware_type: object) -> _Hardware:
    try:
        member = HardwareType(hardware_type if isinstance(hardware_type, (HardwareType, str)) else "")
    except ValueError:
        found = _of_catalogue(hardware_type) if isinstance(hardware_type, str) else None
        if found is None:
            members = ", ".join(f"HardwareType.{member.name} ({member.value!r})" for member in HardwareType)
            raise failure(
                ValueError,
                "get_batch_size_recommendation",
                f"{safe_repr(hardware_type)} is not a hardware type",
                expected=f"one of {members}, or a chip of accelerators.accelerators()",
                fix="leave it out for this machine's",
            ) from None
        return found
    return _of_type(member)


def _hardware_of(device: Device) -> _Hardware:
    member = detect_hardware_type(device)
    derived = _of_catalogue(device.device_kind or "") if member is HardwareType.UNKNOWN else None
    return derived or _of_type(member)


@functools.cache
def _of_catalogue(chip: str) -> _Hardware | None:
    from artifex_devices import _planner

    found = _planner.derived_batch_size(chip)
    if found is None:
        return None
    name, member, least, optimal, critical, notes = found
    if member:
        return _of_type(HardwareType(member))
    return _Hardware(name, BatchSizeRecommendation(least, optimal, critical, None, notes))


def _free_bytes(device: Device, hardware: _Hardware) -> int:
    """Returns the free bytes of the device, if it is of that hardware."""
    found = _hardware_of(device)
    if found.name != hardware.name:
        raise failure(
            ValueError,
            "get_batch_size_recommendation",
            f"the free memory of a {hardware.name} is not known, {device} is a {found.name}",
            expected="free_bytes",
            fix="write free_bytes=80 * 10**9 for 80 GB",
        )
    stats = device.memory_stats()
    return max(0, int(stats["bytes_limit"]) - int(stats["bytes_in_use"]))
