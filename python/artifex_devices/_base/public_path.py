# SPDX-License-Identifier: Apache-2.0
"""Public paths of classes: `__module__` names the module that users import a class from, and so do pickles."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from artifex_devices import _core

_Class = TypeVar("_Class", bound=type)


def public(module: str) -> Callable[[_Class], _Class]:
    """Returns a class decorator that sets `__module__`; the outermost one, as dataclasses read the defining module."""

    def set_path(cls: _Class) -> _Class:
        cls.__module__ = module
        return cls

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
