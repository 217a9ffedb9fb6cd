# SPDX-License-Identifier: Apache-2.0
"""Steps, copies and lower bounds of reshards. Immutable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from artifex_devices._base.public_path import public
from artifex_devices.planner.collective import Estimate
from artifex_devices.planner.reshard.device_bytes import DeviceBytes


@public("artifex_devices.planner")
@dataclass(frozen=True)
class PlanStep:
    """One step of a reshard.

    Attributes:
        move: "copies", "slice", "all_to_all", "permute" or "all_gather".
        text: Description of the step.
        devices: Number of devices that work together.
        bytes_received: Bytes that all devices receive from others.
        busiest_bytes: Bytes that the busiest device receives.
        shard_bytes: Bytes of one shard before and after the step.
        estimate: Expected time, or None without a cluster and a calibration; `seconds` raises then.
        bound: Seconds at published rates, or None without a cluster.
    """

    move: str
    text: str
    devices: int
    bytes_received: int
    busiest_bytes: int
    shard_bytes: tuple[int, int]
    estimate: Estimate | None
    bound: float | None
    why_no_estimate: str = field(default="", repr=False)

    @property
    def seconds(self) -> float:
        """Expected seconds.

        Raises:
            RuntimeError: The plan has no cluster, or the cluster lacks a rate; the text names the missing argument.
        """
        if self.estimate is None:
            raise RuntimeError(self.why_no_estimate)
        return self.estimate.seconds


@public("artifex_devices.planner")
@dataclass(frozen=True)
class LowerBound:
    """Costs that no strategy can be below.

    Attributes:
        bytes_by_device: Bytes of its new shard that a device does not hold before, by device id.
        bytes_by_host: Bytes that none of a host's devices holds, for each host of a cluster that has any device.
        estimate_seconds: Seconds for the bytes of the worst chip and slice over all their links at once, or None
            without a cluster or where it lacks a rate.
    """

    bytes_by_device: DeviceBytes
    bytes_by_host: tuple[int, ...]
    estimate_seconds: float | None

    @property
    def busiest_bytes(self) -> int:
        """Bytes that the busiest device must receive."""
        return self.bytes_by_device.most

    @property
    def total_bytes(self) -> int:
        """Bytes that all devices together must receive."""
        return self.bytes_by_device.total


@public("artifex_devices.planner")
class Copy(NamedTuple):
    """One direct copy: device ids, (begin, end) of each dimension of the global array, bytes."""

    source: int
    destination: int
    box: tuple[tuple[int, int], ...]
    bytes: int
