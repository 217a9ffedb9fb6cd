# SPDX-License-Identifier: Apache-2.0
"""Why a mesh lies as it lies: what each of its axes has of the network, and what that costs against the naive order."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import shown
from artifex_devices._base.svg import Picture
from artifex_devices.mesh_utils.picture import PlacedMesh, placed_mesh
from artifex_devices.mesh_utils.torus_places import Places, places_of, torus_of
from artifex_devices.render import checked_cells

__all__ = ["AxisExplanation", "MeshExplanation", "explain"]

Ndarray = NDArray[Any]

_LETTERS = ("x", "y", "z", "core")


@public("artifex_devices.mesh_utils")
@dataclass(frozen=True)
class AxisExplanation:
    """What one axis of a mesh has of the network.

    Attributes:
        name: Of the axis, or its number.
        size: Devices along it.
        lies_on: What it lies on, in words: "x: ring of 4", "z: line of 2, stride 2", "2 slices over the network".
        slices: Slices (or nodes) that one group of it spans.
        bandwidth: Bytes/s that come into the device that is placed worst; inf for a size of 1.
        hops: Links on its longest way inside a slice.
        seconds: To gather the bytes of `explain` over it.
    """

    name: Hashable
    size: int
    lies_on: str
    slices: int
    bandwidth: float
    hops: int
    seconds: float


@public("artifex_devices.mesh_utils")
@dataclass(frozen=True)
class MeshExplanation:
    """What the axes of a mesh have of the network, and what the devices in order of id would have.

    Attributes:
        title: The mesh and what it lies on.
        axes: Of the mesh.
        seconds: To gather over all axes, one after the other.
        naive_axes: Of the same mesh over the devices in order of id.
        naive_seconds: As `seconds`.
        source: Of the bandwidths; and which latencies are not known, and so left out of the seconds.
        placed: The places of the devices, for the picture.
    """

    title: str
    axes: tuple[AxisExplanation, ...]
    seconds: float
    naive_axes: tuple[AxisExplanation, ...]
    naive_seconds: float
    source: str
    placed: PlacedMesh = field(repr=False, compare=False)

    def to_svg(self, *, max_cells: int = 2048) -> Picture:
        """A stand-alone SVG picture: for each axis the devices where they are, those that work together in one colour.

        Args:
            max_cells: Devices that are drawn at most, about, over all axes; what is left out is said.

        Raises:
            TypeError: `max_cells` is no int.

        Example:
            >>> from artifex_devices import cluster, mesh_utils
            >>> mesh = mesh_utils.create_device_mesh((4, 4), cluster.tpu("v5e", (4, 4)).devices())
            >>> picture = mesh_utils.explain(mesh, axis_names=("data", "model")).to_svg()
            >>> "data: 4 groups of 4, y: line of 4" in picture, picture.count("<rect")
            (True, 32)
        """
        return self.placed.to_svg(checked_cells("MeshExplanation.to_svg", max_cells))

    def _repr_html_(self) -> str:
        from artifex_devices._array.html import explanation_html

        return explanation_html(self)

    def __str__(self) -> str:
        """A table of the axes, the naive order below it, and where the rates are from."""
        rows = [("axis", "size", "lies on", "into a device", "seconds")]
        rows += [_row(axis) for axis in self.axes]
        rows.append(("", "", "all axes, one after the other", "", f"{self.seconds:.3g}"))
        rows += [_row(axis) for axis in self.naive_axes]
        rows.append(("", "", "in order of id", "", f"{self.naive_seconds:.3g}"))
        widths = [max(len(row[column]) for row in rows) for column in range(5)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        middle = len(self.axes) + 2
        return "\n".join([self.title, *lines[:middle], "in order of id:", *lines[middle:], f"rates: {self.source}"])


def explain(
    mesh: Any,
    *,
    axis_names: Sequence[Hashable] | None = None,
    traffic: float | Sequence[float] = 1 << 30,
) -> MeshExplanation:
    """Says what each axis of a mesh has of the network, and what the devices in order of id would have.

    The model: an all-gather over an axis is bound by what comes into the device that is placed worst. On a torus a
    whole axis that wraps brings two links, one that does not wrap, or a part of one, brings one; groups that lie
    between each other share their links; several axes of the torus add up. Behind a switch a device has its egress;
    in a full mesh one link to each other member. Over several slices the members inside one share the bytes that
    cross, and the slower of both counts. Cores of one chip count as neighbours on a link. Source: "How to Scale Your
    Model", chapters TPUs and Sharding; the shared links are the model's. It is a model: nothing is measured.

    Args:
        mesh: A Mesh, or an ndarray of devices as create_device_mesh makes it.
        axis_names: Names for the axes of an ndarray; None numbers them.
        traffic: Bytes that are gathered over each axis (the whole result); one number for all or one an axis.

    Returns:
        MeshExplanation; its text is a table.

    Raises:
        TypeError: `mesh` holds what is no device, or `traffic` what is no number.
        ValueError: The network of the devices is not known (CPU devices that are no cluster's), a device is there more
            than once, or the number of names or bytes is not that of the axes.
        AssertionError: TPU devices of one slice fill no cuboid.

    Example:
        >>> from artifex_devices import cluster, mesh_utils
        >>> mesh = mesh_utils.create_device_mesh((4, 4), cluster.tpu("v4", (2, 2, 4)).devices())
        >>> [(axis.lies_on, axis.bandwidth / 1e9) for axis in mesh_utils.explain(mesh).axes]
        [('z: line of 4', 45.0), ('x: line of 2 and y: line of 2', 90.0)]
    """
    devices = np.asarray(mesh.devices if isinstance(mesh, _core.Mesh) else mesh, dtype=object)
    if axis_names is None:
        names: tuple[Hashable, ...] = mesh.axis_names if isinstance(mesh, _core.Mesh) else tuple(range(devices.ndim))
    else:
        try:
            names = tuple(axis_names)
        except TypeError:
            raise TypeError(
                f"explain: axis_names is {shown(axis_names)}; expected a sequence of names, one an axis; correct it"
            ) from None
    try:
        each_axis = [traffic] * devices.ndim if isinstance(traffic, (int, float)) else traffic
        gathered = [float(each) for each in each_axis]
    except (TypeError, ValueError):
        raise TypeError(
            f"explain: traffic is {shown(traffic)}; expected a number of bytes, or one an axis; correct it"
        ) from None
    if len(names) != devices.ndim or len(gathered) != devices.ndim or devices.size == 0:
        raise ValueError(
            f"explain: the mesh has {devices.ndim} axes and {devices.size} devices, {len(names)} names and "
            f"{len(gathered)} numbers of bytes; expected one of each an axis, and a device at least; correct them"
        )
    if not all(math.isfinite(each) and each >= 0 for each in gathered):
        raise ValueError(f"explain: traffic is {shown(traffic)}; expected finite numbers of 0 or more; correct it")
    places = places_of(list(devices.ravel()))
    _check_once(places)
    network = _network_of(places)
    by_id = np.argsort(places.ids, kind="stable")
    axes, naive_axes = (
        _axes_of(network, devices.shape, order, names, gathered) for order in (np.arange(devices.size), by_id)
    )
    title = f"{'x'.join(map(str, devices.shape)) or 'one device'} on {network.text}"
    words = tuple((str(axis.name), axis.size, axis.lies_on) for axis in axes)
    return MeshExplanation(
        title,
        axes,
        sum(axis.seconds for axis in axes),
        naive_axes,
        sum(axis.seconds for axis in naive_axes),
        network.source,
        placed_mesh(title, words, network.kind, network.wraps, places),
    )


def _check_once(places: Places) -> None:
    _, first, counts = np.unique(
        np.column_stack([places.slices, places.ids]), axis=0, return_index=True, return_counts=True
    )
    twice = first[counts > 1]
    if twice.size:
        raise ValueError(
            f"explain: {shown(places.devices[twice[0]])} is in the mesh {counts[counts > 1][0]} times; expected each "
            "device once; leave the others out"
        )


@dataclass(frozen=True, eq=False)
class _Network:
    """What joins the devices inside slices and between them."""

    text: str
    source: str
    kind: str
    place: Ndarray  # of each device in (slices, *dims), row-major
    slice_of: Ndarray  # of each device: 0, 1, ...
    slices: int
    dims: tuple[int, ...]  # of a torus
    wraps: list[bool]
    inside: float  # bytes/s of a link, or out of a device behind a switch
    latency: float
    between: float | None
    between_latency: float


def _network_of(places: Places) -> _Network:
    numbers, slice_of = np.unique(places.slices, return_inverse=True)
    slices = len(numbers)
    parts = {} if places.cluster is None else places.cluster.parts
    outside = (_value(parts, "network_bandwidth"), _value(parts, "network_latency") or 0.0)
    many = "" if slices == 1 else f"{slices} {'slices' if places.platform == 'tpu' else 'nodes'} of "
    if places.platform == "tpu":
        dims: tuple[int, ...] = ()
        place = np.empty(len(slice_of), dtype=np.int64)
        for number in range(slices):
            members = np.flatnonzero(slice_of == number)
            here, on_torus = torus_of(places.take(members))
            if number and here != dims:
                raise ValueError(
                    f"explain: slices are of {dims} and {here}; expected slices of one shape; explain them one by one"
                )
            dims = here
            place[members[on_torus]] = number * len(members) + np.arange(len(members))
        torus = places.torus(dims)
        if not torus.source:
            raise _not_known(places)
        axes = ", ".join(letter for letter, wraps in zip(_LETTERS, torus.wraps, strict=False) if wraps)
        wrap = f"wraps on {axes}" if axes else "no wraparound"
        text = f"{many}{places.device_kind} {'x'.join(map(str, dims))} (torus, {wrap})"
        links = (dims, torus.wraps, torus.link_bandwidth, torus.hop_latency)
        source = torus.source + _beside(parts, slices)
        return _Network(text, source, "torus", place, slice_of, slices, *links, *outside)
    if not parts or parts["bandwidth"] is None:
        raise _not_known(places)
    rate, source = parts["bandwidth"]
    text = f"{many}{places.device_kind} ({parts['network']})"
    links = ((), [], rate, _value(parts, "latency") or 0.0)
    source += _beside(parts, slices)
    return _Network(text, source, parts["network"], np.empty(0), slice_of, slices, *links, *outside)


def _beside(parts: dict[str, Any], slices: int) -> str:
    """Where the rate between slices is from, and which latencies a cluster does not say."""
    network = parts.get("network_bandwidth") if slices > 1 else None
    told = f"; between slices {network[1]}" if network is not None else ""
    keys = {"latency": "a step inside", "network_latency": "a step between slices"}
    unknown = [
        words for key, words in keys.items() if parts and parts[key] is None and (slices > 1 or key == "latency")
    ]
    return told + (f"; left out, as not known: {', '.join(unknown)}" if unknown else "")


def _value(parts: dict[str, Any], key: str) -> float | None:
    figure = parts.get(key)
    return None if figure is None else float(figure[0])


def _not_known(places: Places) -> ValueError:
    return ValueError(
        f"explain: the network of {places.device_kind} devices is not known; expected devices of a cluster that has "
        "its bandwidths; see artifex_devices.cluster"
    )


def _axes_of(
    network: _Network, shape: tuple[int, ...], order: Ndarray, names: Sequence[Hashable], traffic: Sequence[float]
) -> tuple[AxisExplanation, ...]:
    slice_of = network.slice_of[order].reshape(shape)
    spans = [_span(slice_of, axis) for axis in range(len(shape))]
    rates: list[dict[str, Any]] = [{} for _ in shape]
    if network.kind == "torus":
        place = network.place[order]
        dims, wraps = network.dims, network.wraps
        members = [here for _, here in spans]
        if math.prod(members) * network.slices == len(place):
            # Slices lie beside each other: any of them tells of all.
            per_slice = len(place) // network.slices
            place, shape = place[slice_of.ravel() == 0] % per_slice, tuple(members)
        else:
            dims, wraps = (network.slices, *dims), [False, *wraps]
        links = (network.inside, network.latency)
        rates, _ = _core._torus_rates(dims, wraps, *links, shape, place.tolist(), [0.0] * len(shape))
        for rate in rates if len(dims) > len(network.dims) else ():
            rate["parts"] = [{**part, "axis": part["axis"] - 1} for part in rate["parts"] if part["axis"] > 0]
    return tuple(
        _axis_of(network, name, size, *span, rate, bytes_)
        for name, size, span, rate, bytes_ in zip(names, slice_of.shape, spans, rates, traffic, strict=True)
    )


def _span(slice_of: Ndarray, axis: int) -> tuple[int, int]:
    """Of one axis: the slices that one group spans, and its members in one of them, at most."""
    groups = np.moveaxis(slice_of, axis, -1).reshape(-1, slice_of.shape[axis])
    counts = [np.unique(group, return_counts=True)[1] for group in np.unique(np.sort(groups, axis=1), axis=0)]
    return max(len(each) for each in counts), max(int(each.max()) for each in counts)


def _axis_of(
    network: _Network, name: Hashable, size: int, across: int, members: int, rate: dict[str, Any], traffic: float
) -> AxisExplanation:
    if size == 1:
        return AxisExplanation(name, 1, "one device", 1, math.inf, 0, 0.0)
    inside, hops, words = _inside(network, rate, members)
    seconds = 0.0 if members == 1 else traffic * (size - 1) / size / inside + hops * network.latency
    if across > 1:
        if network.between is None:
            raise ValueError(
                "explain: the bandwidth between slices is not known; expected devices of a cluster that has "
                "network_bandwidth; see artifex_devices.cluster"
            )
        crossing = (across - 1) / across / members / network.between
        seconds = max(seconds, traffic * crossing + (across - 1) * network.between_latency)
        words = f"{words} and {across} slices" if words else f"{across} slices"
        inside = min(inside, (size - 1) / size / crossing)
    return AxisExplanation(name, size, words, across, inside, hops, seconds)


def _inside(network: _Network, rate: dict[str, Any], members: int) -> tuple[float, int, str]:
    """Bytes/s into a device inside its slice, links of the longest way there, and words for it."""
    if members == 1:
        return math.inf, 0, ""
    if network.kind == "switch":
        return network.inside, 1, f"switch, {members} devices"
    if network.kind == "full mesh":
        return network.inside * (members - 1), 1, f"links of {members} devices to each other"
    if not rate["parts"]:
        return rate["bandwidth"], rate["hops"], f"a ring that shares its links {rate['link_load']:g} ways"
    words = [
        f"{_LETTERS[part['axis']]}: {'ring' if part['is_ring'] else 'line'} of {part['count']}"
        + (f", stride {part['stride']}" if part["stride"] > 1 else "")
        for part in rate["parts"]
    ]
    hops = sum(
        part["stride"] * (part["count"] // 2 if part["is_ring"] else part["count"] - 1) for part in rate["parts"]
    )
    return sum(part["bandwidth"] for part in rate["parts"]), hops, " and ".join(words)


def _row(axis: AxisExplanation) -> tuple[str, str, str, str, str]:
    rate = "" if math.isinf(axis.bandwidth) else f"{axis.bandwidth / 1e9:.4g} GB/s"
    return str(axis.name), str(axis.size), axis.lies_on, rate, f"{axis.seconds:.3g}"
