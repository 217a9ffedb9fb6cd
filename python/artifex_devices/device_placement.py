# SPDX-License-Identifier: Apache-2.0
"""Explicit placement of arrays and trees, and batch sizes that suit the hardware."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from artifex_devices import _core
from artifex_devices._base.safe_repr import shown
from artifex_devices._core import (
    Array,
    Device,
    IndivisibleError,
    Mesh,
    NamedSharding,
    PartitionSpec,
    Sharding,
)
from artifex_devices._hardware.batch_size import (
    BatchSizeRecommendation,
    HardwareType,
    detect_hardware_type,
    get_batch_size_recommendation,
    validate_batch_size,
)
from artifex_devices._placement.device_put import device_put
from artifex_devices._runtime.device_arguments import check_device, check_devices, check_target, whole_number
from artifex_devices._runtime.devices import device_count, devices, local_devices
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


class DevicePlacement:
    """Places arrays on devices, distributes batches, and knows batch sizes.

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
        """Takes the default device.

        Args:
            default_device: Device to use where none is named; None is the first of `local_devices()`.

        Raises:
            TypeError: If it is not a Device.
        """
        self.default_device = local_devices()[0] if default_device is None else default_device

    @property
    def default_device(self) -> Device:
        """The device to use where none is named; assigning another one detects the hardware anew."""
        return self._default_device

    @default_device.setter
    def default_device(self, device: Device) -> None:
        self._default_device = check_device("DevicePlacement", "default_device", device)
        self._hardware_type = detect_hardware_type(device)

    @property
    def hardware_type(self) -> HardwareType:
        """The hardware of the default device; UNKNOWN where the table of batch sizes does not have it."""
        return self._hardware_type

    @property
    def num_devices(self) -> int:
        """Number of available devices, whatever the default device is."""
        return device_count()

    def place_on_device(self, data: Any, device: Device | Sharding | None = None) -> Any:
        """Places data on one device.

        Args:
            data: Tree of arrays and numbers.
            device: Target device, or a Sharding; None is the default device.

        Returns:
            The tree with an Array on that device for each leaf. Data that is there already is not copied.

        Raises:
            TypeError: If `device` is neither, or a leaf is no array of numbers (the text names its path).
        """
        return _place("DevicePlacement.place_on_device", data, self._default_device if device is None else device)

    def distribute_batch(self, data: Any, sharding: Any) -> Any:
        """Distributes data over devices.

        Args:
            data: Tree of arrays and numbers. Where the sharding has devices of several processes, ndarrays are each
                process's own part of the batch.
            sharding: A Sharding (or a Device) for all leaves, or a tree of them that is a prefix of `data`.

        Returns:
            The tree with an Array that has that sharding for each leaf.

        Raises:
            TypeError: If `sharding` is of another type.
            ValueError: If a leaf has fewer dimensions than the sharding names, or one that is not divisible.

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

    def replicate_across_devices(self, data: Any, devices: Iterable[Device] | None = None) -> Any:
        """Puts a copy of all data on each device.

        Args:
            data: Tree of arrays and numbers, of any rank.
            devices: Devices to replicate to; None is all of them.

        Returns:
            The tree with a fully replicated Array for each leaf.

        Raises:
            TypeError: If one of `devices` is no Device.
            ValueError: If there are none, or one comes twice.
        """
        targets = check_devices("DevicePlacement.replicate_across_devices", devices)
        if not targets:
            raise ValueError(
                "DevicePlacement.replicate_across_devices: devices is empty; expected at least one Device; "
                "leave it out for all devices"
            )
        return device_put(data, NamedSharding(Mesh(targets, ("replica",)), PartitionSpec()))

    def shard_batch_dim(self, data: Any, mesh: Mesh, batch_axis: int = 0, mesh_axis: Hashable = "data") -> Any:
        """Cuts each array of a tree along its batch dimension.

        Arrays and ndarrays are cut; those of rank 0, and those that have no dimension `batch_axis`, are
        replicated. Other leaves (text, Python numbers) come back as they are.

        Args:
            data: Tree of arrays of shape (batch, ...). Where the mesh has devices of several processes, ndarrays are
                each process's own part of the batch.
            mesh: Mesh to cut over.
            batch_axis: Number of the batch dimension; negative numbers count from the last one.
            mesh_axis: Name of the mesh axis; or a tuple of names, the first one outermost.

        Returns:
            The tree with an Array, whose spec names `mesh_axis` at `batch_axis`, for each array.

        Raises:
            ValueError: If the mesh has no such axis, or a batch dimension is not divisible by it (all such
                leaves are named).
            IndexError: If a negative `batch_axis` lies before the first dimension of an array.
            TypeError: If `mesh` is no Mesh, `batch_axis` no integer, or an array is not one of numbers.

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
        axis = whole_number("DevicePlacement.shard_batch_dim", "batch_axis", batch_axis)
        leaves, treedef = tree_flatten(data)
        arrays = [i for i, leaf in enumerate(leaves) if isinstance(leaf, (np.ndarray, Array))]

        def path_of(number: int) -> str:  # asked for only where something is wrong
            return keystr(tree_flatten_with_path(data)[0][arrays[number]][0])

        shapes = [leaves[i].shape for i in arrays]
        axes = [_batch_dimension(shape, axis, path_of, number) for number, shape in enumerate(shapes)]
        is_shared = not NamedSharding(mesh, PartitionSpec()).is_fully_addressable
        if not is_shared:
            _check_divisible(shapes, axes, path_of, mesh_axis, parts)
        kinds = {  # one sharding for all arrays of one rank
            (len(shape), cut): NamedSharding(mesh, _spec(len(shape), cut, mesh_axis))
            for shape, cut in zip(shapes, axes, strict=True)
        }
        shardings = [kinds[len(shape), cut] for shape, cut in zip(shapes, axes, strict=True)]
        cut_leaves = [leaves[i] for i in arrays]
        if is_shared:
            placed = place_batch("DevicePlacement.shard_batch_dim", cut_leaves, shardings) if arrays else []
        else:
            placed = _core._put_leaves(cut_leaves, shardings, False, None, path_of) if arrays else []
        for i, array in zip(arrays, placed, strict=True):
            leaves[i] = array
        return tree_unflatten(treedef, leaves)

    def prefetch_to_device(self, data_iterator: Iterable[Any], device: Any = None, buffer_size: int = 2) -> Prefetcher:
        """Reads batches ahead and places them while the consumer works; see `artifex_devices.prefetch`.

        Args:
            data_iterator: Source of batches, each a tree of arrays.
            device: A Device or Sharding, or a tree of them; None is the default device.
            buffer_size: Batches read ahead, at least 1.

        Returns:
            An iterator of placed batches, with `close()` and `stats()`.
        """
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
        """Batch sizes for the default device's hardware, or for any other.

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
        """Says in words where a batch size stands on this hardware, by what `get_batch_size_recommendation` says.

        Args:
            batch_size: Examples in a batch.
            warn_suboptimal: Whether the text says that a valid size is below the critical one.

        Returns:
            (is_valid, message). Invalid is only what is below the minimum; the message has all the numbers.

        Raises:
            TypeError: If batch_size is no integer (`operator.index`; floats are none).

        Example:
            >>> import artifex_devices as ad
            >>> ad.DevicePlacement().validate_batch_size(256)
            (True, 'Batch size 256 is optimal for cpu (minimum 1, critical 16, optimum 32)')
        """
        return validate_batch_size(batch_size, self._assigned_hardware(), warn_suboptimal, device=self._default_device)

    def _assigned_hardware(self) -> HardwareType | None:
        """What was assigned by hand in place of what the default device is; None where nothing was."""
        is_detected = self._hardware_type is detect_hardware_type(self._default_device)
        return None if is_detected else self._hardware_type

    def get_device_info(self) -> dict[str, Any]:
        """What devices there are, in types that JSON can hold.

        Returns:
            A dict of num_devices; hardware_type (its value, as text); platforms and device_kinds, each
            sorted and without repetition; devices, a list of dicts of id, platform and device_kind (None
            where the device does not say).

        Example:
            >>> import artifex_devices as ad
            >>> with ad.simulate(2):
            ...     info = ad.DevicePlacement().get_device_info()
            >>> info["num_devices"], info["hardware_type"], info["devices"][1]
            (2, 'cpu', {'id': 1, 'platform': 'cpu', 'device_kind': 'cpu'})
        """
        listed = [
            {"id": device.id, "platform": device.platform, "device_kind": device.device_kind or None}
            for device in devices()
        ]
        return {
            "num_devices": len(listed),
            "hardware_type": self._hardware_type.value,
            "platforms": sorted({str(entry["platform"]) for entry in listed}),
            "device_kinds": sorted({str(entry["device_kind"]) for entry in listed if entry["device_kind"]}),
            "devices": listed,
        }


def place_on_device(data: Any, device: Device | Sharding | None = None) -> Any:
    """Places data on one device.

    Args:
        data: Tree of arrays and numbers.
        device: Target device, or a Sharding; None is the first device.

    Returns:
        The tree with an Array on that device for each leaf.

    Raises:
        TypeError: If `device` is neither, or a leaf is no array of numbers.

    Example:
        >>> import numpy as np
        >>> import artifex_devices as ad
        >>> ad.place_on_device({"x": np.arange(3)})["x"].shape
        (3,)
    """
    return _place("place_on_device", data, local_devices()[0] if device is None else device)


def distribute_batch(data: Any, sharding: Any) -> Any:
    """Distributes data over devices; see `DevicePlacement.distribute_batch`."""
    check_target("distribute_batch", sharding)
    return place_batch("distribute_batch", data, sharding)


def _place(operation: str, data: Any, target: Any) -> Any:
    check_target(operation, target, tree=False)
    return device_put(data, target)


def _parts_of(mesh: Mesh, mesh_axis: Hashable) -> int:
    """Into how many parts the mesh axis, or tuple of axes, cuts a dimension."""
    if not isinstance(mesh, Mesh):
        raise TypeError(
            f"DevicePlacement.shard_batch_dim: mesh is {shown(mesh)} ({type(mesh).__name__}); expected a Mesh; "
            "make one with DeviceMeshManager().create_data_parallel_mesh()"
        )
    if not isinstance(mesh_axis, Hashable):
        raise TypeError(
            f"DevicePlacement.shard_batch_dim: mesh_axis is {shown(mesh_axis)} ({type(mesh_axis).__name__}); "
            "expected an axis name or a tuple of names; use a tuple"
        )
    sizes = mesh.shape
    axes = mesh_axis if isinstance(mesh_axis, tuple) and mesh_axis not in sizes else (mesh_axis,)
    missing = [axis for axis in axes if axis not in sizes]
    if missing:
        raise ValueError(
            f"DevicePlacement.shard_batch_dim: the mesh has no axis {shown(missing[0])}; expected one of "
            f"{', '.join(map(repr, sizes)) or '(none: it has no axes)'}; give mesh_axis= one of them"
        )
    return math.prod(sizes[axis] for axis in axes)


def _batch_dimension(shape: tuple[int, ...], batch_axis: int, path_of: Callable[[int], str], number: int) -> int | None:
    """Which dimension is the batch; None for an array that has no such one and is replicated."""
    rank = len(shape)
    if rank == 0 or batch_axis >= rank:
        return None
    if batch_axis < -rank:
        raise IndexError(
            f"DevicePlacement.shard_batch_dim: leaf {path_of(number) or '(the whole)'} of shape {shape} has no "
            f"dimension {batch_axis}; expected a batch_axis of {-rank} or above; count it from the front"
        )
    return batch_axis % rank


def _spec(rank: int, cut: int | None, mesh_axis: Hashable) -> PartitionSpec:
    """Names the mesh axis at dimension `cut`."""
    return PartitionSpec(*[mesh_axis if i == cut else None for i in range(rank if cut is not None else 0)])


def _check_divisible(
    shapes: list[tuple[int, ...]],
    axes: list[int | None],
    path_of: Callable[[int], str],
    mesh_axis: Hashable,
    parts: int,
) -> None:
    """Raises for all arrays that cannot be cut, at once."""
    uneven = [
        f"dimension {axis} of leaf {path_of(number) or '(the whole)'}, shape {shape}, is {shape[axis]}"
        for number, (shape, axis) in enumerate(zip(shapes, axes, strict=True))
        if axis is not None and shape[axis] % parts
    ]
    if uneven:
        raise IndivisibleError(
            f"DevicePlacement.shard_batch_dim: {'; '.join(uneven)}; expected a multiple of {parts}, the "
            f"parts of mesh axis {shown(mesh_axis)}; choose such a batch size, or pad or drop the last examples"
        )
