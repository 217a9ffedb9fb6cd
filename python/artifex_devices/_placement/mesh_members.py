# SPDX-License-Identifier: Apache-2.0
"""Members of meshes, shardings and specs that are made of other members: axes by type, and copies with changes."""

from __future__ import annotations

import collections.abc
from collections.abc import Mapping
from inspect import cleandoc
from typing import Any

import numpy.typing

from artifex_devices._base.checks import MAX_DIMENSIONS, bounded_list, failure, wrong_type
from artifex_devices._core import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec, Sharding


def _axes_of(kind: AxisType) -> property:
    def axes(self: Any) -> tuple[Any, ...]:
        return tuple(name for name, each in zip(self.axis_names, self.axis_types, strict=True) if each is kind)

    return property(axes, doc=f"Names of the axes of type {kind.name} (tuple).")


def _are_all_axes(kind: AxisType) -> property:
    def are_all(self: Any) -> bool:
        return not self.empty and all(each is kind for each in self.axis_types)

    return property(are_all, doc=f"Whether every axis is of type {kind.name}; False without axes.")


def _update_mesh(
    self: Mesh,
    devices: numpy.typing.NDArray[Any] | collections.abc.Sequence[Any] | None = None,
    axis_names: collections.abc.Hashable | collections.abc.Sequence[collections.abc.Hashable] | None = None,
    axis_types: AxisType | collections.abc.Sequence[AxisType] | None = None,
) -> Mesh:
    """Returns a mesh with other devices, names or axis types. Raises TypeError and ValueError as Mesh does.

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


def _abstract_mesh(self: AbstractMesh) -> AbstractMesh:
    """Returns the mesh itself."""
    hash(self)  # raises where __init__ has not run
    return self


def _update_abstract_mesh(
    self: AbstractMesh,
    axis_sizes: collections.abc.Sequence[int] | None = None,
    axis_names: collections.abc.Hashable | collections.abc.Sequence[collections.abc.Hashable] | None = None,
    axis_types: AxisType | collections.abc.Sequence[AxisType] | None = None,
) -> AbstractMesh:
    """Returns a mesh with other sizes, names or axis types. Raises TypeError and ValueError as AbstractMesh does.

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


def _update_axis_types(self: AbstractMesh, name_to_type: object) -> AbstractMesh:
    """Returns a mesh with other types of the axes in `name_to_type`, a dict of axis name to AxisType.

    Raises:
        TypeError: name_to_type is not a mapping, or a value is not an AxisType.

    Example:
        >>> from artifex_devices.sharding import AbstractMesh, AxisType
        >>> AbstractMesh((2, 4), ("x", "y")).update_axis_types({"y": AxisType.Explicit}).explicit_axes
        ('y',)
    """
    if not isinstance(name_to_type, Mapping):
        expected, fix = "a dict of axis name to AxisType", "write {'x': AxisType.Explicit}"
        raise wrong_type("update_axis_types", "name_to_type", name_to_type, expected, fix)
    types = [name_to_type.get(name, own) for name, own in zip(self.axis_names, self.axis_types, strict=True)]
    return AbstractMesh(self.axis_sizes, self.axis_names, types)


def _check_compatible_aval(self: Sharding, aval_shape: Any) -> None:
    """Raises ValueError unless a value of this shape has a dimension for each entry of the spec.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(2):
        ...     ad.NamedSharding(ad.make_mesh((2,), ("x",)), ad.P("x")).check_compatible_aval((4, 3))
    """
    rank = len(self.spec) if isinstance(self, NamedSharding) else 0
    dimensions = len(aval_shape)
    if dimensions < rank:
        problem = f"the value has too few dimensions for {self}"
        fix = "leave entries of the spec out" if dimensions else "write P() for a number"
        raise failure(
            ValueError,
            "check_compatible_aval",
            problem,
            expected=f"{rank} at least",
            got=str(dimensions),
            fix=fix,
        )


def _update_named_sharding(self: NamedSharding, **kwargs: Any) -> NamedSharding:
    """Returns a NamedSharding with another mesh, spec, memory_kind or uneven.

    The arguments are named: `mesh`, `spec` (a PartitionSpec or its entries), `memory_kind`, `uneven`.

    Raises:
        TypeError: An argument has another name.
        ValueError: As NamedSharding.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(2):
        ...     ad.NamedSharding(ad.make_mesh((2,), ("x",)), ad.P()).update(spec=ad.P("x")).spec
        P('x',)
    """
    own = {name: getattr(self, name) for name in ("mesh", "spec", "memory_kind", "uneven")}
    if unknown := sorted(kwargs.keys() - own.keys()):
        problem = f"unknown arguments {', '.join(unknown)}"
        expected = "mesh, spec, memory_kind or uneven"
        raise failure(TypeError, "update", problem, expected=expected, fix="check the spelling")
    own |= kwargs
    if not isinstance(own["spec"], PartitionSpec):
        own["spec"] = _spec_of("spec", own["spec"])
    return NamedSharding(own.pop("mesh"), own.pop("spec"), **own)


def _update_spec(self: PartitionSpec, partitions: collections.abc.Iterable[Any] | None = None) -> PartitionSpec:
    """Returns a PartitionSpec with other entries, or itself for None. Raises TypeError unless they are iterable.

    Example:
        >>> import artifex_devices as ad
        >>> ad.P("x").update(partitions=("y", None))
        P('y', None)
    """
    if partitions is None:
        len(self)  # raises where __init__ has not run
        return self
    if isinstance(partitions, (str, bytes)) or not hasattr(type(partitions), "__iter__"):
        raise wrong_type("update", "partitions", partitions, "a tuple of entries", "write partitions=('x', None)")
    return _spec_of("partitions", partitions)


def _spec_of(name: str, entries: collections.abc.Iterable[Any]) -> PartitionSpec:
    return PartitionSpec(*bounded_list("update", name, entries, MAX_DIMENSIONS, "join dimensions"))


def _set_members(cls: type, **members: Any) -> None:
    for name, member in members.items():
        if not isinstance(member, property):
            member.__name__, member.__qualname__ = name, f"{cls.__name__}.{name}"
            member.__doc__ = cleandoc(member.__doc__)  # as Python 3.13 does, for the stubs
        setattr(cls, name, member)


_BY_TYPE = {f"{kind.name.lower()}_axes": _axes_of(kind) for kind in AxisType}
_BY_TYPE |= {f"are_all_axes_{kind.name.lower()}": _are_all_axes(kind) for kind in AxisType}
_set_members(Mesh, update=_update_mesh, **_BY_TYPE)
_set_members(
    AbstractMesh,
    abstract_mesh=property(_abstract_mesh, doc="The mesh itself: it has no devices."),
    update=_update_abstract_mesh,
    update_axis_types=_update_axis_types,
    **_BY_TYPE,
)
_set_members(Sharding, check_compatible_aval=_check_compatible_aval)
_set_members(NamedSharding, update=_update_named_sharding)
_set_members(PartitionSpec, update=_update_spec)
