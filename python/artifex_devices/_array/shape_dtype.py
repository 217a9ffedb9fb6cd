# SPDX-License-Identifier: Apache-2.0
"""ShapeDtypeStruct: the shape, dtype and sharding of an array without its data."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike

from artifex_devices._base.checks import MAX_DIMENSIONS, bounded_list, check_type, failure, wrong_type
from artifex_devices._base.public_path import public, unpickles
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Sharding
from artifex_devices._placement.mesh_context import sharding_of_spec
from artifex_devices.layout import Format, check_format

_PARTS = ("shape", "dtype", "sharding", "weak_type")


@public("artifex_devices")
class ShapeDtypeStruct:
    """The description of an array without its data and, with a sharding on an AbstractMesh, without devices. Immutable.

    Args:
        shape: Sizes, one int for each dimension.
        dtype: Any argument of np.dtype except None.
        sharding: None, a Sharding, a Format, or a PartitionSpec under set_mesh.
        weak_type: Stored and shown, as in JAX; it has no effect, because dtypes follow NumPy.

    Raises:
        TypeError: A size is not an integer; `dtype` is not a dtype.
        ValueError: dtype is None; a size is negative; sharding is not a sharding, or has more dimensions than shape.

    Example:
        >>> import artifex_devices as ad
        >>> mesh = ad.AbstractMesh((2, 4), ("x", "y"))
        >>> x = ad.ShapeDtypeStruct((8, 8), "float32", sharding=ad.NamedSharding(mesh, ad.P("x", "y")))
        >>> x.sharding.shard_shape(x.shape)
        (4, 2)
    """

    __slots__ = ("__weakref__", *_PARTS)

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    sharding: Sharding | None
    weak_type: bool

    def __init__(
        self, shape: Iterable[int], dtype: DTypeLike, *, sharding: object = None, weak_type: bool = False
    ) -> None:
        """See the class."""
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype is None; expected a dtype; give np.float32")
        try:
            sizes = tuple(map(operator.index, bounded_list("ShapeDtypeStruct", "shape", shape, MAX_DIMENSIONS)))
        except TypeError:
            fix = "write (8, 4)"
            raise wrong_type("ShapeDtypeStruct", "shape", shape, "a sequence of integers", fix) from None
        if any(size < 0 for size in sizes):
            raise ValueError(f"ShapeDtypeStruct: shape has a negative size; expected sizes of 0 or more, got {sizes}")
        rank = -1
        if isinstance(sharding, Format):
            rank = check_format("ShapeDtypeStruct", sharding)
            sharding = sharding.sharding
        sharding = sharding_of_spec("ShapeDtypeStruct", sharding)
        expected, fix = "a Sharding, a PartitionSpec or a Format", "give NamedSharding(mesh, P('data'))"
        check_type("ShapeDtypeStruct", "sharding", sharding, (Sharding, type(None)), expected, fix, ValueError)
        spec = getattr(sharding, "spec", ())
        if len(spec) > len(sizes) or rank not in (-1, len(sizes)):
            raise failure(
                ValueError,
                "ShapeDtypeStruct",
                "the sharding does not fit the shape",
                expected=f"one for {len(sizes)} dimensions",
                got=f"{safe_repr(sharding)} and shape {sizes}",
                fix="shorten the spec",
            )
        for name, value in zip(_PARTS, (sizes, np.dtype(dtype), sharding, bool(weak_type)), strict=True):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, *value: Any) -> NoReturn:
        """Raises RuntimeError, as in JAX."""
        raise RuntimeError(
            f"ShapeDtypeStruct: cannot change {name}: it is immutable; create a changed copy by .update()"
        )

    __delattr__ = __setattr__

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def format(self) -> Format:
        """The sharding as a Format without a layout."""
        return Format(None, self.sharding)

    def update(self, **changes: object) -> ShapeDtypeStruct:
        """Returns a copy with other values of some of shape, dtype, sharding and weak_type.

        Raises:
            TypeError: An argument has another name.
        """
        parts = dict(zip(_PARTS, self._key(), strict=True))
        unknown = sorted(set(changes) - set(parts))
        if unknown:
            raise TypeError(f"ShapeDtypeStruct.update: unknown arguments {unknown}; expected {', '.join(parts)}")
        values: dict[str, Any] = {**parts, **changes}
        return ShapeDtypeStruct(**values)

    def __len__(self) -> int:
        """Returns the first size; raises TypeError without dimensions."""
        if not self.shape:
            raise TypeError("len: a ShapeDtypeStruct without dimensions has no length; use .size")
        return self.shape[0]

    def _key(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.sharding, self.weak_type

    def __eq__(self, other: object) -> bool:
        """Compares shape, dtype, sharding and weak_type."""
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self) -> int:
        """Hashes the values that __eq__ compares."""
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles as its arguments."""
        return _remake, self._key()

    def _repr_html_(self) -> str:
        from artifex_devices._array.html import struct_html

        return struct_html(self.shape, self.dtype, self.sharding)

    def __repr__(self) -> str:
        """Formats the struct as JAX does."""
        sharding = "" if self.sharding is None else f", sharding={self.sharding!r}"
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{sharding}{weak})"


@unpickles("shape_dtype_struct")
def _remake(shape: tuple[int, ...], dtype: DTypeLike, sharding: Sharding | None, weak_type: bool) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(shape, dtype, sharding=sharding, weak_type=weak_type)
