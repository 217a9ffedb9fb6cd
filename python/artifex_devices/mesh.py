# SPDX-License-Identifier: Apache-2.0
"""Device meshes for data, model and hybrid parallelism."""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from artifex_devices._base.safe_repr import shown
from artifex_devices._core import AbstractMesh, Device, Mesh
from artifex_devices._runtime.device_arguments import check_devices

__all__ = ["DeviceMeshManager"]


class DeviceMeshManager:
    """Makes meshes out of a list of devices.

    A mesh takes the first devices in their order, row by row: the last axis varies fastest. Devices left
    over stay out.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(8):
        ...     manager = ad.DeviceMeshManager()
        ...     mesh = manager.create_hybrid_mesh(data_parallel_size=2, model_parallel_size=4)
        ...     manager.get_mesh_info(mesh)
        {'total_devices': 8, 'axes': {'data': 2, 'model': 4}}
    """

    def __init__(self, devices: Iterable[Device] | None = None) -> None:
        """Takes the devices.

        Args:
            devices: Devices to use, in this order; None is all of `devices()`.

        Raises:
            TypeError: If one of them is no Device.
            ValueError: If one comes twice.
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
        mesh_shape: Mapping[Any, int] | Iterable[tuple[Hashable, int]],
        devices: Iterable[Device] | None = None,
    ) -> Mesh:
        """Makes a mesh of any number of axes.

        Args:
            mesh_shape: Sizes by axis name: a mapping, or pairs of name and size (a list, a zip). Names are
                hashable and not None. No axes give a mesh of one device.
            devices: Devices to take from; None is the manager's.

        Returns:
            A Mesh over the first prod(sizes) devices.

        Raises:
            ValueError: If there are not enough devices, a size is below 1, an axis or a device comes twice.
            TypeError: If mesh_shape has not these types, or one of `devices` is no Device.

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
        wanted = math.prod(sizes)
        if wanted > len(pool):
            raise ValueError(
                f"{operation}: Not enough devices: mesh {dict(axes)} needs {wanted}, {len(pool)} available; "
                "expected a product of sizes that the devices can fill; make an axis smaller "
                "or name more devices"
            )
        return Mesh(_nested(pool[:wanted], sizes), tuple(name for name, _ in axes))

    def create_data_parallel_mesh(self, num_devices: int | None = None, axis_name: Hashable = "data") -> Mesh:
        """Makes a mesh of one axis, to cut batches over.

        Args:
            num_devices: Devices to use; None is all of the manager's.
            axis_name: Name of the axis.

        Returns:
            A Mesh of shape (num_devices,).

        Raises:
            ValueError: If there are fewer devices, or num_devices is below 1.
        """
        return self.create_device_mesh([(axis_name, self._count(num_devices))])

    def create_model_parallel_mesh(self, num_devices: int | None = None, axis_name: Hashable = "model") -> Mesh:
        """Makes a mesh of one axis, to cut parameters over.

        Args:
            num_devices: Devices to use; None is all of the manager's.
            axis_name: Name of the axis.

        Returns:
            A Mesh of shape (num_devices,).

        Raises:
            ValueError: If there are fewer devices, or num_devices is below 1.
        """
        return self.create_device_mesh([(axis_name, self._count(num_devices))])

    def create_hybrid_mesh(
        self,
        data_parallel_size: int = 1,
        model_parallel_size: int = 1,
        data_axis: Hashable = "data",
        model_axis: Hashable = "model",
    ) -> Mesh:
        """Makes a mesh of two axes: batches over the first, parameters over the second.

        Args:
            data_parallel_size: Devices along the data axis.
            model_parallel_size: Devices along the model axis; neighbours in the device order.
            data_axis: Name of the data axis.
            model_axis: Name of the model axis.

        Returns:
            A Mesh of shape (data_parallel_size, model_parallel_size).

        Raises:
            ValueError: If there are fewer devices than the product, a size is below 1, or both axes have one
                name.
        """
        return self.create_device_mesh([(data_axis, data_parallel_size), (model_axis, model_parallel_size)])

    def get_mesh_info(self, mesh: Mesh | AbstractMesh) -> dict[str, Any]:
        """Size and axes of a mesh, whoever made it.

        Args:
            mesh: The mesh.

        Returns:
            {"total_devices": number of devices, "axes": {name: size} in the mesh's order}.

        Raises:
            TypeError: If it is no mesh.
        """
        if not isinstance(mesh, (Mesh, AbstractMesh)):
            raise TypeError(
                f"DeviceMeshManager.get_mesh_info: mesh is {shown(mesh)} ({type(mesh).__name__}); expected a "
                "Mesh; make one with create_device_mesh"
            )
        return {"total_devices": mesh.size, "axes": dict(mesh.shape)}

    def _count(self, num_devices: int | None) -> int:
        # A manager without devices wants one, so that the error is "Not enough devices".
        return max(1, len(self._devices)) if num_devices is None else num_devices


def _axes_of(operation: str, mesh_shape: Any) -> list[tuple[Hashable, int]]:
    """The axes as pairs of name and size; raises for all that is wrong with them at once."""
    pairs = mesh_shape.items() if isinstance(mesh_shape, Mapping) else mesh_shape
    if isinstance(pairs, (str, bytes)) or not isinstance(pairs, Iterable):
        raise TypeError(
            f"{operation}: mesh_shape is {shown(mesh_shape)} ({type(mesh_shape).__name__}); expected a mapping "
            'of axis names to sizes, or pairs of name and size; say {"data": 2, "model": 4}'
        )
    axes: list[tuple[Hashable, int]] = []
    wrong_types: list[str] = []
    wrong_values: list[str] = []
    for number, pair in enumerate(pairs):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            wrong_types.append(f"entry {number} is {shown(pair)}, no pair of name and size")
            continue
        name, size = pair
        if name is None or not isinstance(name, Hashable):
            wrong_types.append(f"axis name {shown(name)} is not a hashable other than None")
            continue
        try:
            count = operator.index(size)
        except TypeError:
            wrong_types.append(f"size {shown(size)} of axis {shown(name)} is no integer")
            continue
        if count < 1:
            wrong_values.append(f"size {count} of axis {shown(name)} is below 1")
        if name in (known for known, _ in axes):
            wrong_values.append(f"axis {shown(name)} comes twice")
        axes.append((name, count))
    if wrong_types or wrong_values:
        raise (TypeError if wrong_types else ValueError)(
            f"{operation}: {'; '.join(wrong_types + wrong_values)}; expected each axis once, with a size of "
            'at least 1; say {"data": 2, "model": 4}'
        )
    return axes


def _nested(devices: Any, sizes: list[int]) -> Any:
    """The devices as an ndarray of the mesh's shape."""
    import numpy as np

    laid_out = np.empty(len(devices), dtype=object)
    laid_out[:] = devices
    return laid_out.reshape(sizes)
