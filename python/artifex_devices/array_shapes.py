# SPDX-License-Identifier: Apache-2.0
"""Array's methods that change its shape or multiply it; what they do is in `array_ops`, loaded at the first use."""

from __future__ import annotations

from typing import Any

import numpy as np

from artifex_devices._core import Array

__all__: list[str] = []


def _sizes(given: tuple[Any, ...]) -> Any:
    """x.reshape(2, 3) means the same as x.reshape((2, 3))."""
    return given[0] if len(given) == 1 else given


def _transposed(self: Array) -> Array:
    """The dimensions in reverse order; their cuts go with them."""
    return np.transpose(self)  # type: ignore[no-any-return]


def _matrix_transposed(self: Array) -> Array:
    """The last two dimensions change places."""
    return np.matrix_transpose(self)  # type: ignore[no-any-return]


def _transpose(self: Array, *axes: Any) -> Array:
    """The dimensions in another order; the cuts go with them.

    Args:
        *axes: The dimensions in their new order, as ints or as one tuple; none of them: reversed.

    Returns:
        An Array; x itself where nothing moves.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> ad.device_put(np.ones((2, 3, 4))).transpose(0, 2, 1).shape
        (2, 4, 3)
    """
    return np.transpose(self, _sizes(axes) if axes else None)


def _reshape(self: Array, *shape: Any, order: str = "C", copy: bool | None = None) -> Array:
    """The same elements in another shape, on the same memory.

    Args:
        *shape: Sizes, as ints or as one tuple; one of them may be -1.
        order: "C".
        copy: True for memory of its own.

    Returns:
        An Array whose dimensions are cut as those whose place they take.

    Raises:
        ValueError: The sizes are for another number of elements.
        ShardingTypeError: A device would need elements of another one; the text names the dimensions (a ValueError).

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> ad.device_put(np.arange(6)).reshape(2, -1).shape
        (2, 3)
    """
    return np.reshape(self, _sizes(shape), order, copy=copy)  # type: ignore[call-overload,no-any-return]


def _ravel(self: Array, order: str = "C") -> Array:
    """The elements in one dimension, on the same memory; as reshape(-1)."""
    return np.ravel(self, order)  # type: ignore[call-overload,no-any-return]


def _flatten(self: Array, order: str = "C") -> Array:
    """The elements in one dimension, copied."""
    from artifex_devices.array_ops.reshaping import flatten

    return flatten(self, order)  # type: ignore[no-any-return]


def _squeeze(self: Array, axis: Any = None) -> Array:
    """Without the dimensions of size 1 (or those of them that axis names), on the same memory."""
    return np.squeeze(self, axis)  # type: ignore[call-overload,no-any-return]


def _swapaxes(self: Array, axis1: int, axis2: int) -> Array:
    """Two dimensions change places."""
    return np.swapaxes(self, axis1, axis2)  # type: ignore[call-overload,no-any-return]


def _dot(self: Array, b: Any, out: Any = None) -> Any:
    """np.dot(x, b): each device multiplies what it holds, only partial sums travel."""
    return np.dot(self, b, out)


def _diagonal(self: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonal of two dimensions, as the last dimension of a new Array."""
    return np.diagonal(self, offset, axis1, axis2)  # type: ignore[call-overload,no-any-return]


def _trace(self: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    """The sum of a diagonal."""
    return np.trace(self, offset, axis1, axis2, dtype, out)  # type: ignore[call-overload]


def _repeat(self: Array, repeats: Any, axis: Any = None) -> Array:
    """Each element several times, next to itself."""
    return np.repeat(self, repeats, axis)  # type: ignore[call-overload,no-any-return]


def attach() -> None:
    """Gives Array the properties T and mT, and the methods."""
    Array.T = property(_transposed)  # type: ignore[attr-defined]
    Array.mT = property(_matrix_transposed)  # type: ignore[attr-defined]
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
        _repeat,
    ):
        name = method.__name__[1:]
        method.__name__, method.__qualname__ = name, f"Array.{name}"
        setattr(Array, name, method)
