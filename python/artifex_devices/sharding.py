# SPDX-License-Identifier: Apache-2.0
"""Meshes, partition specs and shardings: the names of `jax.sharding`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from artifex_devices._core import (
    AbstractMesh,
    AxisType,
    Device,
    Mesh,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    _make_mesh,
)
from artifex_devices.constraints import reshard
from artifex_devices.mesh_scope import get_abstract_mesh, get_mesh, set_mesh, use_abstract_mesh

__all__ = [
    "AbstractMesh",
    "AxisType",
    "Mesh",
    "NamedSharding",
    "P",
    "PartitionSpec",
    "Sharding",
    "SingleDeviceSharding",
    "get_abstract_mesh",
    "get_mesh",
    "make_mesh",
    "reshard",
    "set_mesh",
    "use_abstract_mesh",
]

P = PartitionSpec


def make_mesh(
    axis_shapes: Sequence[int] | None = None,
    axis_names: Hashable | Sequence[Hashable] | None = None,
    axis_types: AxisType | Sequence[AxisType] | None = None,
    *,
    devices: Sequence[Device] | Any | None = None,
    mesh_shape: Sequence[int] | None = None,
) -> Mesh:
    """Makes a mesh over the first devices, in the order of the list; `mesh_utils` orders those of a torus.

    Args:
        axis_shapes: One size an axis.
        axis_names: One name an axis.
        axis_types: AxisType of each axis, or one for all; default Explicit, as in JAX (`Mesh` itself gives Auto).
        devices: Devices to take from; default all of `devices()`. The first prod(axis_shapes) are used.
        mesh_shape: The documents' older name of axis_shapes.

    Returns:
        A Mesh of shape axis_shapes.

    Raises:
        ValueError: The product of the sizes is larger than the number of devices; a name comes twice.
        TypeError: A size is no int; axis_shapes or axis_names is missing, or axis_shapes is given twice.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(8):
        ...     ad.make_mesh((2, 4), ("data", "model")).shape
        OrderedDict([('data', 2), ('model', 4)])
    """
    if mesh_shape is not None:
        if axis_shapes is not None:
            raise TypeError("make_mesh: the shape came twice; expected axis_shapes or mesh_shape, got both; drop one")
        axis_shapes = mesh_shape
    if axis_shapes is None or axis_names is None:
        raise TypeError("make_mesh: expected axis_shapes and axis_names; write make_mesh((2, 4), ('data', 'model'))")
    return _make_mesh(axis_shapes, axis_names, AxisType.Explicit if axis_types is None else axis_types, devices)
