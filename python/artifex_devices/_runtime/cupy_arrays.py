# SPDX-License-Identifier: Apache-2.0
"""The memory of CUDA devices as CuPy arrays, and calls on the GPU of such an array."""

from __future__ import annotations

import contextlib
import functools
import importlib
from typing import Any

import numpy as np

from artifex_devices._base.checks import failure
from artifex_devices._core import Array, internal

_INSTALL = "pip install 'artifex_devices[cuda]'"


class _Memory:
    """Memory of a GPU for CuPy, which keeps this object, and so the memory, alive."""

    def __init__(self, interface: dict[str, Any], owner: object) -> None:
        self.__cuda_array_interface__ = interface
        self._owner = owner


def cupy_blocks(operation: str, x: Array, *, writable: bool = False, some: bool = False) -> list[Any] | None:
    """Returns CuPy arrays on this process's distinct buffers of an Array on CUDA devices, or None for other Arrays.

    Only the function that created the Array by internal.empty may write to them. With `some`, other tiles may be in
    other processes.

    Raises:
        TypeError: CuPy is not installed, or has no such dtype.
    """
    buffers = internal.gpu_buffers(x, writable, some)
    if buffers is None:
        return None
    cupy = _cupy(operation)
    if x.dtype.kind not in "biufc" and not _has_dtype(cupy, x.dtype):
        raise failure(
            TypeError,
            operation,
            f"CuPy has no dtype {x.dtype}",
            expected="a dtype that it has",
            fix="convert it before it is placed, or move it: device_put(x, devices('cpu')[0])",
        )
    blocks = []
    for interface, owner, ordinal in buffers:
        with cupy.cuda.Device(ordinal):
            if x.dtype.kind in "biufc":
                blocks.append(cupy.asarray(_Memory(interface, owner)))
            else:  # the interface has no name for it
                same_size = {**interface, "typestr": f"<u{x.dtype.itemsize}"}
                blocks.append(cupy.asarray(_Memory(same_size, owner)).view(x.dtype))
    return blocks


@functools.cache
def _has_dtype(cupy: Any, dtype: np.dtype[Any]) -> bool:
    """Returns whether CuPy computes with a dtype of ml_dtypes: bfloat16, from CuPy 14 on."""
    try:
        return bool(cupy.zeros(1, dtype).dtype == dtype)
    except (TypeError, ValueError):
        return False


def is_on_gpu(x: object) -> bool:
    """Returns whether a value is a CuPy array."""
    return type(x).__module__.partition(".")[0] == "cupy"


def on_gpu_of(x: Any) -> contextlib.AbstractContextManager[Any]:
    """Returns a context in which CuPy computes on the GPU of a CuPy array."""
    device: contextlib.AbstractContextManager[Any] = x.device
    return device


def _cupy(operation: str) -> Any:
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        raise failure(
            TypeError,
            operation,
            f"an Array is on CUDA devices, where CuPy computes, and CuPy cannot be imported ({error})",
            expected="CuPy, or Arrays in memory of the host",
            fix=f"install it: {_INSTALL}, or move the Array: device_put(x, devices('cpu')[0])",
        ) from None
