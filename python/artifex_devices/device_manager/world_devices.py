# SPDX-License-Identifier: Apache-2.0
"""The devices of the current world by platform, and data cut into a part for each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array, Device, Mesh, NamedSharding
from artifex_devices._placement.device_put import device_put
from artifex_devices._runtime.device_arguments import check_devices
from artifex_devices._runtime.devices import devices
from artifex_devices.device_manager.configuration import GPU_PLATFORMS, DeviceConfiguration
from artifex_devices.tree_util import keystr, tree_flatten_with_path, tree_unflatten


@public("artifex_devices.device_manager")
class JAXDeviceManager:
    """Offers devices and distributes data.

    All lists are new ones, of devices that there are, in the world of the caller. It changes nothing in the process:
    a configuration acts through DeviceManager; here its platform priority counts.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(2):
        ...     parts = ad.JAXDeviceManager().distribute_data(np.arange(5))
        >>> [(part.tolist(), part.device) for part in parts]
        [([0, 1, 2], CpuDevice(id=0)), ([3, 4], CpuDevice(id=1))]
    """

    def __init__(self, config: DeviceConfiguration | None = None) -> None:
        """Takes a configuration; None is the default one.

        Raises:
            TypeError: It is of another type.
        """
        self.config = check_configuration("JAXDeviceManager", config)

    @property
    def devices(self) -> list[Device]:
        """All devices, in order of id."""
        return devices()

    @property
    def gpu_devices(self) -> list[Device]:
        """The GPUs; empty where there are none."""
        return self._of_platform("gpu")

    @property
    def cpu_devices(self) -> list[Device]:
        """The CPU devices."""
        return self._of_platform("cpu")

    @property
    def default_platform(self) -> str:
        """The first platform of the priority that is there ("gpu" for any GPU), or that of the first device."""
        for platform in self.config.platform_priority:
            if found := self._of_platform(platform):
                return "gpu" if found[0].platform in GPU_PLATFORMS else found[0].platform
        return devices()[0].platform

    def get_default_device(self) -> Device:
        """The first device of the default platform."""
        return self._of_platform(self.default_platform)[0]

    def distribute_data(self, data: Any, target_devices: Iterable[Device] | None = None) -> list[Any]:
        """Cuts data along dimension 0 and puts a part on each device.

        The first devices get one row more where the rows do not divide. On a single device nothing is cut.

        Args:
            data: An array of shape (rows, ...), or a tree of arrays with as many rows each.
            target_devices: Devices to use; None is those of the default platform.

        Returns:
            A list with an Array, or a tree of Arrays, for each device. They share no memory with `data`.

        Raises:
            ValueError: There are no devices, or one comes twice; an array has no rows to cut, other numbers of rows
                than the rest, or fewer than there are devices (all such are named).
            TypeError: An entry of `target_devices` is not a Device, or a leaf no array of numbers.
        """
        name = "JAXDeviceManager.distribute_data"
        if target_devices is None:
            targets = self._of_platform(self.default_platform)
        else:
            targets = check_devices(name, target_devices)
        if not targets:
            gpus = "" if self.gpu_devices else ": there is no GPU here"
            raise ValueError(
                f"{name}: target_devices is empty{gpus}; expected at least one Device; leave it out for the devices of "
                "the default platform"
            )
        if len(targets) == 1:
            return [device_put(data, targets[0])]
        leaves, treedef = tree_flatten_with_path(data)
        arrays = [_cuttable(leaf) for _, leaf in leaves]
        _check_rows(name, [keystr(path) for path, _ in leaves], arrays, len(targets))
        rows = len(arrays[0]) if arrays else 0
        share, rest = divmod(rows, len(targets))
        parts = []
        start = 0
        for number, device in enumerate(targets):
            stop = start + share + (number < rest)
            parts.append(device_put(tree_unflatten(treedef, [array[start:stop] for array in arrays]), device))
            start = stop
        return parts

    def _of_platform(self, platform: str) -> list[Device]:
        # Which vendor a device of platform "gpu" is of is not known here: every GPU's name means all of them.
        names = GPU_PLATFORMS if platform in GPU_PLATFORMS else (platform,)
        return [device for device in devices() if device.platform in names]


def check_configuration(operation: str, config: Any) -> DeviceConfiguration:
    """The configuration, which must be one; None is the default one."""
    if config is None:
        return DeviceConfiguration()
    if not isinstance(config, DeviceConfiguration):
        raise TypeError(
            f"{operation}: config is of type {type(config).__name__}; expected a DeviceConfiguration or None, got "
            f"{safe_repr(config)}; write DeviceConfiguration(memory_strategy=MemoryStrategy.BALANCED)"
        )
    return config


def _cuttable(leaf: Any) -> Any:
    """The leaf as an array whose rows can be taken."""
    if not isinstance(leaf, Array):
        return leaf if isinstance(leaf, np.ndarray) else np.asarray(leaf)
    if isinstance(leaf.sharding, NamedSharding) and leaf.ndim:
        # Parts are asked for by name here, so Explicit axes allow them; the bytes stay where they are.
        return device_put(leaf, _on_auto_axes(leaf.sharding))
    return leaf


def _on_auto_axes(sharding: NamedSharding) -> NamedSharding:
    assert isinstance(sharding.mesh, Mesh)  # Arrays have devices
    mesh = Mesh(sharding.mesh.devices, sharding.mesh.axis_names)
    return NamedSharding(mesh, sharding.spec, memory_kind=sharding.memory_kind, uneven=sharding.uneven)


def _check_rows(operation: str, paths: list[str], arrays: list[Any], parts: int) -> None:
    wrong = [f"data{path} ({a.dtype})" for path, a in zip(paths, arrays, strict=True) if a.dtype.kind in "OSUMm"]
    if wrong:
        raise TypeError(f"{operation}: expected arrays of numbers, got {', '.join(wrong)}; leave out what is none")
    shapes = [tuple(array.shape) for array in arrays]
    listed = ", ".join(f"data{path} has shape {shape}" for path, shape in zip(paths, shapes, strict=True))
    if any(not shape for shape in shapes):
        what, repair = "an array without dimensions has no rows", "put it on the devices by device_put, or leave it out"
    elif len({shape[0] for shape in shapes}) > 1:
        what, repair = "the arrays have different numbers of rows", "give arrays of one number of rows"
    elif shapes and shapes[0][0] < parts:
        rows = shapes[0][0]
        what = f"{rows} rows leave nothing for some of the devices"
        repair = f"say target_devices=devices()[:{rows}]" if rows else "give data that has rows"
    else:
        return
    raise ValueError(
        f"{operation}: {what}; expected at least one row for each of the {parts} devices, got {listed}; {repair}"
    )
