# SPDX-License-Identifier: Apache-2.0
"""Explanations of meshes: the links that each axis uses, and their cost compared with devices in order of id."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._base.checks import MAX_DIMENSIONS, bounded_list, failure, wrong_value
from artifex_devices._base.html import NotebookText, page, preformatted
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.svg import Picture
from artifex_devices._base.text import rate_text, seconds_text, table_lines, wrapped
from artifex_devices._core import Mesh, internal
from artifex_devices.accelerators import source_notes
from artifex_devices.mesh_utils.orders import mesh_devices, weights_of
from artifex_devices.render import checked_cells


@public("artifex_devices.mesh_utils")
@dataclass(frozen=True)
class AxisExplanation:
    """Links of one axis of a mesh.

    Attributes:
        name: Name of the axis, or its number.
        size: Number of devices along the axis.
        links: Links of the axis as text: "x: ring of 4", "z: line of 2, stride 2", "2 slices".
        slices: Number of slices (or nodes) that one group of the axis spans.
        bandwidth: Bytes/s into the worst-placed device; inf for a size of 1.
        hops: Number of links on the longest path inside a slice.
        seconds: Modelled seconds to gather the axis's traffic.
    """

    name: Hashable
    size: int
    links: str
    slices: int
    bandwidth: float
    hops: int
    seconds: float


@public("artifex_devices.unpickle")
@dataclass(frozen=True, eq=False)
class PlacedMesh:
    """The arguments of a mesh's picture.

    `table` has rows (id, slice, x, y, z, core) of shape (devices, 6), in row-major order of the mesh; without a torus x
    is the number of the device in its slice.
    """

    title: str
    axes: tuple[tuple[str, int, str], ...]  # name, size and links
    network: str
    wraps: tuple[bool, bool, bool]
    platform: str
    table: NDArray[np.int64]


@public("artifex_devices.mesh_utils")
@dataclass(frozen=True)
class MeshExplanation(NotebookText):
    """Links of the axes of a mesh, and for comparison of the same mesh with its devices in order of id.

    Attributes:
        title: The mesh and its network.
        axes: Explanation of each axis.
        seconds: Modelled seconds to gather over all axes in sequence.
        naive_axes: Explanation of each axis with the devices in order of id.
        naive_seconds: As `seconds`, with the devices in order of id.
        source: Source of the bandwidths, and which latencies are unknown and left out.
        placed: Places of the devices, for the picture.
    """

    title: str
    axes: tuple[AxisExplanation, ...]
    seconds: float
    naive_axes: tuple[AxisExplanation, ...]
    naive_seconds: float
    source: str
    placed: PlacedMesh = field(repr=False, compare=False)

    def to_svg(self, *, max_cells: int = 2048) -> Picture:
        """Draws a stand-alone SVG picture: for each axis the devices at their places, one colour for each group.

        Args:
            max_cells: Approximate largest number of devices drawn, over all axes. The picture states how many are left
                out.

        Raises:
            TypeError: `max_cells` is not an int.

        Example:
            >>> from artifex_devices import cluster, mesh_utils
            >>> mesh = mesh_utils.create_device_mesh((4, 4), cluster.tpu("v5e", (4, 4)).devices())
            >>> picture = mesh_utils.explain(mesh, axis_names=("data", "model")).to_svg()
            >>> "data: 4 groups of 4, y: line of 4" in picture, picture.count("<rect")
            (True, 32)
        """
        cells = checked_cells("MeshExplanation.to_svg", max_cells)
        of = self.placed
        places = [(row[0], row[1], (row[2], row[3], row[4]), row[5]) for row in of.table.tolist()]
        fields = (of.title, list(of.axes), of.network, list(of.wraps), of.platform, places)
        return Picture(internal.placed_mesh_svg(*fields, cells))

    def _repr_html_(self) -> str:
        title, *lines = str(self).splitlines()
        return page(title, preformatted("\n".join(lines)), self.to_svg()._repr_html_())

    def __str__(self) -> str:
        """Formats a table of the axes, the same in order of id below it, and the sources of the rates."""
        return format(self)

    def __format__(self, width: str) -> str:
        """Formats the text in lines of at most `width` characters: f"{explanation:80}"."""
        rows: list[tuple[str, ...]] = [("axis", "size", "links", "into a device", "seconds")]
        rows += [_row(axis) for axis in self.axes]
        rows.append(("", "", "all axes, one after the other", "", seconds_text(self.seconds, 3)))
        rows += [("in order of id:",), *map(_row, self.naive_axes)]
        rows.append(("", "", "in order of id", "", seconds_text(self.naive_seconds, 3)))
        source = re.sub("S[0-9]+(?: S[0-9]+)*", r"[\g<0>]", self.source)
        notes = [("rates:", source), *((f"[{code}]", text) for code, text in source_notes(source).items())]
        most = int(width or 0)
        title = wrapped(self.title, most, rest="  ") if most else [self.title]
        return "\n".join([*title, *table_lines(rows, width=most), *table_lines(notes, width=most)])


def explain(
    mesh: Mesh,
    *,
    axis_names: Sequence[Hashable] | None = None,
    traffic: float | Sequence[float] = 1 << 30,
) -> MeshExplanation:
    """Explains which links each axis of a mesh uses, compared with the devices in order of id.

    The model: an all-gather over an axis is limited by the bytes that the worst-placed device receives. On a torus a
    complete axis that wraps brings two links; an axis that does not wrap, or a part of an axis, brings one; interleaved
    groups share their links; several axes of the torus add up. Behind a switch a device has its egress; in a full mesh
    one link to each other member. Over several slices the members inside one share the bytes that cross, and the slower
    of both counts.
    Cores of one chip count as neighbours on a link. Source: "How to Scale Your Model", chapters TPUs and Sharding;
    the shared links are this model's own. Nothing is measured.

    Args:
        mesh: A Mesh, or an ndarray of devices as create_device_mesh returns.
        axis_names: Names for the axes of an ndarray; None numbers them.
        traffic: Bytes gathered over each axis (size of the full result): one number for all axes, or one for each.

    Returns:
        MeshExplanation; its text is a table.

    Raises:
        TypeError: `mesh` holds an object that is not a device, or `traffic` other values than numbers.
        ValueError: The network of the devices is not known (CPU devices outside of a cluster), a device is in the mesh
            more than once, or the number of names or bytes is not the number of axes.
        AssertionError: TPU devices of one slice do not fill a cuboid.

    Example:
        >>> from artifex_devices import cluster, mesh_utils
        >>> mesh = mesh_utils.create_device_mesh((4, 4), cluster.tpu("v4", (2, 2, 4)).devices())
        >>> [(axis.links, axis.bandwidth / 1e9) for axis in mesh_utils.explain(mesh).axes]
        [('z: line of 4', 45.0), ('x: line of 2 and y: line of 2', 90.0)]
    """
    is_mesh = isinstance(mesh, _core.Mesh)
    devices = np.asarray(mesh.devices if is_mesh else mesh, dtype=object)
    if axis_names is None:
        axis_names = mesh.axis_names if is_mesh else range(devices.ndim)
    try:
        names: tuple[Hashable, ...] = tuple(bounded_list("explain", "axis_names", axis_names, MAX_DIMENSIONS))
    except TypeError:
        expected = "a sequence with one name for each axis"
        raise failure(
            TypeError,
            "explain",
            f"axis_names is {safe_repr(axis_names)}",
            expected=expected,
            fix="write ('data', 'model')",
        ) from None
    each_axis = [traffic] * devices.ndim if isinstance(traffic, (int, float)) else traffic
    nbytes = weights_of("explain", each_axis, "a number of bytes, or one for each axis")
    if len(names) != devices.ndim or len(nbytes) != devices.ndim or devices.size == 0:
        raise failure(
            ValueError,
            "explain",
            (
                f"the mesh has {devices.ndim} axes and {devices.size} devices, {len(names)} names and {len(nbytes)} "
                "numbers of bytes"
            ),
            expected="one of each for each axis, and at least one device",
            fix="correct them",
        )
    if not all(math.isfinite(each) and each >= 0 for each in nbytes):
        raise wrong_value("explain", "traffic", traffic, "finite numbers >= 0", "correct traffic")
    found = mesh_devices(devices.ravel().tolist(), text=safe_repr)
    title, source, network, wraps, rows, rows_by_id, places = found.explain(devices.shape, nbytes)
    axes, axes_by_id = (
        tuple(AxisExplanation(name, *row) for name, row in zip(names, each, strict=True)) for each in (rows, rows_by_id)
    )
    labels = tuple((str(axis.name), axis.size, axis.links) for axis in axes)
    return MeshExplanation(
        title,
        axes,
        sum(axis.seconds for axis in axes),
        axes_by_id,
        sum(axis.seconds for axis in axes_by_id),
        source,
        PlacedMesh(title, labels, network, wraps, found.platform, places),
    )


def _row(axis: AxisExplanation) -> tuple[str, str, str, str, str]:
    rate = "" if math.isinf(axis.bandwidth) else rate_text(axis.bandwidth, "B/s")
    return str(axis.name), str(axis.size), axis.links, rate, seconds_text(axis.seconds, 3)
