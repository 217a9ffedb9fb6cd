# SPDX-License-Identifier: Apache-2.0
"""Public paths of classes: `__module__` names the module that users import a class from, and so do pickles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from artifex_devices import _core

_Class = TypeVar("_Class", bound=type)
_Function = TypeVar("_Function", bound=Callable[..., Any])


def public(module: str) -> Callable[[_Class], _Class]:
    """Returns a class decorator that sets `__module__`; the outermost one, as dataclasses read the defining module."""

    def set_path(cls: _Class) -> _Class:
        cls.__module__ = module
        return cls

    return set_path


def unpickles(name: str) -> Callable[[_Function], _Function]:
    """Returns a decorator of a function that pickles name, as `artifex_devices.unpickle.<name>`."""

    def set_path(function: _Function) -> _Function:
        function.__module__, function.__name__, function.__qualname__ = "artifex_devices.unpickle", name, name
        return function

    return set_path


_BOUND = {
    "artifex_devices": (_core.Array, _core.Client, _core.Device, _core.Machine, _core.Shard),
    "artifex_devices.cluster": (_core.Cluster,),
    "artifex_devices.sharding": (
        _core.AbstractMesh,
        _core.AxisType,
        _core.Mesh,
        _core.NamedSharding,
        _core.PartitionSpec,
        _core.Sharding,
        _core.SingleDeviceSharding,
    ),
    "artifex_devices.unpickle": (_core._Unconstrained,),
    "artifex_devices.xla_client": (
        _core.DeviceAssignment,
        _core.DeviceList,
        _core.DeviceTopology,
        _core.Layout,
        _core.Memory,
        _core.PjRtLayout,
    ),
}
for _module, _classes in _BOUND.items():
    for _bound in _classes:
        public(_module)(_bound)
