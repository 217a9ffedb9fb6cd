# SPDX-License-Identifier: Apache-2.0
"""Meshes, partition specs and shardings: the names of `jax.sharding`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, NoReturn, TypeAlias

from numpy.typing import NDArray

from artifex_devices._base.checks import MAX_DIMENSIONS, wrong_type
from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices._base.refused_arguments import hides_unknown, unknown_argument
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import (
    AbstractMesh,
    AxisType,
    Device,
    Mesh,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
)
from artifex_devices._core.internal import make_mesh as _make_mesh
from artifex_devices._placement.mesh_context import get_abstract_mesh, get_mesh, set_mesh, use_abstract_mesh
from artifex_devices._placement.reshard import reshard

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
    "make_single_device_sharding",
    "reshard",
    "set_mesh",
    "use_abstract_mesh",
]
add_public_lookup(__name__)

P = PartitionSpec
AxisTypeName: TypeAlias = Literal["auto", "explicit", "manual"]


@hides_unknown
def make_mesh(
    axis_shapes: Sequence[int] | Mapping[str, int] | Mapping[Hashable, int] | None = None,
    axis_names: Hashable | Sequence[Hashable] | None = None,
    axis_types: AxisType | AxisTypeName | Sequence[AxisType | AxisTypeName] | None = None,
    *,
    devices: Sequence[Device] | NDArray[Any] | None = None,
    mesh_shape: Sequence[int] | None = None,
    **_unknown: NoReturn,
) -> Mesh:
    """Creates a mesh over the first devices, in the order of the list.

    Args:
        axis_shapes: Size of each axis, or a dict of name and size: {"data": 2, "model": 4}.
        axis_names: Name of each axis; omitted with a dict.
        axis_types: AxisType of each axis, or one for all, or its name: "auto", "explicit" or "manual". Operations on
            Arrays move data along Auto axes as needed, and raise where they would move it along Explicit ones. The
            default is Explicit, as in JAX (that of `Mesh` is Auto).
        devices: Devices to take from; default all of `devices()`. The first prod(axis_shapes) are used.
        mesh_shape: Older name of axis_shapes.

    Returns:
        A Mesh of shape axis_shapes.

    Raises:
        ValueError: The product of the sizes is larger than the number of devices; a size is not an integer; a name
            comes twice.
        TypeError: axis_shapes is not a sequence or a dict; axis_shapes or axis_names is missing, or is given twice.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(8):
        ...     dict(ad.make_mesh((2, 4), ("data", "model")).shape)
        {'data': 2, 'model': 4}
        >>> with ad.simulate(8):
        ...     print(ad.make_mesh({"data": 2, "model": 4}, axis_types="auto"))
        Mesh('data': 2, 'model': 4, axis_types=(Auto, Auto))
    """
    if _unknown:
        raise unknown_argument("make_mesh", _unknown)
    if mesh_shape is not None:
        if axis_shapes is not None:
            raise TypeError("make_mesh: axis_shapes and mesh_shape are given; expected one of them; drop mesh_shape")
        axis_shapes = mesh_shape
    if isinstance(axis_shapes, Mapping):
        if axis_names is not None:
            raise TypeError(f"make_mesh: {safe_repr(axis_shapes)} has names already; leave axis_names out")
        axis_shapes, axis_names = tuple(axis_shapes.values()), tuple(axis_shapes)
    if axis_shapes is None or axis_names is None:
        raise TypeError("make_mesh: expected axis_shapes and axis_names; write ad.make_mesh((2, 4), ('data', 'model'))")
    if isinstance(axis_shapes, (list, tuple)) and isinstance(axis_names, (list, tuple)):
        _check_counts(tuple(axis_shapes), tuple(axis_names))
    for i, size in enumerate(axis_shapes if isinstance(axis_shapes, (list, tuple)) else ()):
        if not hasattr(size, "__index__"):
            fix = "write ad.make_mesh((2, 4), ('data', 'model'))"
            raise wrong_type("make_mesh", f"axis_shapes[{i}]", size, "an int", fix, ValueError)  # as in JAX
    return _make_mesh(axis_shapes, axis_names, AxisType.Explicit if axis_types is None else axis_types, devices)


def _check_counts(sizes: tuple[int, ...], names: tuple[Hashable, ...]) -> None:
    if len(sizes) == len(names) or len(sizes) > MAX_DIMENSIONS:  # the core has an error for too many sizes
        return
    named = (*names[: len(sizes)], *(f"axis{i}" for i in range(len(names), len(sizes))))
    raise ValueError(
        f"make_mesh: the number of axis_names, {len(names)}, is not the number of sizes, {len(sizes)}; write "
        f"ad.make_mesh({safe_repr(sizes)}, {safe_repr(named)})"
    )


def make_single_device_sharding(device: Device, *, memory_kind: str | None = None) -> SingleDeviceSharding:
    """Returns SingleDeviceSharding(device), the sharding of an array on one device.

    Args:
        device: A Device.
        memory_kind: None or "device", "pinned_host", "unpinned_host".

    Raises:
        TypeError: `device` is not a Device.
        ValueError: The memory kind is not known.

    Example:
        >>> import artifex_devices as ad
        >>> ad.sharding.make_single_device_sharding(ad.devices()[0]).num_devices
        1
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)
