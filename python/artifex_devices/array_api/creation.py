# SPDX-License-Identifier: Apache-2.0
"""Creation functions of the Array API such as asarray, zeros and arange, and the standard's inspection functions.

If `device=` is a Sharding that does not divide the shape, the Array is replicated on its devices. Therefore
`device=x.device` works for any shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from artifex_devices._array_ops.shape.creation import ZERO, filled, fitting
from artifex_devices._base.argument_types import SupportsDLPack
from artifex_devices._base.checks import failure, wrong_type
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array, Device, internal
from artifex_devices._placement.device_put import device_put
from artifex_devices._placement.target import Target, resolve_target

# The dtypes that replace 64-bit dtypes with jax_enable_x64=False.
_NARROW: dict[Any, np.dtype[Any]] = {
    np.dtype(wide): np.dtype(narrow)
    for wide, narrow in (("int64", "int32"), ("uint64", "uint32"), ("float64", "float32"), ("complex128", "complex64"))
}


def asarray(
    obj: ArrayLike, /, *, dtype: DTypeLike | None = None, device: Target = None, copy: bool | None = None
) -> Array:
    """Converts any argument of np.asarray to an Array.

    Args:
        obj: An Array, ndarray, number, or nested lists.
        dtype: Dtype of the result; None does not change it.
        device: A target of `device_put`, or None for the device of an Array and the default device for host data.
        copy: True to copy always, False to raise if a copy is needed, None to copy if needed.

    Returns:
        The Array; obj itself if nothing changes.

    Raises:
        ValueError: copy is False, and the data must be copied.
        TypeError: obj is not an array of numbers, or device is not a target of `device_put`.
    """
    device = resolve_target("asarray", device, "device")
    if not isinstance(obj, Array):
        if copy is False:
            raise failure(
                ValueError,
                "asarray",
                "data on the host is copied to a device",
                expected="an Array for copy=False",
                got=type(obj).__name__,
                fix="leave copy out",
            )
        return placed("asarray", _host(obj, dtype), device)
    kind = obj.dtype if dtype is None else np.dtype(dtype)
    device = fitting(device, obj.shape)
    moves = device is not None and device not in (obj.sharding, obj.device)
    if copy is False and (moves or kind != obj.dtype):
        raise failure(
            ValueError,
            "asarray",
            "copy=False cannot change dtype or device",
            expected=f"{obj.dtype} on {obj.device}",
            got=f"{kind} on {device}",
            fix="leave copy out",
        )
    result: Any = obj if kind == obj.dtype else np.astype(obj, kind)  # type: ignore[call-overload]
    if moves:
        result = device_put(result, device)
    result = np.copy(result) if copy and result is obj else result
    return cast(Array, result)


def _host(obj: Any, dtype: DTypeLike | None) -> NDArray[Any]:
    if isinstance(obj, (list, tuple)):
        obj = _with_numbers(obj)
    value = np.asarray(obj, dtype=dtype)
    return _of_numbers("asarray", value) if dtype is None and not hasattr(obj, "dtype") else value


def _with_numbers(obj: object) -> Any:
    """Returns the lists, with ndarrays in place of Arrays."""
    if isinstance(obj, Array):
        return np.asarray(obj)
    return [_with_numbers(part) for part in obj] if isinstance(obj, (list, tuple)) else obj


def default_dtype(wide: type[np.generic]) -> np.dtype[Any]:
    """Returns the dtype of Python numbers: 32 bits if `jax_enable_x64` is off."""
    kind = np.dtype(wide)
    return kind if internal.scoped_option("jax_enable_x64") else _NARROW[kind]


def dtype_or_default(dtype: DTypeLike | None) -> np.dtype[Any]:
    """Returns the default float dtype for None, else the dtype after a placement (whose first narrowing warns)."""
    if dtype is None:
        return default_dtype(np.float64)
    kind = np.dtype(dtype)
    if kind not in _NARROW or internal.scoped_option("jax_enable_x64"):
        return kind
    placed: Array = device_put(np.zeros((), kind))
    return placed.dtype


def _of_numbers(operation: str, value: NDArray[Any]) -> NDArray[Any]:
    """Returns an ndarray of Python numbers, narrowed without a warning if `jax_enable_x64` is off."""
    if value.dtype not in _NARROW or internal.scoped_option("jax_enable_x64"):
        return value
    kind = _NARROW[value.dtype]
    if kind.kind in "iu" and value.size:
        limits = np.iinfo(kind)
        lowest, highest = int(value.min()), int(value.max())
        if lowest < limits.min or highest > limits.max:
            raise failure(
                OverflowError,
                operation,
                f"an int is too large for {kind}",
                expected=f"{limits.min} to {limits.max}",
                got=f"{lowest} to {highest}",
                fix="give a dtype of floats, or config.update('jax_enable_x64', True) for 64 bits",
            )
    return value.astype(kind)


def to_device(x: Array, device: Target, stream: object = None) -> Array:
    """Does the work of Array.to_device."""
    if stream is not None:
        raise failure(
            ValueError,
            "to_device",
            "streams are not supported",
            expected="None",
            got=safe_repr(stream),
            fix="leave it out and use block_until_ready()",
        )
    if device is None:
        raise wrong_type("to_device", "device", device, "a Device or a Sharding", "take one from x.device")
    moved: Array = device_put(x, fitting(resolve_target("to_device", device, "device"), x.shape))
    return moved


def placed(operation: str, value: NDArray[Any], device: Target) -> Array:
    """Places an ndarray on `device`, a target of device_put."""
    array: Array = device_put(value, fitting(resolve_target(operation, device, "device"), value.shape))
    return array


def zeros(shape: int | Sequence[int], *, dtype: DTypeLike | None = None, device: Target = None) -> Array:
    """Creates an Array of zeros, of the default float dtype if dtype is None."""
    return filled("zeros", shape, ZERO, dtype_or_default(dtype), device)


def ones(shape: int | Sequence[int], *, dtype: DTypeLike | None = None, device: Target = None) -> Array:
    """Creates an Array of ones, of the default float dtype if dtype is None."""
    return filled("ones", shape, 1, dtype_or_default(dtype), device)


def empty(shape: int | Sequence[int], *, dtype: DTypeLike | None = None, device: Target = None) -> Array:
    """Creates an Array of uninitialized elements, of the default float dtype if dtype is None."""
    return filled("empty", shape, None, dtype_or_default(dtype), device)


def full(
    shape: int | Sequence[int], fill_value: complex, *, dtype: DTypeLike | None = None, device: Target = None
) -> Array:
    """Creates an Array full of one value, with its dtype if dtype is None."""
    value = np.asarray(fill_value)
    if not hasattr(fill_value, "dtype"):
        value = _of_numbers("full", value) if dtype is None else value
    return filled("full", shape, value, dtype_or_default(value.dtype if dtype is None else dtype), device)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike | None = None,
    device: Target = None,
) -> Array:
    """Implements np.arange; the result is placed."""
    first, end = (0, start) if stop is None else (start, stop)
    value = np.arange(first, end, step, dtype=dtype)
    return placed("arange", _of_numbers("arange", value) if dtype is None else value, device)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: Target = None,
    endpoint: bool = True,
) -> Array:
    """Implements np.linspace; the result is placed."""
    value = np.linspace(start, stop, num, endpoint=endpoint, dtype=dtype)
    return placed("linspace", _of_numbers("linspace", value) if dtype is None else value, device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DTypeLike | None = None, device: Target = None
) -> Array:
    """Implements np.eye; the result is placed."""
    return placed("eye", np.eye(n_rows, n_cols, k, dtype=dtype_or_default(dtype)), device)


def from_dlpack(x: SupportsDLPack, /, *, device: Target = None, copy: bool | None = None) -> Array:
    """Creates an Array of anything with `__dlpack__`; the data is copied.

    Raises:
        ValueError: copy is False: a placement shares memory only where the caller asks for it.
    """
    other: Any = x
    return asarray(x if isinstance(x, Array) else np.from_dlpack(other), device=device, copy=copy)


_NAMES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
)


class Info:
    """Facts about this implementation of the standard."""

    def capabilities(self) -> dict[str, Any]:
        """Reports support for the optional parts of the standard."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Returns the device of arrays that are created without `device=`."""
        device: Device = internal.default_device()
        return device

    def devices(self) -> list[Device]:
        """Returns all devices."""
        from artifex_devices._runtime.devices import devices

        return devices()

    def default_dtypes(self, *, device: Target = None) -> dict[str, Any]:
        """Returns the dtype of each kind of Python number."""
        return {
            "real floating": default_dtype(np.float64),
            "complex floating": default_dtype(np.complex128),
            "integral": default_dtype(np.int64),
            "indexing": np.dtype(np.intp),
        }

    def dtypes(self, *, device: Target = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Any]:
        """Returns the dtypes of a kind of isdtype, or all dtypes for None, by name."""
        found = {name: np.dtype(name) for name in _NAMES}
        return found if kind is None else {name: d for name, d in found.items() if np.isdtype(d, kind)}
