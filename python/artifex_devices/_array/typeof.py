# SPDX-License-Identifier: Apache-2.0
"""typeof: the shape, dtype and sharding of a value as JAX writes them, such as float32[8@data,4]."""

from __future__ import annotations

from typing import Any

import numpy as np

from artifex_devices._array.shape_dtype import ShapeDtypeStruct
from artifex_devices._base.checks import wrong_type
from artifex_devices._base.public_path import public
from artifex_devices._core import AbstractMesh, Array, AxisType, NamedSharding, PartitionSpec, Sharding


class ShapedArray(ShapeDtypeStruct):
    """The type of a value, which `typeof` returns: a ShapeDtypeStruct that prints as float32[8@data,4].

    Example:
        >>> import artifex_devices as ad
        >>> str(ad.typeof(ad.ShapeDtypeStruct((8, 4), "float32")))
        'float32[8,4]'
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """Compares shape, dtype, sharding and weak_type with another ShapedArray."""
        return isinstance(other, ShapedArray) and self._key() == other._key()

    __hash__ = ShapeDtypeStruct.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles as the ShapeDtypeStruct that it is the type of."""
        return typeof, (ShapeDtypeStruct(*self._key()[:2], sharding=self.sharding, weak_type=self.weak_type),)

    def __str__(self) -> str:
        """Formats the type as JAX does; Auto axes are not shown."""
        spec = self.sharding.spec if isinstance(self.sharding, NamedSharding) else (None,) * self.ndim
        sizes = [f"{size}{_axes_text(entry)}" for size, entry in zip(self.shape, spec, strict=True)]
        return f"{'~' if self.weak_type else ''}{self.dtype.name}[{','.join(sizes)}]"

    def __repr__(self) -> str:
        """Formats the type as JAX does."""
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({str(self).removeprefix('~')}{weak})"


def _axes_text(entry: Any) -> str:
    if entry is None:
        return ""
    return f"@({','.join(map(str, entry))})" if isinstance(entry, tuple) else f"@{entry}"


@public("artifex_devices")
def typeof(x: object) -> ShapedArray:
    """Returns the type of a value: its shape, dtype and, over Explicit axes, its sharding without devices.

    Args:
        x: An Array, an ndarray, a NumPy or Python number, or a ShapeDtypeStruct.

    Returns:
        A ShapedArray. Its `sharding` is a NamedSharding over an AbstractMesh for a value on a mesh, whose spec has an
        entry for each dimension and names Explicit axes only; otherwise it is None.

    Raises:
        TypeError: `x` is another object.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(8):
        ...     mesh = ad.make_mesh((4, 2), ("data", "model"))
        ...     print(ad.typeof(ad.device_put(np.ones((8, 4), np.float32), ad.NamedSharding(mesh, ad.P("data")))))
        float32[8@data,4]
        >>> ad.typeof(np.float32(1)), ad.typeof(True)
        (ShapedArray(float32[]), ShapedArray(bool[]))
    """
    if isinstance(x, (Array, ShapeDtypeStruct)):
        sharding = _abstract(x.sharding, x.ndim)
        return ShapedArray(x.shape, x.dtype, sharding=sharding, weak_type=bool(getattr(x, "weak_type", False)))
    if isinstance(x, (np.ndarray, np.generic)):
        return ShapedArray(x.shape, x.dtype)
    if isinstance(x, (bool, int, float, complex)):
        return ShapedArray((), np.asarray(x).dtype, weak_type=not isinstance(x, bool))
    raise wrong_type("typeof", "x", x, "an Array, an ndarray or a number", "write ad.tree.map(ad.typeof, x) for a tree")


def _abstract(sharding: Sharding | None, ndim: int) -> NamedSharding | None:
    """Returns the sharding over the AbstractMesh of its mesh, with Explicit axes only."""
    if not isinstance(sharding, NamedSharding):
        return None
    mesh = sharding.mesh if isinstance(sharding.mesh, AbstractMesh) else sharding.mesh.abstract_mesh
    explicit = {name for name, kind in zip(mesh.axis_names, mesh.axis_types, strict=True) if kind == AxisType.Explicit}
    entries: list[Any] = []
    for entry in (*sharding.spec, *(None,) * (ndim - len(sharding.spec))):
        names = entry if isinstance(entry, tuple) else () if entry is None else (entry,)
        kept = tuple(name for name in names if name in explicit)
        entries.append(kept if len(kept) > 1 else kept[0] if kept else None)
    return NamedSharding(mesh, PartitionSpec(*entries), memory_kind=sharding.memory_kind, uneven=sharding.uneven)
