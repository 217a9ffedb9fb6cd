# SPDX-License-Identifier: Apache-2.0
"""Configurations of device managers, and JAXDeviceManager: the devices of the current world by platform."""

from __future__ import annotations

import dataclasses
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from artifex_devices._base.checks import check_bool, check_number, check_type, failure, wrong_type, wrong_value
from artifex_devices._base.leaf_types import PyTree, Tree
from artifex_devices._base.pickled_enum import PickledEnum
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array, Device, Mesh, NamedSharding, internal
from artifex_devices._placement.device_put import device_put
from artifex_devices._runtime.device_arguments import check_devices
from artifex_devices._runtime.devices import devices
from artifex_devices.tree_util import keystr, tree_flatten_with_path, tree_unflatten

GPU_PLATFORMS = ("gpu", "cuda", "rocm")
_OPERATION = "DeviceConfiguration"
_PLATFORMS = ("cpu", *GPU_PLATFORMS, "tpu", "metal", "oneapi")


@public("artifex_devices.device_manager")
class MemoryStrategy(PickledEnum):
    """Share of a device's memory that Arrays may take: 60 %, 75 %, 90 %, or a fraction that the user sets."""

    CONSERVATIVE = "conservative"
    BALANCED = "balanced"
    AGGRESSIVE = "aggressive"
    CUSTOM = "custom"


# Source: the device-management document; CUSTOM without a fraction equals BALANCED.
_FRACTIONS = {
    MemoryStrategy.CONSERVATIVE: 0.6,
    MemoryStrategy.BALANCED: 0.75,
    MemoryStrategy.AGGRESSIVE: 0.9,
    MemoryStrategy.CUSTOM: 0.75,
}


@public("artifex_devices.device_manager")
@dataclass
class DeviceConfiguration:
    """Settings for a DeviceManager; mutable, and each assignment is checked.

    A DeviceManager copies the settings when it is created. Lists and dicts are copied at assignment.

    Attributes:
        memory_strategy: Strategy that sets `memory_fraction` when it is assigned; CUSTOM leaves the fraction.
        memory_fraction: Share of each device's memory, 0.1 to 1.0. An explicit fraction overrides the strategy until
            another strategy is assigned. Assigning None restores the strategy's fraction; reading returns a number.
        enable_x64: True keeps 64-bit data; False does not change the setting of the process.
        enable_jit: Recorded without effect, because `jit` does not compile.
        platform_priority: Platforms, best first; the first available one is the default. Names: cpu, gpu, cuda,
            rocm, tpu, metal, oneapi.
        environment_variables: Variables to set, by name. Flags of XLA_FLAGS are merged into the existing ones.
        enable_mixed_precision: Recorded without effect, because programs choose their dtypes.

    Raises:
        ValueError: The fraction is not between 0.1 and 1.0, or the platforms are empty or unknown.
        TypeError: A value has a wrong type.
        AttributeError: The assigned name is not a setting.

    Example:
        >>> from artifex_devices import DeviceConfiguration, MemoryStrategy
        >>> config = DeviceConfiguration(memory_strategy=MemoryStrategy.CONSERVATIVE)
        >>> config.memory_fraction
        0.6
        >>> config.memory_strategy = MemoryStrategy.BALANCED
        >>> config.memory_fraction
        0.75
    """

    memory_strategy: MemoryStrategy = MemoryStrategy.BALANCED
    memory_fraction: float | None = None
    enable_x64: bool = False
    enable_jit: bool = True
    platform_priority: list[str] = field(default_factory=lambda: ["cuda", "cpu"])
    environment_variables: dict[str, str] = field(default_factory=dict)
    enable_mixed_precision: bool = field(default=False, kw_only=True)

    def __setattr__(self, name: str, value: Any) -> None:
        """Checks and sets one setting."""
        if name not in _CHECKS:
            raise failure(
                AttributeError,
                _OPERATION,
                f"no setting {safe_repr(name)}",
                expected=f"one of {', '.join(_CHECKS)}",
                fix="check the name",
            )
        value = _CHECKS[name](name, value)
        if name == "memory_strategy" and (value is not MemoryStrategy.CUSTOM or "memory_fraction" not in vars(self)):
            object.__setattr__(self, "memory_fraction", _FRACTIONS[value])
        elif name == "memory_fraction" and value is None:
            value = _FRACTIONS[self.memory_strategy]
        object.__setattr__(self, name, value)

    def copy(self) -> DeviceConfiguration:
        """Returns an equal configuration that shares no list or dict with the original.

        Raises:
            ValueError: A list or dict was changed in place to a value that is not allowed.
            TypeError: A list or dict was changed in place to a value of a wrong type.
        """
        return dataclasses.replace(self)


def _strategy(name: str, value: Any) -> MemoryStrategy:
    member = next((m for m in MemoryStrategy if isinstance(value, str) and value.lower() == m.value), None)
    fix = f"write MemoryStrategy.{member.name}" if member else "write MemoryStrategy.BALANCED"
    expected = "one of " + ", ".join(f"MemoryStrategy.{member.name}" for member in MemoryStrategy)
    check_type(_OPERATION, name, value, MemoryStrategy, expected, fix)
    return value  # type: ignore[no-any-return]


def _fraction(name: str, value: object) -> float | None:
    if value is None:
        return None
    expected, fix = "a number between 0.1 and 1.0", "write 0.75 for three quarters of a device's memory"
    fraction = float(check_number(_OPERATION, name, value, fix, expected=f"{expected} or None"))
    if not 0.1 <= fraction <= 1.0:
        raise wrong_value(_OPERATION, name, fraction, expected, fix)
    return fraction


def _platforms(name: str, value: object) -> list[str]:
    fix = "write ['cuda', 'cpu']"
    if not isinstance(value, (list, tuple)) or not all(isinstance(entry, str) for entry in value):
        raise wrong_type(_OPERATION, name, value, "a list of platforms' names", fix)
    unknown = [entry for entry in value if entry not in _PLATFORMS]
    if unknown or not value:
        problem = f"names unknown platforms {unknown}" if unknown else "is empty"
        raise failure(
            ValueError,
            _OPERATION,
            f"{name} {problem}",
            expected=f"at least one of {', '.join(_PLATFORMS)}, in lower case",
            got=list(value),
            fix=fix,
        )
    return list(value)


def _variables(name: str, value: Any) -> dict[str, str]:
    check_type(_OPERATION, name, value, Mapping, "a dict of str to str", "write {'XLA_FLAGS': '--flag=1'}")
    wrong = [(key, entry) for key, entry in value.items() if not (isinstance(key, str) and isinstance(entry, str))]
    if wrong:
        listed = ", ".join(f"{safe_repr(key)}: {safe_repr(entry)}" for key, entry in wrong)
        raise failure(
            TypeError,
            _OPERATION,
            f"{name} has entries that are not text: {listed}",
            expected="a str for names and values",
            fix="write '1' or 'false'",
        )
    bad = [repr(key) for key, entry in value.items() if not key or "=" in key or not _is_storable(key + entry)]
    if bad:
        raise failure(
            ValueError,
            _OPERATION,
            f"{name} has variables that the system cannot hold: {', '.join(bad)}",
            expected=f"names without '=', no zero bytes, and characters of {sys.getfilesystemencoding()}",
            fix="correct them",
        )
    return dict(value)


def _is_storable(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


_flag = partial(check_bool, _OPERATION, fix="write True or False")
_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "memory_strategy": _strategy,
    "memory_fraction": _fraction,
    "enable_x64": _flag,
    "enable_jit": _flag,
    "platform_priority": _platforms,
    "environment_variables": _variables,
    "enable_mixed_precision": _flag,
}


@public("artifex_devices.device_manager")
class JAXDeviceManager:
    """Lists devices and distributes data.

    Each list is new and has the devices of the caller's world. This class uses only the platform priority of the
    configuration. It does not change the process; the other settings take effect through DeviceManager.

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
            TypeError: `config` is not a DeviceConfiguration.
        """
        self.config = check_configuration("JAXDeviceManager", config)

    @property
    def devices(self) -> list[Device]:
        """All devices, ordered by id."""
        return devices()

    @property
    def gpu_devices(self) -> list[Device]:
        """The GPUs, or an empty list without GPUs."""
        return self._of_platform("gpu")

    @property
    def cpu_devices(self) -> list[Device]:
        """The CPU devices; in a world of GPUs, the CPU devices next to them."""
        return self._of_platform("cpu")

    @property
    def default_platform(self) -> str:
        """The first available platform of the priority ("gpu" for any GPU), or the first device's platform."""
        for platform in self.config.platform_priority:
            if found := self._of_platform(platform):
                return "gpu" if found[0].platform in GPU_PLATFORMS else found[0].platform
        return devices()[0].platform

    def get_default_device(self) -> Device:
        """Returns the first device of the default platform."""
        return self._of_platform(self.default_platform)[0]

    def distribute_data(self, data: Tree, target_devices: Iterable[Device] | None = None) -> list[PyTree]:
        """Splits data along dimension 0 and puts one part on each device.

        The first devices get one row more if the rows do not divide. A single device gets the data unsplit.

        Args:
            data: Array of shape (rows, ...), or a tree of arrays with the same number of rows.
            target_devices: Devices to use, by default all of the default platform.

        Returns:
            A list with an Array, or a tree of Arrays, for each device. They share no memory with `data`.

        Raises:
            ValueError: The devices are empty or have a duplicate; or arrays have no rows, different numbers of rows,
                or fewer rows than devices. The message names all such arrays.
            TypeError: An entry of `target_devices` is not a Device, or a leaf is not an array of numbers.
        """
        name = "JAXDeviceManager.distribute_data"
        is_default = target_devices is None
        targets = self._of_platform(self.default_platform) if is_default else check_devices(name, target_devices)
        if not targets:
            gpus = "" if self.gpu_devices else ": this machine has no GPU"
            raise failure(
                ValueError,
                name,
                f"target_devices is empty{gpus}",
                expected="at least one Device",
                fix="omit it for the devices of the default platform",
            )
        if len(targets) == 1:
            return [device_put(data, targets[0])]
        leaves, treedef = tree_flatten_with_path(data)
        arrays = [_sliceable(leaf) for _, leaf in leaves]
        _check_rows(name, [keystr(path) for path, _ in leaves], arrays, len(targets))
        rows = len(arrays[0]) if arrays else 0
        share, rest = divmod(rows, len(targets))
        starts = [i * share + min(i, rest) for i in range(len(targets) + 1)]
        parts = [[array[i:j] for array in arrays] for i, j in itertools.pairwise(starts)]
        return [device_put(tree_unflatten(treedef, part), device) for part, device in zip(parts, targets, strict=True)]

    def _of_platform(self, platform: str) -> list[Device]:
        # The vendor of a device of platform "gpu" is not known: each name of a GPU platform means all GPUs.
        names = GPU_PLATFORMS if platform in GPU_PLATFORMS else (platform,)
        found = [device for device in devices() if device.platform in names]
        if found or platform != "cpu":
            return found
        beside = internal.client_of_platform("cpu")
        return [] if beside is None else beside.devices()


def check_configuration(operation: str, config: Any) -> DeviceConfiguration:
    """Returns the checked configuration; the default one for None."""
    if config is None:
        return DeviceConfiguration()
    fix = "write DeviceConfiguration(memory_strategy=MemoryStrategy.BALANCED)"
    check_type(operation, "config", config, DeviceConfiguration, "a DeviceConfiguration or None", fix)
    return config  # type: ignore[no-any-return]


def _sliceable(leaf: object) -> Any:
    """Returns the leaf as an array whose rows can be sliced."""
    if not isinstance(leaf, Array):
        return leaf if isinstance(leaf, np.ndarray) else np.asarray(leaf)
    sharding = leaf.sharding
    if not isinstance(sharding, NamedSharding) or not leaf.ndim:
        return leaf
    # The same placement on Auto axes, where slicing a sharded dimension is allowed; no byte moves.
    assert isinstance(sharding.mesh, Mesh)  # Arrays have devices
    mesh = Mesh(sharding.mesh.devices, sharding.mesh.axis_names)
    return device_put(leaf, sharding.update(mesh=mesh))


def _check_rows(operation: str, paths: list[str], arrays: list[Any], parts: int) -> None:
    wrong = [f"data{path} ({a.dtype})" for path, a in zip(paths, arrays, strict=True) if a.dtype.kind in "OSUMm"]
    if wrong:
        raise TypeError(f"{operation}: expected arrays of numbers, got {', '.join(wrong)}; remove all other leaves")
    shapes = [tuple(array.shape) for array in arrays]
    listed = ", ".join(f"data{path} has shape {shape}" for path, shape in zip(paths, shapes, strict=True))
    if () in shapes:
        problem, fix = "an array without dimensions has no rows", "put it on the devices by device_put, or remove it"
    elif len({rows for rows, *_ in shapes}) > 1:
        problem, fix = "the arrays have different numbers of rows", "pass arrays with one number of rows"
    elif shapes and (rows := shapes[0][0]) < parts:
        problem = f"{rows} rows leave nothing for some of the devices"
        fix = f"write target_devices=devices()[:{rows}]" if rows else "pass data that has rows"
    else:
        return
    raise failure(
        ValueError,
        operation,
        problem,
        expected=f"at least one row for each of the {parts} devices",
        got=listed,
        fix=fix,
    )
