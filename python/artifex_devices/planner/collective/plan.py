# SPDX-License-Identifier: Apache-2.0
"""Plans of collectives. Immutable."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict, dataclass

from artifex_devices._base.public_path import public
from artifex_devices._base.text import bytes_text, seconds_text
from artifex_devices._core import Cluster
from artifex_devices.planner.collective.text import SUMS_IN_SWITCH, link_factors, time_facts
from artifex_devices.planner.collective.values import Algorithm, CollectiveBound
from artifex_devices.planner.report import Report, Summary, picked
from artifex_devices.planner.training import Efficiency
from artifex_devices.roofline import Provenance

_NO_BOUND = CollectiveBound(
    0.0, 0.0, 0.0, None, "plan_collective: the lower bound is not known; expected a cluster; give one to plan on"
)


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False)
class CollectivePlan(Report):
    """Costs of a collective on a cluster.

    Attributes:
        op: "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast" or "permute".
        nbytes: Bytes of the global array of a group.
        axes: Axes along which the devices of a group differ.
        cluster: The network, or None for this machine's own devices, whose times come from a calibration.
        devices: Number of devices in one group.
        groups: Number of groups whose time was estimated; the slowest determines `seconds`.
        steps: Every algorithm that the network allows, cheapest first.
        bytes_by_device: Bytes that each device receives; for a broadcast and a permute, the busiest.
        peak_bytes: Bytes of input and result of one device.
        bound: Seconds of the cheapest algorithm at published rates, or None for this machine's own devices.
        efficiency: Factors of the expected seconds, or None for this machine's own devices.
        seconds_from: Source of the seconds.
        lower_bound: Lower bound on the cost of any program, unless switches do the additions.
    """

    op: str
    nbytes: float
    axes: tuple[Hashable, ...]
    cluster: Cluster | None
    devices: int
    groups: int
    steps: tuple[Algorithm, ...]
    bytes_by_device: float
    peak_bytes: float
    bound: float | None
    efficiency: Efficiency | None
    seconds_from: Provenance
    lower_bound: CollectiveBound = _NO_BOUND

    @property
    def algorithm(self) -> str:
        """Name of the cheapest algorithm."""
        return self.steps[0].name

    @property
    def seconds(self) -> float:
        """Expected seconds of the cheapest algorithm."""
        return self.steps[0].seconds

    def _summary(self) -> Summary:
        place = "this machine" if self.cluster is None else self.cluster.name
        receiver = "the busiest device" if self.op in ("broadcast", "permute") else "each device"
        facts = [
            ("axes", ", ".join(map(str, self.axes)) + (f" ({self.groups} groups)" if self.groups > 1 else "")),
            ("bytes received", f"{bytes_text(round(self.bytes_by_device))} by {receiver}"),
            ("memory", f"{bytes_text(round(self.peak_bytes))} for input and result of a device"),
            *self._time_facts(),
        ]
        rows = [
            (
                each.name + (" (bound)" if each.is_bound else ""),
                *map(seconds_text, (each.seconds, each.estimate.latency, each.estimate.transfer)),
                each.estimate.limit,
            )
            for each in self.steps
        ]
        title = f"{self.op} of {bytes_text(self.nbytes)} by {self.devices} devices of {place}"
        return Summary(title, facts, ("algorithm", "time", "latency", "transfer", "waits for"), rows)

    def _time_facts(self) -> list[tuple[str, str]]:
        if self.cluster is None or self.bound is None or self.efficiency is None:
            return [("time", f"{seconds_text(self.seconds)} ({self.seconds_from.text})")]
        names = link_factors(self.cluster, sums=any(each.name == SUMS_IN_SWITCH for each in self.steps))
        least = self.lower_bound.estimate_seconds
        return time_facts(self.seconds, self.bound, least, self.efficiency, self.seconds_from, names)

    def _content(self) -> dict[str, object]:
        bound = self.lower_bound
        return {
            "kind": "collective",
            **picked(self, "op", "nbytes"),
            "axes": [str(axis) for axis in self.axes],
            "cluster": None if self.cluster is None else self.cluster.name,
            **picked(self, "devices", "groups"),
            "algorithms": [asdict(each.estimate) | picked(each, "seconds", "is_bound") for each in self.steps],
            **picked(self, "seconds", "bound"),
            "efficiency": None if self.efficiency is None else self.efficiency._content()["factors"],
            "seconds_from": picked(self.seconds_from, "kind", "text"),
            **picked(self, "bytes_by_device", "peak_bytes"),
            "lower_bound": picked(bound, "bytes_by_device", "bytes_by_chip", "bytes_by_slice")
            | {"seconds": bound.estimate_seconds},
        }
