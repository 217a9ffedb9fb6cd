# SPDX-License-Identifier: Apache-2.0
"""Array's methods that change its shape or multiply it; what they do is in `array_ops`, loaded at the first use."""

from __future__ import annotations

from typing import Any

from artifex_devices._core import Array

__all__: list[str] = []


def _sizes(given: tuple[Any, ...]) -> Any:
    """x.reshape(2, 3) means the same as x.reshape((2, 3))."""
    return given[0] if len(given) == 1 else given


def _transposed(self: Array) -> Array:
    """The dimensions in reverse order; their cuts go with them."""
    from artifex_devices._array_ops.shape.rearranging import transpose

    return transpose(self)


def _matrix_transposed(self: Array) -> Array:
    """The last two dimensions change places."""
    from artifex_devices._array_ops.shape.rearranging import matrix_transpose

    return matrix_transpose(self)


def _transpose(self: Array, *axes: Any) -> Array:
    """The dimensions in another order; the cuts go with them.

    Args:
        self: The Array.
        *axes: The dimensions in their new order, as ints or as one tuple; none of them: reversed.

    Returns:
        An Array; x itself where nothing moves.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> ad.device_put(np.ones((2, 3, 4))).transpose(0, 2, 1).shape
        (2, 4, 3)
    """
    from artifex_devices._array_ops.shape.rearranging import transpose

    return transpose(self, _sizes(axes) if axes else None)


def _reshape(self: Array, *shape: Any, order: str = "C", copy: bool | None = None, out_sharding: Any = None) -> Array:
    """The same elements in another shape, on the same memory.

    Args:
        self: The Array.
        *shape: Sizes, as ints or as one tuple; one of them may be -1.
        order: "C".
        copy: True for memory of its own.
        out_sharding: NamedSharding or PartitionSpec of the result, which is moved to it. Where the shards do not allow
            the new shape, the whole Array is gathered on each of its devices first.

    Returns:
        An Array whose dimensions are cut as those whose place they take, or as out_sharding says.

    Raises:
        ValueError: The sizes are for another number of elements.
        ShardingTypeError: A device would need elements of another one; the text names the dimensions (a ValueError).

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> ad.device_put(np.arange(6)).reshape(2, -1).shape
        (2, 3)
    """
    from artifex_devices._array_ops.shape.reshaping import reshape

    if out_sharding is not None:
        from artifex_devices._array_ops.core.layout import with_out_sharding

        return with_out_sharding(self, lambda x: reshape(x, _sizes(shape), order, copy=copy), out_sharding)
    result: Array = reshape(self, _sizes(shape), order, copy=copy)
    return result


def _ravel(self: Array, order: str = "C", *, out_sharding: Any = None) -> Array:
    """The elements in one dimension, on the same memory; as reshape(-1), with its out_sharding."""
    from artifex_devices._array_ops.core.layout import with_out_sharding
    from artifex_devices._array_ops.shape.reshaping import ravel

    return with_out_sharding(self, lambda x: ravel(x, order), out_sharding)


def _flatten(self: Array, order: str = "C") -> Array:
    """The elements in one dimension, copied."""
    from artifex_devices._array_ops.shape.reshaping import flatten

    result: Array = flatten(self, order)
    return result


def _squeeze(self: Array, axis: Any = None) -> Array:
    """Without the dimensions of size 1 (or those of them that axis names), on the same memory."""
    from artifex_devices._array_ops.shape.reshaping import squeeze

    return squeeze(self, axis)


def _swapaxes(self: Array, axis1: int, axis2: int) -> Array:
    """Two dimensions change places."""
    from artifex_devices._array_ops.shape.rearranging import swapaxes

    return swapaxes(self, axis1, axis2)


def _dot(self: Array, b: Any, out: Any = None) -> Any:
    """np.dot(x, b): each device multiplies what it holds, only partial sums travel."""
    from artifex_devices._array_ops.linalg.matrix_products import dot

    return dot(self, b, out)


def _diagonal(self: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonal of two dimensions, as the last dimension of a new Array."""
    from artifex_devices._array_ops.shape.diagonals import diagonal

    return diagonal(self, offset, axis1, axis2)


def _trace(self: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    """The sum of a diagonal."""
    from artifex_devices._array_ops.shape.diagonals import trace

    return trace(self, offset, axis1, axis2, dtype, out)


def attach() -> None:
    """Gives Array the properties T and mT, and the methods."""
    for name, getter in (("T", _transposed), ("mT", _matrix_transposed)):
        setattr(Array, name, property(getter))
    for method in (
        _transpose,
        _reshape,
        _ravel,
        _flatten,
        _squeeze,
        _swapaxes,
        _dot,
        _diagonal,
        _trace,
    ):
        name = method.__name__[1:]
        method.__name__, method.__qualname__ = name, f"Array.{name}"
        setattr(Array, name, method)
