# SPDX-License-Identifier: Apache-2.0
"""Plans of reshards and collectives. Immutable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from artifex_devices._base.html import NotebookText
from artifex_devices._base.packed_dtypes import elements_per_byte, packed_shape
from artifex_devices._base.public_path import public
from artifex_devices._base.state_validation import checked_state
from artifex_devices._base.svg import Picture
from artifex_devices._core import Cluster, Sharding, _reshard_copies
from artifex_devices.planner.device_bytes import most_bytes, total_bytes
from artifex_devices.planner.plan_text import (
    collective_html,
    collective_json,
    collective_text,
    reshard_html,
    reshard_json,
    reshard_text,
)
from artifex_devices.roofline import Provenance


@public("artifex_devices.planner")
@dataclass(frozen=True)
class Estimate:
    """Seconds by the model of docs/guide/planner.md.

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
class PlanStep:
    """One step of a reshard.

    Attributes:
        move: "copies", "slice", "all_to_all", "permute" or "all_gather".
        text: Description of the step.
        devices: Number of devices that work together.
        bytes_received: Bytes that all devices receive from others.
        busiest_bytes: Bytes that the busiest device receives.
        shard_bytes: Bytes of one shard before and after the step.
        estimate: Estimated time, or None without a cluster and a calibration; `seconds` raises then.
    """

    move: str
    text: str
    devices: int
    bytes_received: int
    busiest_bytes: int
    shard_bytes: tuple[int, int]
    estimate: Estimate | None
    why_no_estimate: str = field(default="", repr=False)

    @property
    def seconds(self) -> float:
        """Seconds by the model.

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
        estimate_seconds: Seconds for the bytes of the worst chip and slice over all their links at once; None without
            a cluster, or where it lacks a rate.
    """

    bytes_by_device: Mapping[int, int]
    bytes_by_host: tuple[int, ...]
    estimate_seconds: float | None

    @property
    def busiest_bytes(self) -> int:
        """Bytes that the busiest device must receive."""
        return most_bytes(self.bytes_by_device)

    @property
    def total_bytes(self) -> int:
        """Bytes that all devices together must receive."""
        return total_bytes(self.bytes_by_device)


@public("artifex_devices.planner")
class Copy(NamedTuple):
    """One direct copy: device ids, (begin, end) of each dimension of the global array, bytes."""

    source: int
    destination: int
    box: tuple[tuple[int, int], ...]
    bytes: int


def bytes_shape(
    shape: tuple[int, ...], dtype: np.dtype[Any], source: Sharding, destination: Sharding, cluster: Cluster | None
) -> tuple[tuple[int, ...], int | None]:
    """Returns the shape in bytes of an array that a cluster packs, and the packed dimension, else None."""
    if cluster is None or elements_per_byte(dtype) == 1:
        return shape, None
    return packed_shape(shape, dtype, [source.shard_shape(shape), destination.shard_shape(shape)])


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False)
class ReshardPlan(NotebookText):
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
        bytes_by_link: Bytes that are copied, by what they cross. For copies also those that stay on a device; for
            collectives "network" is what must cross the network, "same slice" the rest.
        bytes_copied: Bytes that are written: the sum over `bytes_by_link`. For copies, what the execution counts.
        peak_bytes: Maximum of the bytes that any device holds during the reshard, in all its memories together: its
            old shard, which stays, and what the steps need.
        lower_bound: Costs that no strategy can be below.
        is_cheapest: Whether no other plan of this kind moves fewer bytes into the busiest device.
        why_xla_is_not_known: Reason why `xla_gathers_everything` is not known, or "".
        other: Plan by the other strategy, or None.
        why_no_other: Reason why there is no other plan, or "".
        seconds_from: Source of the seconds.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    source: Sharding
    destination: Sharding
    cluster: Cluster | None
    way: str
    steps: tuple[PlanStep, ...]
    bytes_by_device: Mapping[int, int]
    bytes_by_link: Mapping[str, int]
    bytes_copied: int
    peak_bytes: int
    lower_bound: LowerBound
    is_cheapest: bool
    xla_answer: bool | None = field(repr=False)
    why_xla_is_not_known: str = field(repr=False)
    other: ReshardPlan | None
    why_no_other: str
    seconds_from: Provenance | None

    @property
    def xla_gathers_everything(self) -> bool:
        """Whether XLA would gather the global array on each device ("Involuntary full rematerialization").

        The rule was found by compiling with jax 0.10.2; see docs/guide/planner.md.

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
        return total_bytes(self.bytes_by_device)

    @property
    def busiest_bytes(self) -> int:
        """Bytes that the busiest device receives."""
        return most_bytes(self.bytes_by_device)

    @property
    def seconds(self) -> float:
        """Seconds by the model, one step after the other.

        Raises:
            RuntimeError: The plan has no cluster, or the cluster lacks a rate; the text names the missing argument.
        """
        return sum(step.seconds for step in self.steps)

    @property
    def copies(self) -> tuple[Copy, ...]:
        """Every direct copy, by destination; for a plan of collectives, the copies that would do the same.

        Computed at each access, in time proportional to their number.
        """
        shape, packed = bytes_shape(self.shape, self.dtype, self.source, self.destination, self.cluster)
        found = _reshard_copies(shape, self.dtype.itemsize, self.source, self.destination, self.cluster)
        copies = tuple(Copy(*each) for each in found)
        if packed is None:
            return copies
        elements = [elements_per_byte(self.dtype) if i == packed else 1 for i in range(len(shape))]
        boxes = ([(begin * n, end * n) for n, (begin, end) in zip(elements, copy.box, strict=True)] for copy in copies)
        return tuple(copy._replace(box=tuple(box)) for copy, box in zip(copies, boxes, strict=True))

    def to_json(self) -> str:
        """Returns the plan as JSON: all numbers, with their source."""
        return reshard_json(self)

    def to_svg(self) -> Picture:
        """Draws the array before and after, the steps, and which copies go where, as a stand-alone SVG picture.

        Each pair of devices has an arrow with its bytes. Where there are more than 32 pairs, the arrows are those
        between hosts, else those between slices, else those into the device that receives most; a line of text tells
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
        from artifex_devices.planner.plan_picture import reshard_svg

        return reshard_svg(self)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "bytes_by_link": dict(self.bytes_by_link)}

    def __setstate__(self, state: Any) -> None:
        ends = dict.fromkeys(("source", "destination"), Sharding)
        parts = dict.fromkeys(("shape", "steps"), tuple)
        fields = checked_state(type(self), state, bytes_by_link=dict, dtype=np.dtype, **ends, **parts)
        vars(self).update(fields | {"bytes_by_link": MappingProxyType(fields["bytes_by_link"])})

    def __str__(self) -> str:
        """Returns a readable table."""
        return reshard_text(self)

    def _repr_html_(self) -> str:
        return reshard_html(self)


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
    """Costs that no program of messages between devices can be below, with all groups at once.

    Attributes:
        bytes_by_device: Bytes into the busiest device, or out of it where those are more.
        bytes_by_chip: The same for a chip, over all its devices.
        bytes_by_slice: The same for a slice or node, over the network.
        estimate_seconds: Seconds for the bytes of the busiest chip and slice over all their links at once; None where
            the cluster lacks a rate, and `seconds` raises then.
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


_NO_BOUND = CollectiveBound(
    0.0, 0.0, 0.0, None, "plan_collective: the lower bound is not known; expected a cluster; give one to plan on"
)


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False)
class CollectivePlan(NotebookText):
    """Costs of a collective on a cluster.

    Attributes:
        op: "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast" or "permute".
        nbytes: Bytes of the global array of a group.
        axes: Axes along which the devices of a group differ.
        cluster: The network; None for this machine's own devices, by a calibration.
        devices: Number of devices in one group.
        groups: Number of groups that were priced; the slowest counts.
        steps: Every algorithm that the network allows, cheapest first.
        bytes_by_device: Bytes that each device receives; for a broadcast and a permute, the busiest.
        peak_bytes: Bytes of input and result of one device.
        seconds_from: Source of the seconds.
        lower_bound: Costs that no program can be below, unless switches do the additions.
    """

    op: str
    nbytes: int
    axes: tuple[Any, ...]
    cluster: Cluster | None
    devices: int
    groups: int
    steps: tuple[Algorithm, ...]
    bytes_by_device: float
    peak_bytes: float
    seconds_from: Provenance
    lower_bound: CollectiveBound = _NO_BOUND

    @property
    def algorithm(self) -> str:
        """Name of the cheapest algorithm."""
        return self.steps[0].name

    @property
    def seconds(self) -> float:
        """Seconds of the cheapest algorithm, by the model."""
        return self.steps[0].seconds

    def to_json(self) -> str:
        """Returns the plan as JSON: all numbers, with their source."""
        return collective_json(self)

    def __str__(self) -> str:
        """Returns a readable table."""
        return collective_text(self)

    def _repr_html_(self) -> str:
        return collective_html(self)
