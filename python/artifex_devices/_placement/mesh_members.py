# SPDX-License-Identifier: Apache-2.0
"""Members of Mesh and AbstractMesh that ask for the types of their axes, or return a mesh with something changed."""

from __future__ import annotations

import collections.abc
from collections.abc import Callable
from typing import Any

from artifex_devices._base.safe_repr import shown
from artifex_devices._core import AbstractMesh, AxisType, Mesh

__all__: list[str] = []


def _axes_of(kind: AxisType) -> Callable[[Mesh | AbstractMesh], tuple[collections.abc.Hashable, ...]]:
    def axes(self: Mesh | AbstractMesh) -> tuple[collections.abc.Hashable, ...]:
        return tuple(name for name, each in zip(self.axis_names, self.axis_types, strict=True) if each == kind)

    axes.__doc__ = f"Names of the axes of type {kind.name} (tuple)."
    return axes


def _are_all(kind: AxisType) -> Callable[[Mesh | AbstractMesh], bool]:
    def are_all(self: Mesh | AbstractMesh) -> bool:
        return bool(self.axis_types) and all(each == kind for each in self.axis_types)

    are_all.__doc__ = f"Whether every axis is of type {kind.name}; False without axes."
    return are_all


def _update_mesh(self: Mesh, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
    """A mesh with other devices, names or axis types; what is left out stays.

    Raises:
        TypeError, ValueError: As Mesh.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(8):
        ...     mesh = ad.make_mesh((8,), ("x",))
        ...     mesh.update(axis_names=("data",)).axis_names
        ('data',)
    """
    return Mesh(
        self.devices if devices is None else devices,
        self.axis_names if axis_names is None else axis_names,
        self.axis_types if axis_types is None else axis_types,
    )


def _update_abstract(
    self: AbstractMesh, axis_sizes: Any = None, axis_names: Any = None, axis_types: Any = None
) -> AbstractMesh:
    """A mesh with other sizes, names or axis types; what is left out stays.

    Raises:
        TypeError, ValueError: As AbstractMesh.

    Example:
        >>> from artifex_devices.sharding import AbstractMesh
        >>> AbstractMesh((2, 4), ("x", "y")).update(axis_sizes=(4, 4)).size
        16
    """
    return AbstractMesh(
        self.axis_sizes if axis_sizes is None else axis_sizes,
        self.axis_names if axis_names is None else axis_names,
        self.axis_types if axis_types is None else axis_types,
    )


def _update_axis_types(
    self: AbstractMesh, name_to_type: collections.abc.Mapping[collections.abc.Hashable, AxisType]
) -> AbstractMesh:
    """A mesh in which the axes that `name_to_type` names have other types.

    Raises:
        TypeError: name_to_type is not a mapping, or a value is not an AxisType.

    Example:
        >>> from artifex_devices.sharding import AbstractMesh, AxisType
        >>> AbstractMesh((2, 4), ("x", "y")).update_axis_types({"y": AxisType.Explicit}).explicit_axes
        ('y',)
    """
    if not isinstance(name_to_type, collections.abc.Mapping):
        raise TypeError(
            f"update_axis_types: name_to_type is of type {type(name_to_type).__name__}; expected a dict of axis name "
            f"to AxisType, got {shown(name_to_type)}; write {{'x': AxisType.Explicit}}"
        )
    pairs = zip(self.axis_names, self.axis_types, strict=True)
    return AbstractMesh(self.axis_sizes, self.axis_names, tuple(name_to_type.get(name, kind) for name, kind in pairs))


def _itself(self: AbstractMesh) -> AbstractMesh:
    """The mesh itself: it has no devices."""
    self.size  # noqa: B018 - raises where self has no value
    return self


def _attach() -> None:
    for kind in (AxisType.Auto, AxisType.Explicit, AxisType.Manual):
        word = kind.name.lower()
        for name, getter in ((f"{word}_axes", _axes_of(kind)), (f"are_all_axes_{word}", _are_all(kind))):
            getter.__name__ = name
            for cls in (Mesh, AbstractMesh):
                setattr(cls, name, property(getter))
    setattr(AbstractMesh, "abstract_mesh", property(_itself))  # noqa: B010 - as for the others, in the stubs
    for cls, name, method in (
        (Mesh, "update", _update_mesh),
        (AbstractMesh, "update", _update_abstract),
        (AbstractMesh, "update_axis_types", _update_axis_types),
    ):
        method.__name__, method.__qualname__ = name, f"{cls.__name__}.{name}"
        setattr(cls, name, method)


_attach()
