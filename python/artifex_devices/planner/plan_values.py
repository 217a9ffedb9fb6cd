# SPDX-License-Identifier: Apache-2.0
"""What the planner answers with: plans of reshards and of collectives. Immutable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from artifex_devices._base.packed_dtypes import elements_per_byte, packed_shape
from artifex_devices._base.public_path import public
from artifex_devices._base.state_validation import checked_state
from artifex_devices._base.svg import Picture
from artifex_devices._core import Cluster, Sharding, _reshard_copies
from artifex_devices.planner.device_bytes import most_bytes, total_bytes
from artifex_devices.planner.plan_text import (
    collective_html,
    collective_text,
    json_text,
    reshard_html,
    reshard_text,
)
from artifex_devices.roofline import Provenance

__all__ = [
    "Algorithm",
    "CollectiveBound",
    "CollectivePlan",
    "Copy",
    "Estimate",
    "LowerBound",
    "PlanStep",
    "ReshardPlan",
]


@public("artifex_devices.planner")
@dataclass(frozen=True)
class Estimate:
    """Seconds by the model of docs/guide/planner.md.

    Attributes:
        latency: Seconds that do not depend on bytes.
        transfer: Seconds of bytes over what `limit` names.
        algorithm: How it is done.
        limit: What the bytes wait for: "links", "egress", "network", "host" (the link to a chip) or "nothing".
    """

    latency: float
    transfer: float
    algorithm: str
    limit: str

    @property
    def seconds(self) -> float:
        """Latency and transfer together."""
        return self.latency + self.transfer


@public("artifex_devices.planner")
@dataclass(frozen=True)
class PlanStep:
    """One step of a reshard.

    Attributes:
        move: "copies", "slice", "all_to_all", "permute" or "all_gather".
        text: What it does, in words.
        devices: How many work together.
        bytes_received: Bytes that all devices receive from others.
        busiest_bytes: Bytes that the busiest device receives.
        shard_bytes: Bytes of one shard before and afterwards.
        estimate: None where there is no cluster and no calibration to say how long it takes; `seconds` says so.
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
            RuntimeError: The plan has no cluster, or the cluster lacks a figure; the text says how to give it.
        """
        return _known(self.estimate, self.why_no_estimate).seconds


@public("artifex_devices.planner")
@dataclass(frozen=True)
class LowerBound:
    """What no way can be below.

    Attributes:
        bytes_by_device: By device id: bytes of its shard afterwards that it does not hold before.
        bytes_by_host: For each host of a cluster that has any of the devices: bytes that none of its devices holds.
        estimate_seconds: Seconds for the bytes of the worst chip and slice over all their links at once; None without
            a cluster, or where it lacks a figure.
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
    """One direct copy: device ids, (begin, end) of each dimension of the whole array, bytes."""

    source: int
    destination: int
    box: tuple[tuple[int, int], ...]
    bytes: int


def bytes_shape(
    shape: tuple[int, ...], dtype: np.dtype[Any], source: Sharding, destination: Sharding, cluster: Cluster | None
) -> tuple[tuple[int, ...], int | None]:
    """The shape that the core counts bytes of, and the dimension that it is packed along: only clusters pack."""
    if cluster is None or elements_per_byte(dtype) == 1:
        return shape, None
    return packed_shape(shape, dtype, [source.shard_shape(shape), destination.shard_shape(shape)])


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False)
class ReshardPlan:
    """How an array gets from one sharding to another, and what that costs.

    Attributes:
        shape: Of the array.
        dtype: Of the array. On a cluster formats of 2 and 4 bits are packed (an int4 is half a byte), if some dimension
            has shards of whole bytes; everywhere else each element takes the bytes that it takes in NumPy.
        source: Sharding before.
        destination: Sharding afterwards.
        cluster: What `seconds` are of; None: nothing is known of a network.
        way: "copies" (direct, as `device_put` and `reshard` do it here) or "collectives".
        steps: In order.
        bytes_by_device: By device id: bytes that it receives from others.
        bytes_by_link: Bytes that are copied, by what they go over. Of copies also those that stay on a device; of
            collectives "network" is what must cross, "same slice" the rest.
        bytes_copied: Bytes that are written: sum over `bytes_by_link`. For copies just what the execution counts.
        peak_bytes: Most that any device holds meanwhile, in all its memories together: its shard before, which stays,
            and what the steps need.
        lower_bound: What no way can be below.
        is_cheapest: Whether no other way of this kind moves fewer bytes into the busiest device.
        why_xla_is_not_known: Why `xla_gathers_everything` is not known; "" where it is.
        other: The other way, or None.
        why_no_other: Why there is no other way; "" where there is one.
        seconds_from: Where the seconds are from.
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
        """Whether XLA would gather the whole array on each device ("Involuntary full rematerialization").

        By a rule found for jax 0.10.2, not read in XLA; see docs/guide/planner.md.

        Raises:
            RuntimeError: It is not known: the ends have other devices, two kinds of memory or uneven shards, or a
                dimension goes from one number of parts to another of which neither divides the other, and the rule
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
            RuntimeError: The plan has no cluster, or the cluster lacks a figure; the text says how to give it.
        """
        return sum(step.seconds for step in self.steps)

    @property
    def copies(self) -> tuple[Copy, ...]:
        """Every direct copy, by destination; of the way with collectives those that would do it without.

        Made when asked: as many as there are.
        """
        shape, along = bytes_shape(self.shape, self.dtype, self.source, self.destination, self.cluster)
        found = [
            Copy(*each)
            for each in _reshard_copies(shape, self.dtype.itemsize, self.source, self.destination, self.cluster)
        ]
        if along is None:
            return tuple(found)
        elements = [elements_per_byte(self.dtype) if i == along else 1 for i in range(len(shape))]
        boxes = ([(begin * n, end * n) for n, (begin, end) in zip(elements, copy.box, strict=True)] for copy in found)
        return tuple(copy._replace(box=tuple(box)) for copy, box in zip(found, boxes, strict=True))

    def to_json(self) -> str:
        """The plan as JSON: all figures, with where they are from."""
        return json_text(self)

    def to_svg(self) -> Picture:
        """A stand-alone SVG picture: the array before and after, the steps, and which copies go where.

        Each pair of devices has an arrow with its bytes; where there are more than 32 pairs the arrows are those
        between hosts, else those between slices, else those into the device that receives most, and a line says which.

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
        told = checked_state(type(self), state, bytes_by_link=dict, dtype=np.dtype, **ends, **parts)
        vars(self).update(told | {"bytes_by_link": MappingProxyType(told["bytes_by_link"])})

    def __str__(self) -> str:
        """A readable table."""
        return reshard_text(self)

    def _repr_html_(self) -> str:
        return reshard_html(self)


@public("artifex_devices.planner")
@dataclass(frozen=True)
class Algorithm:
    """One algorithm of a collective.

    Attributes:
        estimate: Its seconds.
        is_bound: The seconds are a lower bound, by the bytes into the worst-placed device: no program is known to
            reach it on this network.
    """

    estimate: Estimate
    is_bound: bool

    @property
    def name(self) -> str:
        """What it is called."""
        return self.estimate.algorithm

    @property
    def seconds(self) -> float:
        """Latency and transfer together."""
        return self.estimate.seconds


@public("artifex_devices.planner")
@dataclass(frozen=True)
class CollectiveBound:
    """What no program of messages between devices can be below, with all groups at once.

    Attributes:
        bytes_by_device: Bytes into the busiest device, or out of it where those are more.
        bytes_by_chip: The same of a chip, of all its devices.
        bytes_by_slice: The same of a slice or node, over the network.
        estimate_seconds: Seconds for the bytes of the busiest chip and slice over all their links at once; None where
            the cluster lacks a figure, and `seconds` says which.
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
            RuntimeError: The cluster lacks a figure; the text says how to give it.
        """
        if self.estimate_seconds is None:
            raise RuntimeError(self.why_no_estimate)
        return self.estimate_seconds


_NO_BOUND = CollectiveBound(
    0.0, 0.0, 0.0, None, "plan_collective: the lower bound is not known; expected a cluster; give one to plan on"
)


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False)
class CollectivePlan:
    """What a collective costs on a cluster.

    Attributes:
        op: "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast" or "permute".
        nbytes: Bytes of the whole array of a group.
        axes: That the groups lie along.
        cluster: The network; None: this machine's own devices, by a calibration.
        devices: In one group.
        groups: How many were looked at; the slowest counts.
        steps: Every algorithm that the network allows, cheapest first.
        bytes_by_device: Bytes that each device receives; of a broadcast and a permute the busiest.
        peak_bytes: Input and result of one device.
        seconds_from: Where the seconds are from.
        lower_bound: What no program can be below, unless switches add up themselves.
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
        """The cheapest algorithm."""
        return self.steps[0].name

    @property
    def seconds(self) -> float:
        """Of the cheapest algorithm, by the model."""
        return self.steps[0].seconds

    def to_json(self) -> str:
        """The plan as JSON: all figures, with where they are from."""
        return json_text(self)

    def __str__(self) -> str:
        """A readable table."""
        return collective_text(self)

    def _repr_html_(self) -> str:
        return collective_html(self)


def _known(estimate: Estimate | None, why: str) -> Estimate:
    if estimate is None:
        raise RuntimeError(why)
    return estimate
