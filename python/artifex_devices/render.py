# SPDX-License-Identifier: Apache-2.0
"""Pictures of meshes and shardings, as text and as SVG; of machines, and of meshes on their network, as SVG."""

from __future__ import annotations

import operator
from typing import Any

from artifex_devices import _core
from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Machine, Mesh, Sharding

__all__ = ["machine_svg", "mesh_svg", "mesh_text", "placed_mesh_svg", "sharding_svg", "sharding_text"]

_HOW = {
    Machine: "give Machine.live()",
    Mesh: "make one by make_mesh((4,), ('x',))",
    Sharding: "write NamedSharding(mesh, P('x'))",
}


def machine_svg(machine: Machine, max_cells: int = 1024) -> str:
    """A machine as a stand-alone SVG picture, coloured by CPU device; what does not fit is said.

    Raises:
        TypeError: `machine` is no Machine, `max_cells` no int.

    Example:
        >>> from artifex_devices import Machine, render
        >>> render.machine_svg(Machine.live())[:4]
        '<svg'
    """
    _check("machine_svg", "machine", machine, Machine)
    return _core.machine_svg(machine, checked_cells("machine_svg", max_cells))


def mesh_text(mesh: Mesh, max_cells: int = 256) -> str:
    """A mesh as a plain-text table of device numbers; what does not fit is said.

    Raises:
        TypeError: `mesh` is no Mesh, `max_cells` no int.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(2):
        ...     print(ad.render.mesh_text(ad.make_mesh((2,), ("x",))).splitlines()[0])
        Mesh('x': 2): 2 cpu devices
    """
    _check("mesh_text", "mesh", mesh, Mesh)
    return _core.mesh_text(mesh, checked_cells("mesh_text", max_cells))


def mesh_svg(mesh: Mesh, max_cells: int = 1024) -> str:
    """A mesh as a stand-alone SVG picture; what does not fit is said.

    Raises:
        TypeError: `mesh` is no Mesh, `max_cells` no int.

    Example:
        >>> import artifex_devices as ad
        >>> ad.render.mesh_svg(ad.make_mesh((1,), ("x",)))[:4]
        '<svg'
    """
    _check("mesh_svg", "mesh", mesh, Mesh)
    return _core.mesh_svg(mesh, checked_cells("mesh_svg", max_cells))


def placed_mesh_svg(mesh: Mesh, max_cells: int = 2048) -> str:
    """A mesh of a cluster's devices on its torus, or on its nodes, as a stand-alone SVG picture.

    For each axis the devices where they are: those that work together along it in one colour, with their place along
    it. What is left out is said.

    Raises:
        ValueError: The mesh's devices are no cluster's.
        TypeError: `mesh` is no Mesh, `max_cells` no int.

    Example:
        >>> import numpy as np
        >>> from artifex_devices import Mesh, cluster, render
        >>> pod = cluster.tpu("v5e", (4, 4))
        >>> render.placed_mesh_svg(Mesh(np.array(pod.devices()), ("x",)))[:4]
        '<svg'
    """
    _check("placed_mesh_svg", "mesh", mesh, Mesh)
    return _core.placed_mesh_svg(mesh, checked_cells("placed_mesh_svg", max_cells))


def sharding_text(sharding: Sharding, shape: Any, max_columns: int = 80, min_width: int = 9, scale: float = 1.0) -> str:
    """Which devices hold which part of an array of `shape`, drawn in characters.

    Raises:
        ValueError: As Sharding.shard_shape.
        TypeError: `sharding` is no Sharding, or another argument of the wrong type.

    Example:
        >>> import artifex_devices as ad
        >>> sharding = ad.SingleDeviceSharding(ad.devices()[0])
        >>> "cpu" in ad.render.sharding_text(sharding, (4, 4)).lower()
        True
    """
    _check("sharding_text", "sharding", sharding, Sharding)
    return _core.sharding_text(sharding, shape, max_columns, min_width, scale)


def sharding_svg(sharding: Sharding, shape: Any) -> str:
    """Which devices hold which part of an array of `shape`, as a stand-alone SVG picture.

    Raises:
        ValueError: As Sharding.shard_shape.
        TypeError: `sharding` is no Sharding, or `shape` no shape.

    Example:
        >>> import artifex_devices as ad
        >>> ad.render.sharding_svg(ad.SingleDeviceSharding(ad.devices()[0]), (4, 4))[:4]
        '<svg'
    """
    _check("sharding_svg", "sharding", sharding, Sharding)
    return _core.sharding_svg(sharding, shape)


def _check(operation: str, argument: str, value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(
            f"{operation}: {argument} is {shown(value)} ({type(value).__name__}); expected a {kind.__name__}; "
            f"{_HOW[kind]}"
        )


def checked_cells(operation: str, max_cells: Any) -> int:
    if isinstance(max_cells, bool) or not hasattr(max_cells, "__index__"):
        raise TypeError(
            f"{operation}: max_cells is {shown(max_cells)} ({type(max_cells).__name__}); expected an int; leave it out"
        )
    return min(max(operator.index(max_cells), -1), 2**31 - 1)  # more than that is no picture
