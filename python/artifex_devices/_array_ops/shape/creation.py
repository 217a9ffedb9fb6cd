# SPDX-License-Identifier: Apache-2.0
"""New Arrays with the shape and the sharding of others: zeros_like, ones_like, empty_like and full_like."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._array_ops.core.arguments import check_order
from artifex_devices._array_ops.core.blocks import Box, allocate
from artifex_devices._array_ops.core.dispatch import implements
from artifex_devices._array_ops.core.layout import sharding_with
from artifex_devices._array_ops.core.reading import Source, assemble
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array, Device, NamedSharding, Sharding, SingleDeviceSharding

ZERO = object()  # the value of zeros, for any dtype


def filled(operation: str, shape: Any, value: Any, dtype: Any, device: Any) -> Array:
    """A new Array full of one value, written on its own devices.

    Args:
        operation: Name for errors.
        shape: A tuple, or one size.
        value: A number, ZERO, or None for uninitialized memory.
        dtype: Dtype of the Array.
        device: None for the default device, a Device, or a Sharding, which may be replaced as by `fitting`.

    Raises:
        TypeError: device is something else; no device holds this dtype.
        ResourceExhaustedError: Out of memory (a MemoryError and a RuntimeError).
    """
    sizes = tuple(shape) if np.iterable(shape) else (shape,)
    if device is None:
        default = SingleDeviceSharding(_core._default_device())
        return _filled_at(operation, sizes, value, dtype, default, committed=False)
    if isinstance(device, Device):
        return _filled_at(operation, sizes, value, dtype, SingleDeviceSharding(device), committed=True)
    if isinstance(device, Sharding):
        return _filled_at(operation, sizes, value, dtype, fitting(device, sizes), committed=True)
    raise TypeError(
        f"{operation}: device is {safe_repr(device)} ({type(device).__name__}); expected None, a Device or a Sharding; "
        "take one from artifex_devices.devices() or from x.sharding"
    )


def fitting(device: Any, shape: tuple[int, ...]) -> Any:
    """`device` as the place of a new Array: a Sharding that does not divide `shape` becomes replicated on its mesh.

    So `device=x.device`, which is a Sharding where x is on several devices, takes any shape.
    """
    if not isinstance(device, NamedSharding):
        return device
    try:
        device.shard_shape(shape)
    except ValueError:
        return sharding_with(device, ())
    return device


def _filled_at(
    operation: str, shape: tuple[Any, ...], value: Any, dtype: Any, sharding: Sharding, *, committed: bool
) -> Array:
    if value is None:
        return allocate(operation, shape, np.dtype(dtype), sharding, committed=committed)[0]

    if value is ZERO:
        value = np.zeros((), dtype)  # some dtypes have no 0, but all have zero bits, as in NumPy

    def fill(out: NDArray[Any], box: Box, position: int) -> None:
        np.copyto(out, value, casting="unsafe")

    return assemble(operation, shape, np.dtype(dtype), sharding, committed=committed, fill=fill)


def _like(
    operation: str,
    a: Any,
    value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: Any = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Array:
    check_order(operation, order)
    kind = a.dtype if dtype is None else np.dtype(dtype)
    sizes = a.shape if shape is None else tuple(shape) if np.iterable(shape) else (shape,)
    if device is None and sizes == a.shape:
        return _filled_at(operation, sizes, value, kind, a.sharding, committed=a.committed)
    return filled(operation, sizes, value, kind, device)


def _register_like(function: Any, value: Any) -> None:
    implements(function)(lambda a, *args, **options: _like(function.__name__, a, value, *args, **options))


_register_like(np.zeros_like, ZERO)
_register_like(np.ones_like, 1)
_register_like(np.empty_like, None)


@implements(np.full_like)
def _full_like(a: Any, fill_value: Any, *args: Any, **options: Any) -> Array:
    """np.full_like; a fill value with dimensions is broadcast."""
    if np.ndim(fill_value) == 0:
        value = np.asarray(fill_value) if isinstance(fill_value, Array) else fill_value
        return _like("full_like", a, value, *args, **options)
    result = _like("full_like", a, None, *args, **options)
    values = np.broadcast_to(np.asarray(fill_value), result.shape)
    source = Source("full_like", values, result.sharding)
    return assemble(
        "full_like", result.shape, result.dtype, result.sharding, committed=result.committed, fill=source.copy_box
    )
