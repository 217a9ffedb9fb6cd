# SPDX-License-Identifier: Apache-2.0
"""Methods of meshes, shardings and PartitionSpecs that are written in Python; importing this module attaches them."""

from __future__ import annotations

import collections.abc
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from artifex_devices._base.checks import check_sequence, check_type
from artifex_devices._core import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec, Sharding


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
    """Returns a mesh with other devices, names or axis types; TypeError and ValueError as of Mesh.

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
    """Returns a mesh with other sizes, names or axis types; TypeError and ValueError as of AbstractMesh.

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
    """Returns a mesh with other types of the axes in `name_to_type`.

    Raises:
        TypeError: name_to_type is not a mapping, or a value is not an AxisType.

    Example:
        >>> from artifex_devices.sharding import AbstractMesh, AxisType
        >>> AbstractMesh((2, 4), ("x", "y")).update_axis_types({"y": AxisType.Explicit}).explicit_axes
        ('y',)
    """
    expected, fix = "a dict of axis name to AxisType", "write {'x': AxisType.Explicit}"
    check_type("update_axis_types", "name_to_type", name_to_type, collections.abc.Mapping, expected, fix)
    pairs = zip(self.axis_names, self.axis_types, strict=True)
    return AbstractMesh(self.axis_sizes, self.axis_names, tuple(name_to_type.get(name, kind) for name, kind in pairs))


def _itself(self: AbstractMesh) -> AbstractMesh:
    """The mesh itself: it has no devices."""
    self.size  # noqa: B018 - raises where self is not initialized
    return self


def _check_compatible_aval(self: Sharding, aval_shape: Sequence[int]) -> None:
    """Raises ValueError unless a value of this shape has a dimension for each entry of the spec.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(2):
        ...     ad.NamedSharding(ad.make_mesh((2,), ("x",)), ad.P("x")).check_compatible_aval((4, 3))
    """
    rank = len(self.spec) if isinstance(self, NamedSharding) else 0
    if len(aval_shape) < rank:
        fix = "leave entries of the spec out" if aval_shape else "write P() for a number"
        raise ValueError(
            f"check_compatible_aval: the value has too few dimensions for {self}; expected {rank} at least, got "
            f"{len(aval_shape)}; {fix}"
        )


def _update_sharding(self: NamedSharding, **changes: Any) -> NamedSharding:
    """Returns a NamedSharding with another mesh, spec, memory_kind or uneven.

    Args:
        self: The sharding.
        **changes: `mesh`, `spec` (a PartitionSpec or its entries), `memory_kind`, `uneven`.

    Raises:
        TypeError: An argument has another name.
        ValueError: As NamedSharding.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(2):
        ...     ad.NamedSharding(ad.make_mesh((2,), ("x",)), ad.P()).update(spec=ad.P("x")).spec
        P('x',)
    """
    unknown = sorted(changes.keys() - {"mesh", "spec", "memory_kind", "uneven"})
    if unknown:
        raise TypeError(
            f"update: unknown arguments {', '.join(unknown)}; expected mesh, spec, memory_kind or uneven; check the "
            "spelling"
        )
    spec = changes.get("spec", self.spec)
    return NamedSharding(
        changes.get("mesh", self.mesh),
        spec if isinstance(spec, PartitionSpec) else PartitionSpec(*spec),
        memory_kind=changes.get("memory_kind", self.memory_kind),
        uneven=changes.get("uneven", self.uneven),
    )


def _update_spec(self: PartitionSpec, partitions: Iterable[Any] | None = None) -> PartitionSpec:
    """Returns a PartitionSpec with other entries, or itself for None; TypeError unless they can be iterated over.

    Example:
        >>> import artifex_devices as ad
        >>> ad.P("x").update(partitions=("y", None))
        P('y', None)
    """
    if partitions is None:
        return self
    fix = "write partitions=('x', None)"
    return PartitionSpec(*check_sequence("update", "partitions", partitions, "a tuple of entries", fix))


def _attach() -> None:
    for kind in (AxisType.Auto, AxisType.Explicit, AxisType.Manual):
        word = kind.name.lower()
        for name, getter in ((f"{word}_axes", _axes_of(kind)), (f"are_all_axes_{word}", _are_all(kind))):
            getter.__name__ = name
            for mesh_class in (Mesh, AbstractMesh):
                setattr(mesh_class, name, property(getter))
    setattr(AbstractMesh, "abstract_mesh", property(_itself))  # noqa: B010 - the stub has it as read-only
    for cls, name, method in (
        (Mesh, "update", _update_mesh),
        (AbstractMesh, "update", _update_abstract),
        (AbstractMesh, "update_axis_types", _update_axis_types),
        (Sharding, "check_compatible_aval", _check_compatible_aval),
        (NamedSharding, "update", _update_sharding),
        (PartitionSpec, "update", _update_spec),
    ):
        method.__name__, method.__qualname__ = name, f"{cls.__name__}.{name}"
        setattr(cls, name, method)


_attach()
