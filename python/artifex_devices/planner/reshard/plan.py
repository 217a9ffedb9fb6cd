# SPDX-License-Identifier: Apache-2.0
"""ReshardPlan: the steps and costs of a reshard."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from artifex_devices import _planner
from artifex_devices._base import html
from artifex_devices._base.public_path import public
from artifex_devices._base.state_validation import checked_state
from artifex_devices._base.svg import Picture
from artifex_devices._base.text import bytes_text, seconds_text
from artifex_devices._core import AbstractMesh, Cluster, Sharding
from artifex_devices.planner.collective import link_factors, time_facts
from artifex_devices.planner.packed_dtypes import bytes_shape, elements_per_byte
from artifex_devices.planner.report import Report, Summary, picked
from artifex_devices.planner.reshard.device_bytes import DeviceBytes
from artifex_devices.planner.reshard.text import STEP_COLUMNS, picture_lines, received_bars, row_of
from artifex_devices.planner.reshard.values import Copy, LowerBound, PlanStep
from artifex_devices.planner.training import Efficiency
from artifex_devices.roofline import Provenance


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False)
class ReshardPlan(Report):
    """Steps and costs of bringing an array from one sharding to another.

    Attributes:
        shape: Shape of the array.
        dtype: Dtype of the array. A cluster packs formats of 2 and 4 bits (an int4 is half a byte), if some dimension
            has shards of whole bytes; everywhere else each element takes as many bytes as in NumPy.
        source: Sharding before.
        destination: Sharding after.
        cluster: Cluster that `seconds` are for, or None if no network is known.
        way: "copies" (direct copies, as `device_put` and `reshard` do here) or "collectives".
        steps: Steps in order.
        bytes_by_device: Bytes that each device receives from others, by device id.
        bytes_by_link: Bytes that are copied, by what they cross. Direct copies also count bytes that stay on a device;
            for collectives, "network" counts the bytes that must cross the network and "same slice" the other bytes.
        bytes_copied: Bytes that are written: the sum over `bytes_by_link`. For copies, what the execution counts.
        peak_bytes: Maximum of the bytes that any device holds during the reshard, in all its memories together: its old
            shard, which is not freed, and the buffers of the steps.
        lower_bound: Lower bound on the cost of any strategy.
        is_cheapest: Whether no other plan of this kind moves fewer bytes into the busiest device.
        why_xla_is_not_known: Reason why `xla_gathers_everything` is not known, or "".
        other: Plan by the other strategy, or None.
        why_no_other: Reason why there is no other plan, or "".
        efficiency: Factors of the expected seconds, or None without a cluster.
        seconds_from: Source of the seconds.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    source: Sharding
    destination: Sharding
    cluster: Cluster | None
    way: str
    steps: tuple[PlanStep, ...]
    bytes_by_device: DeviceBytes
    bytes_by_link: Mapping[str, int]
    bytes_copied: int
    peak_bytes: int
    lower_bound: LowerBound
    is_cheapest: bool
    xla_answer: bool | None = field(repr=False)
    why_xla_is_not_known: str = field(repr=False)
    other: ReshardPlan | None
    why_no_other: str
    efficiency: Efficiency | None
    seconds_from: Provenance | None

    @property
    def xla_gathers_everything(self) -> bool:
        """Whether XLA would gather the global array on each device ("Involuntary full rematerialization").

        The rule was found by compiling with jax 0.10.2; see docs/how_to/plan_reshards.md.

        Raises:
            RuntimeError: It is not known: the ends have different devices, two kinds of memory or uneven shards, or a
                dimension goes from one number of parts to another, neither of which divides the other, and the rule
                finds no such gather. `why_xla_is_not_known` has the text.
        """
        if self.xla_answer is None:
            raise RuntimeError(self.why_xla_is_not_known)
        return self.xla_answer

    @property
    def bytes_received(self) -> int:
        """Bytes that all devices receive from others."""
        return self.bytes_by_device.total

    @property
    def busiest_bytes(self) -> int:
        """Bytes that the busiest device receives."""
        return self.bytes_by_device.most

    @property
    def seconds(self) -> float:
        """Expected seconds, one step after the other.

        Raises:
            RuntimeError: The plan has no cluster, or the cluster lacks a rate; the text names the missing argument.
        """
        return sum(step.seconds for step in self.steps)

    @property
    def bound(self) -> float | None:
        """Seconds at published rates, one step after the other; None without a cluster or where it lacks a rate."""
        bounds = [step.bound for step in self.steps]
        return None if self.cluster is None or None in bounds else math.fsum(filter(None, bounds))

    @property
    def copies(self) -> tuple[Copy, ...]:
        """Every direct copy, by destination; for a plan of collectives, the copies that would do the same.

        Computed at each access, in time proportional to their number.
        """
        shape, packed = bytes_shape(self.shape, self.dtype, self.source, self.destination, self.cluster)
        found = _planner.reshard_copies(shape, self.dtype.itemsize, self.source, self.destination, self.cluster)
        copies = tuple(Copy(*each) for each in found)
        if packed is None:
            return copies
        elements = [elements_per_byte(self.dtype) if i == packed else 1 for i in range(len(shape))]
        boxes = ([(begin * n, end * n) for n, (begin, end) in zip(elements, copy.box, strict=True)] for copy in copies)
        return tuple(copy._replace(box=tuple(box)) for copy, box in zip(copies, boxes, strict=True))

    def to_svg(self) -> Picture:
        """Draws the array before and after, the steps, and which copies go where, as a stand-alone SVG picture.

        Each pair of devices has an arrow with its bytes. Where there are more than 32 pairs, the plot has the
        arrows between hosts, else between slices, else into the device that receives most; a line of text states
        which.

        Raises:
            ValueError: An end is on an AbstractMesh, which has no devices to draw.

        Example:
            >>> import artifex_devices as ad
            >>> from artifex_devices.planner import plan_reshard
            >>> with ad.simulate(2):
            ...     mesh = ad.make_mesh((2,), ("x",))
            ...     rows, columns = ad.NamedSharding(mesh, ad.P("x", None)), ad.NamedSharding(mesh, ad.P(None, "x"))
            ...     picture = plan_reshard((8, 8), "float32", rows, columns).to_svg()
            >>> picture[:4], picture.count(">64 bytes<")  # an arrow each way
            ('<svg', 2)
        """
        picture = _planner.reshard_svg(
            self._summary().title,
            picture_lines(self.steps),
            bytes_shape(self.shape, self.dtype, self.source, self.destination, self.cluster)[0],
            self.dtype.itemsize,
            self.source,
            self.destination,
            self.cluster,
            self.way == "copies",
            list(self.bytes_by_link.items()),
        )
        return Picture(picture)

    def _summary(self) -> Summary:
        bound = self.lower_bound
        links = ", ".join(f"{bytes_text(count)} {name}" for name, count in self.bytes_by_link.items() if count)
        strategy, other = self.way, self.other
        if other is not None:
            time = f"{seconds_text(other.seconds)}, " if all(step.estimate for step in other.steps) else ""
            strategy += f" (the other: {other.way}, {time}{bytes_text(other.busiest_bytes)} by the busiest device)"
        facts = [("strategy", strategy)]
        if self.why_no_other:
            facts.append(("no other strategy", self.why_no_other))
        facts += [
            (
                "bytes received",
                f"{bytes_text(self.bytes_received)} by all, {bytes_text(self.busiest_bytes)} by the busiest device; at "
                f"least {bytes_text(bound.total_bytes)} and {bytes_text(bound.busiest_bytes)}",
            ),
            ("bytes copied", links or "none"),
            ("memory", f"{bytes_text(self.peak_bytes)} on a device at most"),
        ]
        if self.seconds_from is not None and all(step.estimate for step in self.steps):
            facts += self._time_facts(self.seconds_from)
        else:
            missing = next((step.why_no_estimate for step in self.steps if step.why_no_estimate), "")
            facts.append(("time", f"not known ({missing})" if missing else "0 s"))
        if self.xla_answer:
            facts.append(("XLA", "gathers the global array on each device here (involuntary full rematerialization)"))
        ends = " -> ".join(repr(getattr(end, "spec", end)) for end in (self.source, self.destination))
        title = f"reshard of {self.shape} {self.dtype.name}: {ends}, {self.destination.num_devices} devices"
        return Summary(title, facts, STEP_COLUMNS, [row_of(step) for step in self.steps])

    def _time_facts(self, source: Provenance) -> list[tuple[str, str]]:
        least = self.bound
        if self.cluster is None or self.efficiency is None or least is None:
            return [("time", f"{seconds_text(self.seconds)} ({source.text})")]
        is_host = any(step.estimate is not None and step.estimate.limit == "host" for step in self.steps)
        names = link_factors(self.cluster, host=is_host)
        return time_facts(self.seconds, least, self.lower_bound.estimate_seconds, self.efficiency, source, names)

    def _content(self) -> dict[str, object]:
        bound, source = self.lower_bound, self.seconds_from
        has_seconds = source is not None and all(step.estimate for step in self.steps)
        return {
            "kind": "reshard",
            "shape": list(self.shape),
            "dtype": self.dtype.name,
            "source": repr(self.source),
            "destination": repr(self.destination),
            "cluster": None if self.cluster is None else self.cluster.name,
            "way": self.way,
            "steps": [
                picked(step, "move", "text", "devices", "bytes_received", "busiest_bytes", "shard_bytes")
                | {name: getattr(step.estimate, name, None) for name in ("seconds", "algorithm", "limit")}
                | picked(step, "bound")
                for step in self.steps
            ],
            "seconds": self.seconds if has_seconds else None,
            "bound": self.bound,
            "efficiency": None if self.efficiency is None else self.efficiency._content()["factors"],
            "seconds_from": None if source is None else picked(source, "kind", "text"),
            "bytes_by_device": dict(self.bytes_by_device),
            "bytes_by_link": dict(self.bytes_by_link),
            **picked(self, "bytes_copied", "peak_bytes"),
            "lower_bound": {
                "bytes_by_device": dict(bound.bytes_by_device),
                "bytes_by_host": bound.bytes_by_host,
                "seconds": bound.estimate_seconds,
            },
            "is_cheapest": self.is_cheapest,
            "xla_gathers_everything": self.xla_answer,
            "why_xla_is_not_known": self.why_xla_is_not_known,
            "other": None if self.other is None else self.other._content(),
            "why_no_other": self.why_no_other,
        }

    def __str__(self) -> str:
        """Returns a readable table."""
        text = super().__str__()
        return text if self.steps else f"{text}\n  nothing to do: every device has its shard"

    def _repr_html_(self) -> str:
        if any(isinstance(getattr(end, "mesh", None), AbstractMesh) for end in (self.source, self.destination)):
            picture = html.note("no picture: an AbstractMesh has no devices to draw")
        else:
            picture = self.to_svg()._repr_html_()
        return self._summary().html(picture, *received_bars(self.bytes_by_device, self.lower_bound))

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "bytes_by_link": dict(self.bytes_by_link)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        ends = dict.fromkeys(("source", "destination"), Sharding)
        parts = dict.fromkeys(("shape", "steps"), tuple)
        fields = checked_state(type(self), state, bytes_by_link=dict, dtype=np.dtype, **ends, **parts)
        vars(self).update(fields | {"bytes_by_link": MappingProxyType(fields["bytes_by_link"])})
