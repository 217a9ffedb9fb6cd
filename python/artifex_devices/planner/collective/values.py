# SPDX-License-Identifier: Apache-2.0
"""Parts of plans of collectives: estimates, algorithms and bounds. Immutable."""

from __future__ import annotations

from dataclasses import dataclass, field

from artifex_devices._base.public_path import public


@public("artifex_devices.planner")
@dataclass(frozen=True)
class Estimate:
    """Expected seconds by the model of docs/how_to/plan_reshards.md.

    Attributes:
        latency: Seconds that do not depend on bytes.
        transfer: Seconds of bytes over the resource that `limit` names.
        algorithm: Name of the algorithm.
        limit: Resource that the bytes wait for: "links", "egress", "network", "host" (the link to a chip) or "nothing".
    """

    latency: float
    transfer: float
    algorithm: str
    limit: str

    @property
    def seconds(self) -> float:
        """Sum of latency and transfer."""
        return self.latency + self.transfer


@public("artifex_devices.planner")
@dataclass(frozen=True)
class Algorithm:
    """One algorithm of a collective.

    Attributes:
        estimate: Estimated time.
        is_bound: Whether the seconds are a lower bound, by the bytes into the worst-placed device: no program is known
            to reach it on this network.
    """

    estimate: Estimate
    is_bound: bool

    @property
    def name(self) -> str:
        """Name of the algorithm."""
        return self.estimate.algorithm

    @property
    def seconds(self) -> float:
        """Sum of latency and transfer."""
        return self.estimate.seconds


@public("artifex_devices.planner")
@dataclass(frozen=True)
class CollectiveBound:
    """Lower bounds on the costs of any program of messages between devices, with all groups at once.

    Attributes:
        bytes_by_device: Bytes into the busiest device, or out of it if these are more.
        bytes_by_chip: The same for a chip, over all its devices.
        bytes_by_slice: The same for a slice or node, over the network.
        estimate_seconds: Seconds for the bytes of the busiest chip and slice over all their links at once, or None
            where the cluster lacks a rate; then `seconds` raises.
    """

    bytes_by_device: float
    bytes_by_chip: float
    bytes_by_slice: float
    estimate_seconds: float | None
    why_no_estimate: str = field(default="", repr=False)

    @property
    def seconds(self) -> float:
        """Seconds by the model.

        Raises:
            RuntimeError: The cluster lacks a rate; the text names it.
        """
        if self.estimate_seconds is None:
            raise RuntimeError(self.why_no_estimate)
        return self.estimate_seconds
