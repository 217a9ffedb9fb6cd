# SPDX-License-Identifier: Apache-2.0
"""Orders of devices for meshes on a TPU torus, on several slices and on GPU nodes."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.mesh_utils.mesh_devices import mesh_devices

Ndarray = NDArray[Any]


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Iterable[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
    search: Literal["jax", "exact"] = "jax",
    traffic: Sequence[float] | None = None,
) -> Ndarray:
    """Orders devices so that the axes of a mesh follow the links of the network, as JAX 0.10.2 does.

    On a TPU torus each axis of the mesh takes complete axes of the torus, the last axis first. This rule is greedy: for
    some shapes it finds no order although one exists, and it does not consider the traffic. `search="exact"` finds the
    assignment with the least modelled time (see `explain` for the model); it is used only on request. GPUs are sorted
    by id, other devices stay in their order.

    Args:
        mesh_shape: Size of each axis, by increasing use of the network: the last axis has the best links.
        devices: Devices to order: those of `devices()`, of a cluster, or any objects with `id`, `platform`,
            `device_kind`, `process_index` and, on TPUs, `coords` and `core_on_chip`. None means all of `devices()`.
        contiguous_submeshes: Whether the devices of a host form one block; only for a few shapes of tori.
        allow_split_physical_axes: Whether several axes of the mesh may share an axis of the torus.
        search: "jax" for JAX's greedy rule; "exact" for the best of all assignments by the model.
        traffic: Bytes gathered along each axis, in proportion, for "exact"; None means equal traffic.

    Returns:
        ndarray of device objects in the shape of the mesh, for `Mesh`.

    Raises:
        TypeError: `mesh_shape` or `devices` is not a sequence, a device has no `id`, or `traffic` has other values than
            numbers.
        ValueError: The sizes are not ints, do not multiply to the number of devices, or are below 1; there are no
            contiguous submeshes for this shape; or `search` excludes another argument.
        NotImplementedError: No assignment was found; the text names the axis where the search stopped.
        AssertionError: TPU devices do not fill a cuboid, or a chip newer than v3 has several devices.

    Example:
        >>> from artifex_devices import cluster, mesh_utils
        >>> slice_ = cluster.tpu("v4", (2, 2, 4)).devices()
        >>> [[device.id for device in row] for row in mesh_utils.create_device_mesh((4, 4), slice_)]
        [[0, 2, 1, 3], [4, 6, 5, 7], [8, 10, 9, 11], [12, 14, 13, 15]]
        >>> mesh_utils.create_device_mesh((2, 2, 4), slice_, search="exact")[0, 1, 3].coords
        (1, 0, 3)
    """
    shape = _sizes(mesh_shape)
    if len(shape) > 64:
        raise ValueError(
            f"create_device_mesh: mesh_shape has {len(shape)} axes; expected at most NumPy's 64; join some"
        )
    if search not in ("jax", "exact"):
        raise ValueError(
            f'create_device_mesh: search is {safe_repr(search)}; expected "jax" or "exact"; leave it out for "jax"'
        )
    if search == "jax" and traffic is not None:
        raise ValueError(
            'create_device_mesh: traffic is given, which JAX\'s rule does not use; expected search="exact" with it; '
            "pass search or leave traffic out"
        )
    if search == "exact" and contiguous_submeshes:
        raise ValueError(
            'create_device_mesh: contiguous_submeshes is for JAX\'s rule; expected False with search="exact"; leave '
            "one of them out"
        )
    listed = _listed("create_device_mesh", devices)
    if search == "jax":
        order = _jax_order(listed, shape, contiguous_submeshes, allow_split_physical_axes)
    else:
        _check_shape(listed, shape)
        weights = _weights(shape, traffic)
        order = mesh_devices(listed).exact_order(shape, weights, bool(allow_split_physical_axes))
    return _ordered(listed, order, shape)


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Iterable[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> Ndarray:
    """Orders devices of several slices: fast links inside a slice, the data-centre network between them.

    Args:
        mesh_shape: Size of each axis inside one slice, by increasing use of the network.
        dcn_mesh_shape: Number of slices along each axis; a shorter shape describes the last axes.
        devices: Devices as in create_device_mesh, with `slice_index`.
        process_is_granule: Whether to group devices by `process_index` instead of `slice_index`.
        should_sort_granules_by_key: Whether slices are sorted by number; otherwise they keep their order in `devices`.
        allow_split_physical_axes: As in create_device_mesh.

    Returns:
        ndarray of device objects, of shape mesh_shape * dcn_mesh_shape; along each axis slice after slice.

    Raises:
        TypeError: `dcn_mesh_shape` is not a sequence of ints.
        ValueError: `devices` is empty, a device has no `slice_index`, or the number of slices is not the product of
            `dcn_mesh_shape`; and as create_device_mesh for each slice.
        NotImplementedError: As create_device_mesh.
        AssertionError: As create_device_mesh.

    Example:
        >>> from artifex_devices import cluster, mesh_utils
        >>> slices = cluster.tpu("v4", (2, 2, 1), slices=2).devices()
        >>> mesh = mesh_utils.create_hybrid_device_mesh((2, 2), (1, 2), slices)
        >>> [[device.id for device in row] for row in mesh]
        [[0, 1, 4, 5], [2, 3, 6, 7]]
    """
    try:
        outside = tuple(operator.index(size) for size in dcn_mesh_shape)
    except TypeError:
        raise TypeError(
            f"create_hybrid_device_mesh: dcn_mesh_shape is {safe_repr(dcn_mesh_shape)}; expected a sequence of ints; "
            "write (2, 1)"
        ) from None
    listed = _listed("create_hybrid_device_mesh", devices)
    if not listed:
        raise ValueError(
            "create_hybrid_device_mesh: devices is empty; expected those of as many slices as dcn_mesh_shape has; "
            "pass devices() or those of a cluster"
        )
    key = "process_index" if process_is_granule else "slice_index"
    granules: dict[int, list[int]] = {}
    for position, device in enumerate(listed):
        if not hasattr(device, key):
            raise ValueError(f"Device {device} does not have attribute {key}. See `process_is_granule` option.")
        granules.setdefault(getattr(device, key), []).append(position)
    if len(granules) != math.prod(outside):
        raise ValueError(f"Number of slices {len(granules)} must equal the product of dcn_mesh_shape {dcn_mesh_shape}")
    inside = _sizes(mesh_shape)
    keys = sorted(granules) if should_sort_granules_by_key else list(granules)
    orders: list[Any] = []
    for positions in (granules[each] for each in keys):
        order = _jax_order([listed[at] for at in positions], inside, False, allow_split_physical_axes)
        orders.append(np.asarray(positions)[order])
    rank = max(len(inside), len(outside))
    padded = [(1,) * (rank - len(sizes)) + sizes for sizes in (inside, outside)]
    shape = tuple(here * there for here, there in zip(*padded, strict=True))
    return _ordered(listed, _core._hybrid_mesh_order(orders, inside, outside), shape)


def _listed(operation: str, devices: Iterable[Any] | None) -> list[Any]:
    try:
        return list(_core._devices() if devices is None else devices)
    except TypeError:
        raise TypeError(
            f"{operation}: devices is {safe_repr(devices)} ({type(devices).__name__}); expected a sequence of devices; "
            "pass devices() or those of a cluster"
        ) from None


def _sizes(shape: Any) -> tuple[int, ...]:
    """The sizes as ints. JAX takes everything that int() takes."""
    try:
        listed = tuple(shape)
    except TypeError:
        raise TypeError(
            f"create_device_mesh: mesh_shape is {safe_repr(shape)} ({type(shape).__name__}); expected a sequence of "
            "ints; "
            "write (2, 4)"
        ) from None
    try:
        return tuple(int(size) for size in listed)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"`mesh_shape` passed to `create_device_mesh` should be a sequence of ints. Got {shape}"
        ) from None


def _check_shape(devices: list[Any], shape: tuple[int, ...]) -> None:
    if math.prod(shape) != len(devices) or not devices:
        raise ValueError(f"Number of devices {len(devices)} must equal the product of mesh_shape {shape}")
    if any(size < 1 for size in shape):
        raise ValueError(
            f"create_device_mesh: mesh_shape has sizes below 1; expected 1 or more, got {shape}; correct mesh_shape"
        )


def _jax_order(devices: list[Any], shape: tuple[int, ...], contiguous: bool, split: bool) -> Ndarray:
    _check_shape(devices, shape)
    order: Ndarray = mesh_devices(devices).jax_order(shape, bool(contiguous), bool(split))
    return order


def _weights(shape: tuple[int, ...], traffic: Sequence[float] | None) -> list[float]:
    try:
        return [1.0] * len(shape) if traffic is None else [float(each) for each in traffic]
    except (TypeError, ValueError):
        raise TypeError(
            f"create_device_mesh: traffic is {safe_repr(traffic)}; expected one number for each axis of mesh_shape "
            f"{shape}; correct traffic"
        ) from None


def _ordered(devices: list[Any], order: Ndarray, shape: tuple[int, ...]) -> Ndarray:
    objects = np.empty(len(devices), dtype=object)
    objects[:] = devices
    return objects[order].reshape(shape)
