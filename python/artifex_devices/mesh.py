# SPDX-License-Identifier: Apache-2.0
"""Device meshes for data, model and hybrid parallelism."""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable, Iterable, Mapping

import numpy as np

from artifex_devices._base.checks import MAX_DIMENSIONS, bounded_list, check_type, failure, wrong_type
from artifex_devices._base.leaf_types import Record
from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.text import more_devices
from artifex_devices._core import AbstractMesh, Device, Mesh
from artifex_devices._runtime.device_arguments import check_devices

__all__ = ["DeviceMeshManager"]
add_public_lookup(__name__)


class DeviceMeshManager:
    """Creates meshes from a list of devices.

    A mesh takes the first devices in their order, row by row: the last axis varies fastest. The other devices are not
    used.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(8):
        ...     manager = ad.DeviceMeshManager()
        ...     mesh = manager.create_hybrid_mesh(data_parallel_size=2, model_parallel_size=4)
        ...     manager.get_mesh_info(mesh)
        {'total_devices': 8, 'axes': {'data': 2, 'model': 4}}
    """

    def __init__(self, devices: Iterable[Device] | None = None) -> None:
        """Stores the devices.

        Args:
            devices: Devices to use, in this order, by default all of `devices()`.

        Raises:
            TypeError: An entry is not a Device.
            ValueError: A device is repeated.
        """
        self._devices = tuple(check_devices("DeviceMeshManager", devices))

    @property
    def devices(self) -> list[Device]:
        """The devices, as a new list."""
        return list(self._devices)

    @property
    def num_devices(self) -> int:
        """Number of devices."""
        return len(self._devices)

    def create_device_mesh(
        self,
        mesh_shape: Mapping[str, int] | Mapping[Hashable, int] | Iterable[tuple[Hashable, int]],
        devices: Iterable[Device] | None = None,
    ) -> Mesh:
        """Creates a mesh of any number of axes.

        Args:
            mesh_shape: Sizes by axis name: a mapping, or pairs of name and size (a list, a zip). Names are hashable
                and not None. Without axes the mesh has one device.
            devices: Devices to take from, by default the manager's.

        Returns:
            A Mesh over the first prod(sizes) devices.

        Raises:
            ValueError: There are too few devices, a size is below 1, or an axis or a device is repeated.
            TypeError: mesh_shape has other types, or an entry of `devices` is not a Device.

        Example:
            >>> import artifex_devices as ad
            >>> with ad.simulate(8):
            ...     ad.DeviceMeshManager().create_device_mesh([("data", 2), ("model", 2)]).devices.tolist()
            [[CpuDevice(id=0), CpuDevice(id=1)], [CpuDevice(id=2), CpuDevice(id=3)]]
        """
        operation = "DeviceMeshManager.create_device_mesh"
        axes = _axes_of(operation, mesh_shape)
        pool = self._devices if devices is None else check_devices(operation, devices)
        sizes = [size for _, size in axes]
        needed = math.prod(sizes)
        if needed > len(pool):
            raise failure(
                ValueError,
                operation,
                f"Not enough devices: mesh {dict(axes)} needs {needed}, {len(pool)} available",
                expected="a product of sizes that the devices can fill",
                fix=f"make an axis smaller, {more_devices(needed)}",
            )
        return Mesh(np.array(pool[:needed], object).reshape(sizes), tuple(name for name, _ in axes))

    def create_data_parallel_mesh(self, num_devices: int | None = None, axis_name: Hashable = "data") -> Mesh:
        """Creates a mesh of one axis, to shard batches over.

        Args:
            num_devices: Number of devices; None for all of the manager's.
            axis_name: Name of the axis.

        Returns:
            A Mesh of shape (num_devices,).

        Raises:
            ValueError: There are fewer devices, or num_devices is below 1.
        """
        # At least one device: a manager without devices must raise "Not enough devices".
        count = max(1, len(self._devices)) if num_devices is None else num_devices
        return self.create_device_mesh([(axis_name, count)])

    def create_model_parallel_mesh(self, num_devices: int | None = None, axis_name: Hashable = "model") -> Mesh:
        """Creates a mesh of one axis, to shard parameters over; see create_data_parallel_mesh."""
        return self.create_data_parallel_mesh(num_devices, axis_name)

    def create_hybrid_mesh(
        self,
        data_parallel_size: int = 1,
        model_parallel_size: int = 1,
        data_axis: Hashable = "data",
        model_axis: Hashable = "model",
    ) -> Mesh:
        """Creates a mesh of two axes: batches are sharded over the first, parameters over the second.

        Args:
            data_parallel_size: Number of devices along the data axis.
            model_parallel_size: Number of devices along the model axis, which are neighbours in the list.
            data_axis: Name of the data axis.
            model_axis: Name of the model axis.

        Returns:
            A Mesh of shape (data_parallel_size, model_parallel_size).

        Raises:
            ValueError: There are fewer devices than the product, a size is below 1, or both axes have the same name.
        """
        return self.create_device_mesh([(data_axis, data_parallel_size), (model_axis, model_parallel_size)])

    def get_mesh_info(self, mesh: Mesh | AbstractMesh) -> Record:
        """Returns the size and the axes of any mesh.

        Args:
            mesh: The mesh.

        Returns:
            {"total_devices": number of devices, "axes": {name: size} in the mesh's order}.

        Raises:
            TypeError: `mesh` is not a mesh.
        """
        name, fix = "DeviceMeshManager.get_mesh_info", "make a mesh with create_device_mesh"
        check_type(name, "mesh", mesh, (Mesh, AbstractMesh), "a Mesh", fix)
        return {"total_devices": mesh.size, "axes": dict(mesh.shape)}


def _axes_of(operation: str, mesh_shape: object) -> list[tuple[Hashable, int]]:
    """Returns the axes as pairs of name and size, or raises one error with all mistakes."""
    pairs = mesh_shape.items() if isinstance(mesh_shape, Mapping) else mesh_shape
    if isinstance(pairs, (str, bytes)) or not isinstance(pairs, Iterable):
        expected = "a mapping of axis names to sizes, or pairs of name and size"
        raise wrong_type(operation, "mesh_shape", mesh_shape, expected, 'write {"data": 2, "model": 4}')
    axes: list[tuple[Hashable, int]] = []
    wrong_types: list[str] = []
    wrong_values: list[str] = []
    for number, pair in enumerate(bounded_list(operation, "mesh_shape", pairs, MAX_DIMENSIONS)):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            wrong_types.append(f"entry {number} is {safe_repr(pair)}, not a pair of name and size")
            continue
        name, size = pair
        if name is None or not isinstance(name, Hashable):
            wrong_types.append(f"axis name {safe_repr(name)} is not a hashable other than None")
            continue
        try:
            count = operator.index(size)
        except TypeError:
            wrong_types.append(f"size {safe_repr(size)} of axis {safe_repr(name)} is not an integer")
            continue
        if count < 1:
            wrong_values.append(f"size {count} of axis {safe_repr(name)} is below 1")
        if name in (known for known, _ in axes):
            wrong_values.append(f"axis {safe_repr(name)} comes twice")
        axes.append((name, count))
    if wrong_types or wrong_values:
        raise (TypeError if wrong_types else ValueError)(
            f"{operation}: {'; '.join(wrong_types + wrong_values)}; expected each axis once, with a size of "
            'at least 1; write {"data": 2, "model": 4}'
        )
    return axes
