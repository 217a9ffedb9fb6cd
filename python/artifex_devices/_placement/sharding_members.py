# SPDX-License-Identifier: Apache-2.0
"""Members of shardings and PartitionSpecs that check a shape, or return one with something changed."""

from __future__ import annotations

import collections.abc
from typing import Any

from artifex_devices._base.safe_repr import shown
from artifex_devices._core import NamedSharding, PartitionSpec, Sharding

__all__: list[str] = []


def _check_compatible_aval(self: Sharding, aval_shape: collections.abc.Sequence[int]) -> None:
    """Checks that a value of this shape has a dimension for each entry of the spec.

    Raises:
        ValueError: It has too few.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(2):
        ...     ad.NamedSharding(ad.make_mesh((2,), ("x",)), ad.P("x")).check_compatible_aval((4, 3))
    """
    rank = len(self.spec) if isinstance(self, NamedSharding) else 0
    if len(aval_shape) < rank:
        hint = "write P() for a number" if not aval_shape else "leave entries of the spec out"
        raise ValueError(
            f"check_compatible_aval: the value has too few dimensions for {self}; expected {rank} at least, got "
            f"{len(aval_shape)}; {hint}"
        )


def _update_sharding(self: NamedSharding, **changes: Any) -> NamedSharding:
    """A NamedSharding with another mesh, spec, memory_kind or uneven; what is left out stays.

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


def _update_spec(self: PartitionSpec, partitions: collections.abc.Iterable[Any] | None = None) -> PartitionSpec:
    """A PartitionSpec with other entries; without them itself.

    Raises:
        TypeError: partitions cannot be iterated over.

    Example:
        >>> import artifex_devices as ad
        >>> ad.P("x").update(partitions=("y", None))
        P('y', None)
    """
    if partitions is None:
        return self
    if isinstance(partitions, str) or not isinstance(partitions, collections.abc.Iterable):
        raise TypeError(
            f"update: partitions is of type {type(partitions).__name__}; expected a tuple of entries, got "
            f"{shown(partitions)}; write partitions=('x', None)"
        )
    return PartitionSpec(*partitions)


def _attach() -> None:
    for cls, name, method in (
        (Sharding, "check_compatible_aval", _check_compatible_aval),
        (NamedSharding, "update", _update_sharding),
        (PartitionSpec, "update", _update_spec),
    ):
        method.__name__, method.__qualname__ = name, f"{cls.__name__}.{name}"
        setattr(cls, name, method)


_attach()
