# SPDX-License-Identifier: Apache-2.0
"""New Arrays with the shape and the layout of others: zeros_like and its kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._array_ops.core.blocks import Box, allocate
from artifex_devices._array_ops.core.dispatch import implements
from artifex_devices._array_ops.core.layout import sharding_with
from artifex_devices._array_ops.core.reading import Source, assemble
from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Array, Device, NamedSharding, Sharding, SingleDeviceSharding

ZERO = object()  # what zeros are full of


def filled(operation: str, shape: Any, value: Any, dtype: Any, device: Any) -> Array:
    """A new Array full of one value, made where it lies.

    Args:
        operation: Name for errors.
        shape: A tuple, or one size.
        value: A number, ZERO, or None to leave the memory as it comes.
        dtype: Its dtype.
        device: None (the default device), a Device or a Sharding, as `fitting` takes it.

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
        f"{operation}: device is {shown(device)} ({type(device).__name__}); expected None, a Device or a Sharding; "
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
        value = np.zeros((), dtype)  # some dtypes have no 0: as in NumPy, their bits are

    def fill(out: NDArray[Any], box: Box, position: int) -> None:
        np.copyto(out, value, casting="unsafe")

    return assemble(operation, shape, np.dtype(dtype), sharding, committed=committed, fill=fill)


def _like(operation: str, a: Any, value: Any, dtype: Any, order: str, subok: Any, shape: Any, device: Any) -> Array:
    if order not in ("K", "C", "A"):
        raise TypeError(
            f"{operation}: order has no meaning on Arrays; expected 'K' or 'C', got {shown(order)}; leave it out"
        )
    kind = a.dtype if dtype is None else np.dtype(dtype)
    sizes = a.shape if shape is None else tuple(shape) if np.iterable(shape) else (shape,)
    if device is None and sizes == a.shape:
        return _filled_at(operation, sizes, value, kind, a.sharding, committed=a.committed)
    return filled(operation, sizes, value, kind, device)


@implements(np.zeros_like)
def _zeros_like(
    a: Any, dtype: Any = None, order: str = "K", subok: Any = True, shape: Any = None, *, device: Any = None
) -> Array:
    return _like("zeros_like", a, ZERO, dtype, order, subok, shape, device)


@implements(np.ones_like)
def _ones_like(
    a: Any, dtype: Any = None, order: str = "K", subok: Any = True, shape: Any = None, *, device: Any = None
) -> Array:
    return _like("ones_like", a, 1, dtype, order, subok, shape, device)


@implements(np.empty_like)
def _empty_like(
    prototype: Any, /, dtype: Any = None, order: str = "K", subok: Any = True, shape: Any = None, *, device: Any = None
) -> Array:
    return _like("empty_like", prototype, None, dtype, order, subok, shape, device)


@implements(np.full_like)
def _full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: Any = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Array:
    """np.full_like; a fill value with dimensions broadcasts."""
    if np.ndim(fill_value) == 0:
        value = np.asarray(fill_value) if isinstance(fill_value, Array) else fill_value
        return _like("full_like", a, value, dtype, order, subok, shape, device)
    result = _like("full_like", a, None, dtype, order, subok, shape, device)
    values = np.broadcast_to(np.asarray(fill_value), result.shape)
    source = Source("full_like", values, result.sharding)
    return assemble(
        "full_like", result.shape, result.dtype, result.sharding, committed=result.committed, fill=source.copy_box
    )
