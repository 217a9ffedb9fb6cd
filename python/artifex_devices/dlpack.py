# SPDX-License-Identifier: Apache-2.0
"""Arrays out of other libraries' memory by DLPack. The other way is the consumer's: `np.from_dlpack(array)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from artifex_devices import _core
from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Array, Device, Sharding

__all__ = ["from_dlpack", "is_supported_dtype"]

_HOST_DEVICE_TYPES = (1, 3, 11)  # DLPack: CPU, and host memory pinned for CUDA and ROCm
_NEWEST_VERSION = (1, 1)


def from_dlpack(external_array: Any, device: Device | Sharding | None = None, copy: bool | None = None) -> Array:
    """Makes an Array of the memory of an array of another library: NumPy, torch, JAX, anything with DLPack.

    The Array *shows that memory* where it is row-major and no other device was asked for: nothing is copied, and the
    memory stays as long as the Array or a view of it. Who writes to it there writes into the Array, which everything
    here takes for immutable; give `copy=True` where that can happen.

    Args:
        external_array: an object with `__dlpack__` and `__dlpack_device__`, in host memory.
        device: a Device or a sharding over one; default the first device, where the memory counts as lying.
        copy: None copies only where needed, True always, False never.

    Returns:
        A committed Array.

    Raises:
        TypeError: no DLPack methods, or ones that return something else than DLPack says.
        BufferError: memory of another device than the host, a dtype without a counterpart, a malformed capsule.
        ValueError: `copy=False` and a copy is needed; `device` is a sharding over several devices.

    Example:
        >>> import numpy as np
        >>> from artifex_devices.dlpack import from_dlpack
        >>> source = np.arange(4.0)
        >>> np.shares_memory(from_dlpack(source), source), np.shares_memory(from_dlpack(source, copy=True), source)
        (True, False)
    """
    if copy is not None and not isinstance(copy, bool):
        raise TypeError(
            f"from_dlpack: copy is of type {type(copy).__name__}; expected None, True or False, got {shown(copy)}"
        )
    if not hasattr(external_array, "__dlpack__") or not hasattr(external_array, "__dlpack_device__"):
        raise TypeError(
            f"from_dlpack: the array is of type {type(external_array).__name__}; expected an object with __dlpack__ "
            "and __dlpack_device__, such as a NumPy array; place other data by device_put(x)"
        )
    _check_host(external_array.__dlpack_device__())
    return _core._array_from_dlpack(_capsule(external_array), device, copy)


_SUPPORTED = frozenset(
    [
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("bfloat16", "float16", "float32", "float64", "complex64", "complex128"),
    ]
)


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of a dtype can be exchanged by DLPack.

    These are bool, the integers, floats and complex numbers of NumPy, and bfloat16.

    Args:
        dtype: A dtype, its name or its scalar type.

    Raises:
        TypeError: It is None or not a dtype.

    Example:
        >>> from artifex_devices.dlpack import is_supported_dtype
        >>> is_supported_dtype("float32"), is_supported_dtype("S3")
        (True, False)
    """
    if dtype is None:  # NumPy would take it for float64
        raise TypeError("is_supported_dtype: dtype is None; expected a dtype or its name; write 'float32'")
    return np.dtype(dtype).name in _SUPPORTED


def _check_host(where: Any) -> None:
    try:
        kind, number = (int(part) for part in where)
    except (TypeError, ValueError):
        raise TypeError(
            f"from_dlpack: __dlpack_device__() gave {shown(where)}; expected a pair (device type, id) of integers; "
            "the object does not follow DLPack"
        ) from None
    if kind not in _HOST_DEVICE_TYPES:
        raise BufferError(
            f"from_dlpack: the array lies on DLPack device ({kind}, {number}); expected host memory, (1, 0); copy it "
            "to the host first, say by x.cpu()"
        )


def _capsule(external_array: Any) -> object:
    try:
        return external_array.__dlpack__(max_version=_NEWEST_VERSION)
    except TypeError:  # from before DLPack 1.0
        return external_array.__dlpack__()
