# SPDX-License-Identifier: Apache-2.0
"""Pictures of meshes and shardings as text and SVG, of machines and of meshes on their network as SVG.

Functions that end in `_svg` return a str that notebooks draw: a stand-alone SVG document, to write to a file.
"""

from __future__ import annotations

from collections.abc import Sequence

from artifex_devices import _core
from artifex_devices._base.checks import check_int, check_type
from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices._base.svg import Picture
from artifex_devices._core import Machine, Mesh, Sharding

__all__ = ["machine_svg", "mesh_svg", "mesh_text", "placed_mesh_svg", "sharding_svg", "sharding_text"]
add_public_lookup(__name__)

_FIXES = {
    Machine: "give Machine.live()",
    Mesh: "make one by make_mesh((4,), ('x',))",
    Sharding: "write NamedSharding(mesh, P('x'))",
}


def machine_svg(machine: Machine, max_cells: int = 1024) -> Picture:
    """Draws a machine as a stand-alone SVG picture, coloured by CPU device; a note counts omitted parts.

    Raises:
        TypeError: `machine` is not a Machine, or `max_cells` not an int.

    Example:
        >>> from artifex_devices import Machine, render
        >>> render.machine_svg(Machine.live())[:4]
        '<svg'
    """
    _check("machine_svg", "machine", machine, Machine)
    return Picture(_core.machine_svg(machine, checked_cells("machine_svg", max_cells)))


def mesh_text(mesh: Mesh, max_cells: int = 256) -> str:
    """Draws a mesh as a plain-text table of device numbers; a note counts omitted devices.

    Raises:
        TypeError: `mesh` is not a Mesh, or `max_cells` not an int.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(2):
        ...     print(ad.render.mesh_text(ad.make_mesh((2,), ("x",))).splitlines()[0])
        Mesh('x': 2): 2 cpu devices
    """
    _check("mesh_text", "mesh", mesh, Mesh)
    return _core.mesh_text(mesh, checked_cells("mesh_text", max_cells))


def mesh_svg(mesh: Mesh, max_cells: int = 1024) -> Picture:
    """Draws a mesh as a stand-alone SVG picture; a note counts omitted devices.

    Raises:
        TypeError: `mesh` is not a Mesh, or `max_cells` not an int.

    Example:
        >>> import artifex_devices as ad
        >>> ad.render.mesh_svg(ad.make_mesh((1,), ("x",)))[:4]
        '<svg'
    """
    _check("mesh_svg", "mesh", mesh, Mesh)
    return Picture(_core.mesh_svg(mesh, checked_cells("mesh_svg", max_cells)))


def placed_mesh_svg(mesh: Mesh, max_cells: int = 2048) -> Picture:
    """Draws a mesh of a cluster's devices on its torus or nodes as a stand-alone SVG picture.

    For each axis it shows all devices: each group along the axis in one colour, with positions in the group. A note
    counts omitted devices.

    Raises:
        ValueError: The mesh's devices do not belong to a cluster.
        TypeError: `mesh` is not a Mesh, or `max_cells` not an int.

    Example:
        >>> import numpy as np
        >>> from artifex_devices import Mesh, cluster, render
        >>> pod = cluster.tpu("v5e", (4, 4))
        >>> render.placed_mesh_svg(Mesh(np.array(pod.devices()), ("x",)))[:4]
        '<svg'
    """
    _check("placed_mesh_svg", "mesh", mesh, Mesh)
    return Picture(_core.placed_mesh_svg(mesh, checked_cells("placed_mesh_svg", max_cells)))


def sharding_text(
    sharding: Sharding, shape: Sequence[int], max_columns: int = 80, min_width: int = 9, scale: float = 1.0
) -> str:
    """Draws which devices hold which part of an array of `shape`, as text.

    Raises:
        ValueError: As Sharding.shard_shape.
        TypeError: `sharding` is not a Sharding, or another argument has a wrong type.

    Example:
        >>> import artifex_devices as ad
        >>> sharding = ad.SingleDeviceSharding(ad.devices()[0])
        >>> "cpu" in ad.render.sharding_text(sharding, (4, 4)).lower()
        True
    """
    _check("sharding_text", "sharding", sharding, Sharding)
    return _core.sharding_text(sharding, shape, max_columns, min_width, scale)


def sharding_svg(sharding: Sharding, shape: Sequence[int]) -> Picture:
    """Draws which devices hold which part of an array of `shape`, as a stand-alone SVG picture.

    Raises:
        ValueError: As Sharding.shard_shape.
        TypeError: `sharding` is not a Sharding, or `shape` not a shape.

    Example:
        >>> import artifex_devices as ad
        >>> ad.render.sharding_svg(ad.SingleDeviceSharding(ad.devices()[0]), (4, 4))[:4]
        '<svg'
    """
    _check("sharding_svg", "sharding", sharding, Sharding)
    return Picture(_core.sharding_svg(sharding, shape))


def _check(operation: str, argument: str, value: object, kind: type) -> None:
    check_type(operation, argument, value, kind, f"a {kind.__name__}", _FIXES[kind])


def checked_cells(operation: str, max_cells: object) -> int:
    """Returns the argument as an int that the core takes; TypeError unless it is an int."""
    return min(max(check_int(operation, "max_cells", max_cells, "leave it out"), -1), 2**31 - 1)
