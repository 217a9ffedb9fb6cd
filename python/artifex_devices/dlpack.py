# SPDX-License-Identifier: Apache-2.0
"""Arrays on the memory of other libraries by DLPack. For the other direction call `np.from_dlpack(array)`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from artifex_devices._base.argument_types import SupportsDLPack
from artifex_devices._base.checks import check_type, failure, wrong_type
from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices._core import Array, Device, Sharding, internal

__all__ = ["from_dlpack", "is_supported_dtype"]
add_public_lookup(__name__)

_HOST_DEVICE_TYPES = (1, 3, 11)  # DLPack: CPU, and host memory pinned for CUDA and ROCm
_CUDA = 2
_LEGACY_STREAM = 1  # the producer orders its work before that of this stream, which the import waits for
_NEWEST_VERSION = (1, 1)


def from_dlpack(
    external_array: SupportsDLPack, device: Device | Sharding | None = None, copy: bool | None = None
) -> Array:
    """Builds an Array from an array of another library with DLPack, such as NumPy, torch or JAX.

    The Array *shares the memory* if that is row-major and no other device is requested: nothing is copied, and the
    memory lives as long as the Array or a view of it. Writes to the memory change the Array, although operations assume
    that Arrays are immutable; use `copy=True` if the other library may write.

    Args:
        external_array: An object with `__dlpack__` and `__dlpack_device__`, in memory of the host or of a CUDA device.
        device: A Device or a sharding over one; default the first device, or the CUDA device where the memory is.
        copy: None copies only where needed, True always, False never.

    Returns:
        A committed Array.

    Raises:
        TypeError: The object lacks the DLPack methods, or they do not follow DLPack.
        BufferError: The memory belongs to another kind of device, or to a GPU outside of this program; the dtype has no
            counterpart, or the capsule is malformed.
        ValueError: `copy=False` and a copy is needed; `device` is a sharding over several devices.

    Example:
        >>> import numpy as np
        >>> from artifex_devices.dlpack import from_dlpack
        >>> source = np.arange(4.0)
        >>> np.shares_memory(from_dlpack(source), source), np.shares_memory(from_dlpack(source, copy=True), source)
        (True, False)
    """
    check_type("from_dlpack", "copy", copy, (bool, type(None)), "None, True or False", "leave it out")
    if not hasattr(external_array, "__dlpack__") or not hasattr(external_array, "__dlpack_device__"):
        expected = "an object with __dlpack__ and __dlpack_device__, such as a NumPy array"
        raise wrong_type("from_dlpack", "the array", external_array, expected, "place other data by device_put(x)")
    kind, number = _device_of(external_array.__dlpack_device__())
    options: dict[str, Any] = {}
    if kind == _CUDA:
        internal.check_cuda_device(number, device)
        options["stream"] = _LEGACY_STREAM
    export: Any = external_array.__dlpack__
    try:
        capsule = export(max_version=_NEWEST_VERSION, **options)
    except TypeError:  # from before DLPack 1.0
        capsule = export(**options)
    return internal.array_from_dlpack(capsule, device, copy)


_SUPPORTED = frozenset(
    [
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("bfloat16", "float16", "float32", "float64", "complex64", "complex128"),
    ]
)


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Returns whether arrays of a dtype can be exchanged by DLPack.

    These are bool, the integers, floats and complex numbers of NumPy, and bfloat16.

    Args:
        dtype: A dtype, its name or its scalar type.

    Raises:
        TypeError: The argument is None or not a dtype.

    Example:
        >>> from artifex_devices.dlpack import is_supported_dtype
        >>> is_supported_dtype("float32"), is_supported_dtype("S3")
        (True, False)
    """
    if dtype is None:  # NumPy would take it for float64
        raise TypeError("is_supported_dtype: dtype is None; expected a dtype or its name; write 'float32'")
    return np.dtype(dtype).name in _SUPPORTED


def _device_of(where: Any) -> tuple[int, int]:
    try:
        kind, number = (int(part) for part in where)
    except (TypeError, ValueError):
        expected = "a pair (device type, id) of integers"
        fix = "the object does not follow DLPack"
        raise wrong_type("from_dlpack", "the result of __dlpack_device__()", where, expected, fix) from None
    if kind not in (*_HOST_DEVICE_TYPES, _CUDA):
        raise failure(
            BufferError,
            "from_dlpack",
            f"the array is on DLPack device ({kind}, {number})",
            expected="host memory, (1, 0), or CUDA device n, (2, n)",
            fix="copy it to the host first, say by x.cpu()",
        )
    return kind, number
