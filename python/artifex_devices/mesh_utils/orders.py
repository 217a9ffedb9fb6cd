# SPDX-License-Identifier: Apache-2.0
"""Orders of devices for meshes on a TPU torus, on several slices and on GPU nodes."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from artifex_devices._base.checks import MAX_DIMENSIONS, bounded_list, failure, wrong_type, wrong_value
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.text import more_devices
from artifex_devices._core import internal

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
        devices: Devices to order: from `devices()` (by default all of them), of a cluster, or any objects with `id`,
            `platform`, `device_kind`, `process_index` and, on TPUs, `coords` and `core_on_chip`.
        contiguous_submeshes: Whether the devices of a host form one block; only for a few shapes of tori.
        allow_split_physical_axes: Whether several axes of the mesh may share an axis of the torus.
        search: "jax" for JAX's greedy rule; "exact" for the best of all assignments by the model.
        traffic: Bytes gathered along each axis, in proportion, for "exact"; by default equal traffic.

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
    if search not in ("jax", "exact"):
        raise wrong_value("create_device_mesh", "search", search, '"jax" or "exact"', 'leave it out for "jax"')
    if search == "jax" and traffic is not None:
        raise failure(
            ValueError,
            "create_device_mesh",
            "traffic is given, which JAX's rule does not use",
            expected='search="exact" with it',
            fix="pass search or leave traffic out",
        )
    if search == "exact" and contiguous_submeshes:
        raise failure(
            ValueError,
            "create_device_mesh",
            "contiguous_submeshes is for JAX's rule",
            expected='False with search="exact"',
            fix="leave one of them out",
        )
    listed = _listed("create_device_mesh", devices)
    count = math.prod(shape)
    if devices is None and count > len(listed):
        raise ValueError(f"{_WRONG_COUNT.format(len(listed), shape)}; {more_devices(count)}")
    if search == "jax":
        order = _jax_order(listed, shape, contiguous_submeshes, allow_split_physical_axes)
    else:
        _check_shape(listed, shape)
        expected = f"one number for each axis of mesh_shape {shape}"
        weights = weights_of("create_device_mesh", [1.0] * len(shape) if traffic is None else traffic, expected)
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
        sizes = bounded_list("create_hybrid_device_mesh", "dcn_mesh_shape", dcn_mesh_shape, MAX_DIMENSIONS)
        outside = tuple(map(operator.index, sizes))
    except TypeError:
        raise failure(
            TypeError,
            "create_hybrid_device_mesh",
            f"dcn_mesh_shape is {safe_repr(dcn_mesh_shape)}",
            expected="a sequence of ints",
            fix="write (2, 1)",
        ) from None
    listed = _listed("create_hybrid_device_mesh", devices)
    if not listed:
        raise failure(
            ValueError,
            "create_hybrid_device_mesh",
            "devices is empty",
            expected="devices of as many slices as dcn_mesh_shape has",
            fix="pass devices() or the devices of a cluster",
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
    return _ordered(listed, internal.hybrid_mesh_order(orders, inside, outside), shape)


def _listed(operation: str, devices: Iterable[Any] | None) -> list[Any]:
    try:
        return internal.devices() if devices is None else bounded_list(operation, "devices", devices)
    except TypeError:
        fix = "pass devices() or the devices of a cluster"
        raise wrong_type(operation, "devices", devices, "a sequence of devices", fix) from None


def _sizes(shape: Any) -> tuple[int, ...]:
    """Converts the sizes to ints. JAX takes everything that int() takes."""
    try:
        listed = tuple(itertools.islice(shape, MAX_DIMENSIONS + 1))  # an iterator may have no end
    except TypeError:
        raise wrong_type("create_device_mesh", "mesh_shape", shape, "a sequence of ints", "write (2, 4)") from None
    if len(listed) > MAX_DIMENSIONS:
        count = len(shape) if isinstance(shape, Sized) else f"more than {MAX_DIMENSIONS}"
        raise ValueError(f"create_device_mesh: mesh_shape has {count} axes; expected at most NumPy's 64; join some")
    try:
        return tuple(int(size) for size in listed)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"`mesh_shape` passed to `create_device_mesh` should be a sequence of ints. Got {shape}"
        ) from None


_WRONG_COUNT = "Number of devices {} must equal the product of mesh_shape {}"  # JAX's text


def _check_shape(devices: list[Any], shape: tuple[int, ...]) -> None:
    if math.prod(shape) != len(devices) or not devices:
        raise ValueError(_WRONG_COUNT.format(len(devices), shape))
    if any(size < 1 for size in shape):
        raise failure(
            ValueError,
            "create_device_mesh",
            "mesh_shape has sizes below 1",
            expected="1 or more",
            got=shape,
            fix="correct mesh_shape",
        )


def weights_of(operation: str, traffic: Any, expected: str) -> list[float]:
    """Returns the numbers of bytes as floats."""
    try:
        return [float(each) for each in traffic]
    except (TypeError, ValueError):
        raise TypeError(f"{operation}: traffic is {safe_repr(traffic)}; expected {expected}; correct traffic") from None


def _jax_order(devices: list[Any], shape: tuple[int, ...], contiguous: bool, split: bool) -> Ndarray:
    _check_shape(devices, shape)
    order: Ndarray = mesh_devices(devices).jax_order(shape, bool(contiguous), bool(split))
    return order


def _ordered(devices: list[Any], order: Ndarray, shape: tuple[int, ...]) -> Ndarray:
    objects = np.empty(len(devices), dtype=object)
    objects[:] = devices
    return objects[order].reshape(shape)


def mesh_devices(devices: Sequence[Any], text: Callable[[Any], str] = str) -> internal.MeshDevices:
    """Reads platform, kind and places of at least one device; `text` describes a device in error messages."""
    last = devices[-1]
    hint = "expected objects with id, platform and device_kind; pass devices() or the devices of a cluster"
    if not hasattr(last, "platform") or not hasattr(last, "device_kind"):
        raise TypeError(f"mesh_utils: {safe_repr(last)} ({type(last).__name__}) is not a device; {hint}")
    listed = list(devices)
    found = internal.MeshDevices.of_cluster(listed, text)
    if found is not None:
        return found
    for device in listed:
        if not hasattr(device, "id"):
            raise TypeError(f"mesh_utils: {safe_repr(device)} ({type(device).__name__}) has no id; {hint}")
    without_coords = next((i for i, device in enumerate(listed) if not hasattr(device, "coords")), -1)
    rows = [
        (
            device.id,
            *((0, 0, 0) if without_coords >= 0 else (*device.coords, 0, 0)[:3]),
            getattr(device, "core_on_chip", 0) or 0,
            getattr(device, "slice_index", 0) or 0,
        )
        for device in listed
    ]
    return internal.MeshDevices(listed, text, last.platform, last.device_kind, rows, without_coords)
