# SPDX-License-Identifier: Apache-2.0
"""Explicit placement of arrays and trees, and recommended batch sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from typing import Any, overload

import numpy as np

from artifex_devices._base.checks import check_type, failure
from artifex_devices._base.leaf_types import (
    ArrayLeaf,
    ArrayLeafT,
    Container,
    K,
    Leaf,
    LeafT,
    NamedTupleT,
    PyTree,
    Record,
    T,
    Tree,
)
from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array, Device, IndivisibleError, Mesh, NamedSharding, PartitionSpec, internal
from artifex_devices._hardware.batch_size import (
    BatchSizeRecommendation,
    HardwareType,
    detect_hardware_type,
    get_batch_size_recommendation,
    validate_batch_size,
)
from artifex_devices._placement.device_put import device_put
from artifex_devices._placement.target import TargetTree, resolve_target
from artifex_devices._runtime.device_arguments import check_device, check_devices, whole_number
from artifex_devices._runtime.devices import device_count, devices
from artifex_devices.batch_placement import place_batch
from artifex_devices.prefetch import Prefetcher, prefetch_to_device
from artifex_devices.tree_util import keystr, tree_flatten, tree_flatten_with_path, tree_unflatten

__all__ = [
    "BatchSizeRecommendation",
    "DevicePlacement",
    "HardwareType",
    "distribute_batch",
    "get_batch_size_recommendation",
    "place_on_device",
]
add_public_lookup(__name__)

_SHARD = "DevicePlacement.shard_batch_dim"


class DevicePlacement:
    """Places arrays on devices, distributes batches, and recommends batch sizes.

    Example:
        >>> import numpy as np
        >>> import artifex_devices as ad
        >>> placement = ad.DevicePlacement()
        >>> placement.hardware_type
        <HardwareType.CPU: 'cpu'>
        >>> placement.place_on_device(np.ones((32, 784))).shape
        (32, 784)
    """

    def __init__(self, default_device: Device | None = None) -> None:
        """Stores the default device.

        Args:
            default_device: Device of calls that do not name a device. By default, the device of `ad.default_device` or
                `jax_default_device`, or else the first of `local_devices()`.

        Raises:
            TypeError: `default_device` is not a Device.
        """
        self.default_device = internal.default_device() if default_device is None else default_device

    @property
    def default_device(self) -> Device:
        """The device of calls that do not name a device; assigning another device detects the hardware again."""
        return self._default_device

    @default_device.setter
    def default_device(self, device: Device) -> None:
        self._default_device = check_device("DevicePlacement", "default_device", device)
        self._hardware_type = detect_hardware_type(device)

    @property
    def hardware_type(self) -> HardwareType:
        """The hardware of the default device; UNKNOWN if the table of batch sizes lacks it."""
        return self._hardware_type

    @property
    def num_devices(self) -> int:
        """Number of available devices."""
        return device_count()

    @overload
    def place_on_device(self, data: Leaf, device: TargetTree = None) -> Array: ...
    @overload
    def place_on_device(self, data: dict[K, LeafT], device: TargetTree = None) -> dict[K, Array]: ...
    @overload
    def place_on_device(self, data: NamedTupleT, device: TargetTree = None) -> NamedTupleT: ...
    @overload
    def place_on_device(self, data: Container, device: TargetTree = None) -> PyTree: ...
    @overload
    def place_on_device(self, data: T, device: TargetTree = None) -> T: ...
    def place_on_device(self, data: Tree, device: TargetTree = None) -> PyTree:
        """Places data on one device, by default the default device; see the function of the same name."""
        return _place("DevicePlacement.place_on_device", data, self._default_device if device is None else device)

    @overload
    def distribute_batch(self, data: Leaf, sharding: TargetTree) -> Array: ...
    @overload
    def distribute_batch(self, data: dict[K, LeafT], sharding: TargetTree) -> dict[K, Array]: ...
    @overload
    def distribute_batch(self, data: NamedTupleT, sharding: TargetTree) -> NamedTupleT: ...
    @overload
    def distribute_batch(self, data: Container, sharding: TargetTree) -> PyTree: ...
    @overload
    def distribute_batch(self, data: T, sharding: TargetTree) -> T: ...
    def distribute_batch(self, data: Tree, sharding: TargetTree) -> PyTree:
        """Distributes data over devices.

        Args:
            data: Tree of arrays and numbers. If the sharding has devices of several processes, an ndarray is this
                process's part of the batch.
            sharding: A target of `device_put` for all leaves, or a tree of targets that is a prefix of `data`.

        Returns:
            The tree with an Array of that sharding for each leaf.

        Raises:
            TypeError: `sharding` is of another type.
            ValueError: A leaf has fewer dimensions than the sharding names, or a dimension that is not divisible.

        Example:
            >>> import numpy as np
            >>> import artifex_devices as ad
            >>> with ad.simulate(8):
            ...     mesh = ad.Mesh(np.array(ad.devices()), ("data",))
            ...     batch = {"images": np.ones((16, 8, 8)), "labels": np.zeros(16)}
            ...     sharding = ad.NamedSharding(mesh, ad.P("data"))
            ...     placed = ad.DevicePlacement().distribute_batch(batch, sharding)
            ...     placed["images"].addressable_shards[0].data.shape
            (2, 8, 8)
        """
        return distribute_batch(data, sharding)

    @overload
    def replicate_across_devices(self, data: Leaf, devices: Iterable[Device] | None = None) -> Array: ...
    @overload
    def replicate_across_devices(
        self, data: dict[K, LeafT], devices: Iterable[Device] | None = None
    ) -> dict[K, Array]: ...
    @overload
    def replicate_across_devices(self, data: NamedTupleT, devices: Iterable[Device] | None = None) -> NamedTupleT: ...
    @overload
    def replicate_across_devices(self, data: Container, devices: Iterable[Device] | None = None) -> PyTree: ...
    @overload
    def replicate_across_devices(self, data: T, devices: Iterable[Device] | None = None) -> T: ...
    def replicate_across_devices(self, data: Tree, devices: Iterable[Device] | None = None) -> PyTree:
        """Puts a copy of all data on each device.

        Args:
            data: Tree of arrays and numbers, of any rank.
            devices: Devices to replicate to, by default all.

        Returns:
            The tree with a fully replicated Array for each leaf.

        Raises:
            TypeError: An entry of `devices` is not a Device.
            ValueError: `devices` is empty or repeats one.
        """
        targets = check_devices("DevicePlacement.replicate_across_devices", devices)
        if not targets:
            raise failure(
                ValueError,
                "DevicePlacement.replicate_across_devices",
                "devices is empty",
                expected="at least one Device",
                fix="leave it out for all devices",
            )
        return device_put(data, NamedSharding(Mesh(targets, ("replica",)), PartitionSpec()))

    @overload
    def shard_batch_dim(
        self, data: ArrayLeaf, mesh: Mesh, batch_axis: int = 0, mesh_axis: Hashable = "data"
    ) -> Array: ...
    @overload
    def shard_batch_dim(
        self, data: dict[K, ArrayLeafT], mesh: Mesh, batch_axis: int = 0, mesh_axis: Hashable = "data"
    ) -> dict[K, Array]: ...
    @overload
    def shard_batch_dim(
        self, data: list[ArrayLeafT], mesh: Mesh, batch_axis: int = 0, mesh_axis: Hashable = "data"
    ) -> list[Array]: ...
    @overload
    def shard_batch_dim(
        self, data: NamedTupleT, mesh: Mesh, batch_axis: int = 0, mesh_axis: Hashable = "data"
    ) -> NamedTupleT: ...
    @overload
    def shard_batch_dim(
        self, data: tuple[ArrayLeafT, ...], mesh: Mesh, batch_axis: int = 0, mesh_axis: Hashable = "data"
    ) -> tuple[Array, ...]: ...
    @overload
    def shard_batch_dim(
        self, data: Container, mesh: Mesh, batch_axis: int = 0, mesh_axis: Hashable = "data"
    ) -> PyTree: ...
    @overload
    def shard_batch_dim(self, data: T, mesh: Mesh, batch_axis: int = 0, mesh_axis: Hashable = "data") -> T: ...
    def shard_batch_dim(self, data: PyTree, mesh: Mesh, batch_axis: int = 0, mesh_axis: Hashable = "data") -> PyTree:
        """Shards each array of a tree along its batch dimension.

        Arrays and ndarrays are sharded; leaves without a dimension `batch_axis` are replicated. Other leaves (text,
        Python numbers) are unchanged.

        Args:
            data: Tree of arrays of shape (batch, ...). If the mesh has devices of several processes, an ndarray is this
                process's part of the batch.
            mesh: Mesh to shard over.
            batch_axis: Number of the batch dimension; negative numbers count from the last one.
            mesh_axis: Name of the mesh axis, or a tuple of names, the first one outermost.

        Returns:
            The tree with an Array, whose spec has `mesh_axis` at `batch_axis`, for each array.

        Raises:
            ValueError: The mesh does not have the axis, or does not divide a batch dimension (the text names all such
                leaves).
            IndexError: A negative `batch_axis` is before the first dimension of an array.
            TypeError: `mesh` is not a Mesh, `batch_axis` not an integer, or an array not one of numbers.

        Example:
            >>> import numpy as np
            >>> import artifex_devices as ad
            >>> with ad.simulate(8):
            ...     mesh = ad.Mesh(np.array(ad.devices()), ("data",))
            ...     batch = {"images": np.ones((16, 8, 8)), "step": 3}
            ...     placed = ad.DevicePlacement().shard_batch_dim(batch, mesh)
            ...     placed["images"].sharding.spec, placed["step"]
            (P('data', None, None), 3)
        """
        parts = _parts_of(mesh, mesh_axis)
        axis = whole_number(_SHARD, "batch_axis", batch_axis)
        leaves: list[PyTree]
        leaves, treedef = tree_flatten(data)
        arrays = [i for i, leaf in enumerate(leaves) if isinstance(leaf, (np.ndarray, Array))]

        def path_of(number: int) -> str:  # for errors only
            return keystr(tree_flatten_with_path(data)[0][arrays[number]][0])

        sources = [leaves[i] for i in arrays]
        kinds = [(each.ndim, _batch_dimension(each.shape, axis, path_of, n)) for n, each in enumerate(sources)]
        is_shared = not NamedSharding(mesh, PartitionSpec()).is_fully_addressable
        uneven = [
            f"dimension {dim} of leaf {path_of(n) or '(the root)'}, shape {each.shape}, is {each.shape[dim]}"
            for n, (each, (_, dim)) in enumerate(zip(sources, kinds, strict=True))
            if dim is not None and not is_shared and each.shape[dim] % parts
        ]
        if uneven:
            raise failure(
                IndivisibleError,
                _SHARD,
                "; ".join(uneven),
                expected=f"a multiple of {parts}, the parts of mesh axis {safe_repr(mesh_axis)}",
                fix="choose such a batch size, or pad or drop the last examples",
            )
        sharding_of = {}
        for rank, dimension in set(kinds):
            spec = () if dimension is None else [mesh_axis if i == dimension else None for i in range(rank)]
            sharding_of[rank, dimension] = NamedSharding(mesh, PartitionSpec(*spec))
        shardings = [sharding_of[kind] for kind in kinds]
        if arrays and is_shared:
            sources = place_batch(_SHARD, sources, shardings)
        elif arrays:
            sources = internal.put_leaves(sources, shardings, False, None, path_of)
        for i, array in zip(arrays, sources, strict=True):
            leaves[i] = array
        return tree_unflatten(treedef, leaves)

    @overload
    def prefetch_to_device(
        self, data_iterator: Iterable[Leaf], device: TargetTree = None, buffer_size: int = 2
    ) -> Prefetcher[Array]: ...
    @overload
    def prefetch_to_device(
        self, data_iterator: Iterable[dict[K, LeafT]], device: TargetTree = None, buffer_size: int = 2
    ) -> Prefetcher[dict[K, Array]]: ...
    @overload
    def prefetch_to_device(
        self, data_iterator: Iterable[NamedTupleT], device: TargetTree = None, buffer_size: int = 2
    ) -> Prefetcher[NamedTupleT]: ...
    @overload
    def prefetch_to_device(
        self, data_iterator: Iterable[tuple[LeafT, ...]], device: TargetTree = None, buffer_size: int = 2
    ) -> Prefetcher[tuple[Array, ...]]: ...
    @overload
    def prefetch_to_device(
        self, data_iterator: Iterable[Container], device: TargetTree = None, buffer_size: int = 2
    ) -> Prefetcher[Any]: ...
    @overload
    def prefetch_to_device(
        self, data_iterator: Iterable[T], device: TargetTree = None, buffer_size: int = 2
    ) -> Prefetcher[T]: ...
    def prefetch_to_device(
        self, data_iterator: Iterable[Any], device: TargetTree = None, buffer_size: int = 2
    ) -> Prefetcher[Any]:
        """Reads and places batches in advance, by default on the default device; see the function of the same name."""
        return prefetch_to_device(data_iterator, self._default_device if device is None else device, buffer_size)

    def get_batch_size_recommendation(
        self,
        hardware_type: HardwareType | str | None = None,
        *,
        bytes_per_example: int | None = None,
        model_state_bytes: int = 0,
        device: Device | None = None,
        free_bytes: int | None = None,
    ) -> BatchSizeRecommendation:
        """Recommends batch sizes for the default device's hardware, or for another.

        See the function of the same name; `hardware_type` and `device` default to this object's.
        """
        if not hardware_type and device is None:
            hardware_type = self._assigned_hardware()
        return get_batch_size_recommendation(
            hardware_type,
            bytes_per_example=bytes_per_example,
            model_state_bytes=model_state_bytes,
            device=self._default_device if device is None else device,
            free_bytes=free_bytes,
        )

    def validate_batch_size(self, batch_size: int, warn_suboptimal: bool = True) -> tuple[bool, str]:
        """Compares a batch size with the sizes that `get_batch_size_recommendation` returns for this hardware.

        Args:
            batch_size: Number of examples in a batch.
            warn_suboptimal: Whether the message reports that a valid size is below the critical one.

        Returns:
            (is_valid, message). Only sizes below the minimum are invalid; the message has all the numbers.

        Raises:
            TypeError: batch_size is not an integer.

        Example:
            >>> import artifex_devices as ad
            >>> ad.DevicePlacement().validate_batch_size(256)
            (True, 'Batch size 256 is optimal for cpu (minimum 1, critical 16, optimum 32)')
        """
        return validate_batch_size(batch_size, self._assigned_hardware(), warn_suboptimal, device=self._default_device)

    def _assigned_hardware(self) -> HardwareType | None:
        """Returns the hardware type that a caller assigned; None if it was detected."""
        is_detected = self._hardware_type is detect_hardware_type(self._default_device)
        return None if is_detected else self._hardware_type

    def get_device_info(self) -> Record:
        """Returns information about the devices, in types of JSON.

        Returns:
            A dict of num_devices; hardware_type (its value, as text); platforms and device_kinds, each sorted and
            without repetition; devices, a list of dicts of id, platform and device_kind (None if it is unknown).

        Example:
            >>> import artifex_devices as ad
            >>> with ad.simulate(2):
            ...     info = ad.DevicePlacement().get_device_info()
            >>> info["num_devices"], info["hardware_type"], info["devices"][1]
            (2, 'cpu', {'id': 1, 'platform': 'cpu', 'device_kind': 'cpu'})
        """
        listed = [{"id": d.id, "platform": d.platform, "device_kind": d.device_kind or None} for d in devices()]
        return {
            "num_devices": len(listed),
            "hardware_type": self._hardware_type.value,
            "platforms": sorted({str(entry["platform"]) for entry in listed}),
            "device_kinds": sorted({str(entry["device_kind"]) for entry in listed if entry["device_kind"]}),
            "devices": listed,
        }


@overload
def place_on_device(data: Leaf, device: TargetTree = None) -> Array: ...
@overload
def place_on_device(data: dict[K, LeafT], device: TargetTree = None) -> dict[K, Array]: ...
@overload
def place_on_device(data: NamedTupleT, device: TargetTree = None) -> NamedTupleT: ...
@overload
def place_on_device(data: Container, device: TargetTree = None) -> PyTree: ...
@overload
def place_on_device(data: T, device: TargetTree = None) -> T: ...
def place_on_device(data: Tree, device: TargetTree = None) -> PyTree:
    """Places data on one device.

    Args:
        data: Tree of arrays and numbers.
        device: Target device, or another target of `device_put`, by default the default device, as in
            `DevicePlacement()`.

    Returns:
        The tree with an Array on that device for each leaf. Data that is on it already is not copied.

    Raises:
        TypeError: `device` is of another type, or a leaf is not an array of numbers (the text names its path).

    Example:
        >>> import numpy as np
        >>> import artifex_devices as ad
        >>> ad.place_on_device({"x": np.arange(3)})["x"].shape
        (3,)
    """
    return _place("place_on_device", data, internal.default_device() if device is None else device)


@overload
def distribute_batch(data: Leaf, sharding: TargetTree) -> Array: ...
@overload
def distribute_batch(data: dict[K, LeafT], sharding: TargetTree) -> dict[K, Array]: ...
@overload
def distribute_batch(data: NamedTupleT, sharding: TargetTree) -> NamedTupleT: ...
@overload
def distribute_batch(data: Container, sharding: TargetTree) -> PyTree: ...
@overload
def distribute_batch(data: T, sharding: TargetTree) -> T: ...
def distribute_batch(data: Tree, sharding: TargetTree) -> PyTree:
    """Distributes data over devices; see `DevicePlacement.distribute_batch`."""
    return place_batch("distribute_batch", data, resolve_target("distribute_batch", sharding))


def _place(operation: str, data: object, target: object) -> Any:
    return device_put(data, resolve_target(operation, target))


def _parts_of(mesh: Mesh, mesh_axis: Hashable) -> int:
    """Returns the number of parts of a dimension that is sharded over the mesh axis, or tuple of axes."""
    fix = "make a mesh with DeviceMeshManager().create_data_parallel_mesh()"
    check_type(_SHARD, "mesh", mesh, Mesh, "a Mesh", fix)
    check_type(_SHARD, "mesh_axis", mesh_axis, Hashable, "an axis name or a tuple of names", "use a tuple")
    sizes = mesh.shape
    axes = mesh_axis if isinstance(mesh_axis, tuple) and mesh_axis not in sizes else (mesh_axis,)
    missing = [axis for axis in axes if axis not in sizes]
    if missing:
        raise failure(
            ValueError,
            _SHARD,
            f"the mesh has no axis {safe_repr(missing[0])}",
            expected=f"one of {', '.join(map(repr, sizes)) or '(none: it has no axes)'}",
            fix="give mesh_axis= one of them",
        )
    return math.prod(sizes[axis] for axis in axes)


def _batch_dimension(shape: tuple[int, ...], batch_axis: int, path_of: Callable[[int], str], number: int) -> int | None:
    """Returns the number of the batch dimension, or None for an array without it."""
    rank = len(shape)
    if rank == 0 or batch_axis >= rank:
        return None
    if batch_axis < -rank:
        raise failure(
            IndexError,
            _SHARD,
            f"leaf {path_of(number) or '(the root)'} of shape {shape} has no dimension {batch_axis}",
            expected=f"a batch_axis of {-rank} or above",
            fix="count it from the first",
        )
    return batch_axis % rank
