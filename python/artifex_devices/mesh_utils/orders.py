# SPDX-License-Identifier: Apache-2.0
"""Meshes that suit the network: which device goes where in a mesh of a TPU torus, of several slices, of GPU nodes."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._base.safe_repr import shown
from artifex_devices.mesh_utils.explanation import AxisExplanation, MeshExplanation, explain
from artifex_devices.mesh_utils.special_orders import special_order
from artifex_devices.mesh_utils.torus_places import Places, places_of, torus_of

__all__ = [
    "AxisExplanation",
    "MeshExplanation",
    "create_device_mesh",
    "create_hybrid_device_mesh",
    "explain",
]

Ndarray = NDArray[Any]

# How the torus is turned so that blocks of neighbours are in one row, as JAX has it.
_CONTIGUOUS: dict[tuple[int, ...], dict[tuple[int, ...], tuple[int, int, int]]] = {
    (2, 2, 1): {(2, 2): (0, 1, 2)},
    (2, 2, 4): {(4, 4): (0, 1, 2)},
    (4, 4, 4): {(16, 4): (0, 2, 1)},
    (4, 8, 8): {(64, 4): (0, 2, 1), (4, 64): (0, 2, 1)},
    (8, 8, 8): {(64, 8): (0, 2, 1)},
    (8, 16, 16): {(256, 8): (0, 2, 1), (8, 256): (0, 2, 1)},
}


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Iterable[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
    search: Literal["jax", "exact"] = "jax",
    traffic: Sequence[float] | None = None,
) -> Ndarray:
    """Orders devices so that the axes of a mesh lie along the links of the network, as JAX 0.10.2 does.

    On a TPU torus each axis of the mesh takes whole axes of the torus, the last axis first. This is greedy: for some
    shapes it finds nothing where there is an order, and it does not know what is sent. `search="exact"` finds the
    assignment with the least modelled time (see `explain` for the model) and is never chosen by itself. GPUs are sorted
    by id, other devices stay in their order.

    Args:
        mesh_shape: One size an axis, by increasing use of the network: the last axis has the best links.
        devices: Devices to order: those of `devices()`, of a cluster, or any objects with `id`, `platform`,
            `device_kind`, `process_index` and, on TPUs, `coords` and `core_on_chip`. None is all of `devices()`.
        contiguous_submeshes: Keep the devices of a host in one block; for a few shapes of tori only.
        allow_split_physical_axes: Let several axes of the mesh share one of the torus where whole axes do not do.
        search: "jax" for JAX's greedy rule; "exact" for the best assignment by the model, of all.
        traffic: With "exact": bytes that are gathered along each axis, in proportion; None is the same along all.

    Returns:
        ndarray of objects in the shape of the mesh, for `Mesh`.

    Raises:
        TypeError: mesh_shape or `devices` is no sequence, a device has no `id`, `traffic` has what is no number.
        ValueError: The sizes are no ints, do not multiply to the number of devices or are below 1; no contiguous
            submeshes for this shape; `search` and the other arguments do not go together.
        NotImplementedError: No assignment was found (the text says where it stopped).
        AssertionError: The devices of a TPU fill no cuboid, or a chip newer than v3 has several devices.

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
            f'create_device_mesh: search is {shown(search)}; expected "jax" or "exact"; leave it out for "jax"'
        )
    if search == "jax" and traffic is not None:
        raise ValueError(
            'create_device_mesh: traffic is given, which JAX\'s rule does not look at; expected search="exact" with '
            "it; say so or leave traffic out"
        )
    listed = _listed("create_device_mesh", devices)
    if math.prod(shape) != len(listed) or not listed:
        raise ValueError(f"Number of devices {len(listed)} must equal the product of mesh_shape {shape}")
    if any(size < 1 for size in shape):
        raise ValueError(
            f"create_device_mesh: mesh_shape has sizes below 1; expected 1 or more, got {shape}; correct them"
        )
    places = places_of(listed)
    if search == "exact":
        if contiguous_submeshes:
            raise ValueError(
                'create_device_mesh: contiguous_submeshes is for JAX\'s rule; expected False with search="exact"; '
                "leave one of them out"
            )
        order = _exact_order(places, shape, traffic, allow_split_physical_axes)
    else:
        order = _jax_order(places, shape, contiguous_submeshes, allow_split_physical_axes)
    mesh = np.empty(len(listed), dtype=object)
    mesh[:] = listed
    return mesh[order].reshape(shape)


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
        mesh_shape: Sizes inside one slice, by increasing use of the network.
        dcn_mesh_shape: How many slices lie along each axis; a shorter one is of the last axes.
        devices: As in create_device_mesh, with `slice_index`.
        process_is_granule: Group by `process_index` instead.
        should_sort_granules_by_key: Slices in order of their numbers; False: as they come in `devices`.
        allow_split_physical_axes: As in create_device_mesh.

    Returns:
        ndarray of objects, of shape mesh_shape * dcn_mesh_shape; along each axis slice after slice.

    Raises:
        TypeError: dcn_mesh_shape is no sequence of ints.
        ValueError: There are no devices, a device has no `slice_index`, or the number of slices is not the product of
            dcn_mesh_shape; and as create_device_mesh for each slice.
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
            f"create_hybrid_device_mesh: dcn_mesh_shape is {shown(dcn_mesh_shape)}; expected a sequence of ints; "
            "correct it"
        ) from None
    listed = _listed("create_hybrid_device_mesh", devices)
    if not listed:
        raise ValueError(
            "create_hybrid_device_mesh: devices is empty; expected those of as many slices as dcn_mesh_shape says; "
            "give devices() or those of a cluster"
        )
    key = "process_index" if process_is_granule else "slice_index"
    granules: dict[int, list[Any]] = {}
    for device in listed:
        if not hasattr(device, key):
            raise ValueError(f"Device {device} does not have attribute {key}. See `process_is_granule` option.")
        granules.setdefault(getattr(device, key), []).append(device)
    if len(granules) != math.prod(outside):
        raise ValueError(f"Number of slices {len(granules)} must equal the product of dcn_mesh_shape {dcn_mesh_shape}")
    inside = _sizes(mesh_shape)
    keys = sorted(granules) if should_sort_granules_by_key else list(granules)
    meshes = [
        create_device_mesh(inside, granules[each], allow_split_physical_axes=allow_split_physical_axes) for each in keys
    ]
    rank = max(len(inside), len(outside))
    inside = (1,) * (rank - len(inside)) + inside
    outside = (1,) * (rank - len(outside)) + outside
    blocks = np.empty((len(keys), *inside), dtype=object)
    for block, mesh in zip(blocks, meshes, strict=True):
        block[...] = mesh.reshape(inside)
    # (slices of each axis, then devices of each) to pairs of both, axis by axis.
    pairs = itertools.chain.from_iterable((axis, rank + axis) for axis in range(rank))
    whole = blocks.reshape(outside + inside).transpose(list(pairs))
    return whole.reshape([there * here for there, here in zip(outside, inside, strict=True)])


def _listed(operation: str, devices: Iterable[Any] | None) -> list[Any]:
    try:
        return list(_core._devices() if devices is None else devices)
    except TypeError:
        raise TypeError(
            f"{operation}: devices is {shown(devices)} ({type(devices).__name__}); expected a sequence of devices; "
            "give devices() or those of a cluster"
        ) from None


def _sizes(shape: Any) -> tuple[int, ...]:
    """The sizes as ints. JAX takes everything that int() takes."""
    try:
        listed = tuple(shape)
    except TypeError:
        raise TypeError(
            f"create_device_mesh: mesh_shape is {shown(shape)} ({type(shape).__name__}); expected a sequence of ints; "
            "write (2, 4)"
        ) from None
    try:
        return tuple(int(size) for size in listed)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"`mesh_shape` passed to `create_device_mesh` should be a sequence of ints. Got {shape}"
        ) from None


def _jax_order(places: Places, shape: tuple[int, ...], contiguous: bool, split: bool) -> Ndarray:
    order = special_order(places, shape)
    if order is not None:
        return order
    if places.platform == "gpu":
        return np.argsort(places.ids, kind="stable")
    if places.platform != "tpu":
        return np.arange(len(places.ids))
    dims, on_torus = torus_of(places)
    if contiguous:
        physical = on_torus.reshape(dims).transpose(_contiguous_turn(dims, shape))
        dims, on_torus = physical.shape, physical.ravel()
    factors, stopped = _core._assign_axes(dims, shape, False)
    if factors is None and split:
        factors, stopped = _core._assign_axes(dims, shape, True)
    if factors is None:
        assert stopped is not None
        raise _no_assignment(shape, *stopped)
    return np.asarray(on_torus[_core._torus_order(factors)])


def _contiguous_turn(dims: Sequence[int], shape: tuple[int, ...]) -> tuple[int, ...]:
    physical = tuple(dims)
    known = _CONTIGUOUS.get(physical)
    if known is None:
        raise ValueError(f"create_device_mesh cannot create contiguous submeshes for physical mesh topology {physical}")
    turn = known.get(tuple(size for size in shape if size != 1))
    if turn is None:
        raise ValueError(
            f"create_device_mesh cannot create contiguous submeshes for mesh_shape {shape} and physical mesh topology "
            f"{physical}. Available mesh_shapes: {list(known)}"
        )
    return turn


def _no_assignment(shape: tuple[int, ...], axis: int, remaining: list[int]) -> NotImplementedError:
    # JAX's text, with its two blanks.
    return NotImplementedError(
        f"Failed to find assignment for logical_axis_index {axis} of size {shape[axis]} with remaining assignable mesh "
        f"{remaining}. The size of each axis in your logical mesh must be equal to the product of some subset of the "
        "physical mesh axis sizes. E.g. logical mesh (4, 16) is compatible with physical mesh 4x4x4 since 4=4 and "
        "16=4x4. If you want to split physical axes, set  allow_split_physical_axes to True."
    )


def _exact_order(places: Places, shape: tuple[int, ...], traffic: Sequence[float] | None, split: bool) -> Ndarray:
    if places.platform != "tpu":
        raise ValueError(
            f'create_device_mesh: search="exact" is for the axes of a torus; expected TPU devices, got '
            f"{places.platform} ones; leave search out"
        )
    try:
        weights = [1.0] * len(shape) if traffic is None else [float(each) for each in traffic]
    except (TypeError, ValueError):
        raise TypeError(
            f"create_device_mesh: traffic is {shown(traffic)}; expected one number for each axis of mesh_shape "
            f"{shape}; correct it"
        ) from None
    if len(weights) != len(shape) or not all(math.isfinite(each) and each >= 0 for each in weights):
        raise ValueError(
            f"create_device_mesh: traffic is {shown(traffic)}; expected {len(shape)} finite numbers of 0 or more, one "
            f"for each axis of mesh_shape {shape}; correct it"
        )
    dims, on_torus = torus_of(places)
    torus = places.torus(dims)
    factors = _core._assign_axes_exactly(dims, torus.wraps, torus.link_bandwidth, 0.0, shape, weights, split)
    if factors is None:
        ways = "splitting its axes" if split else "whole axes"
        hint = "choose other sizes" if split else "set allow_split_physical_axes to True"
        raise NotImplementedError(
            f"create_device_mesh: there is no assignment of mesh_shape {shape} to the torus {'x'.join(map(str, dims))} "
            f"by {ways}; expected sizes that are products of its axes; {hint}"
        )
    return np.asarray(on_torus[_core._torus_order(factors)])
