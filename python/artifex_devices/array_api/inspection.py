# SPDX-License-Identifier: Apache-2.0
"""What `__array_namespace_info__()` of the Array API returns."""

from __future__ import annotations

from typing import Any

import numpy as np

from artifex_devices import _core
from artifex_devices._core import Device
from artifex_devices.array_api.creation import default_dtype

__all__ = ["Info"]

_NAMES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
)


class Info:
    """Answers to the standard's questions about an implementation."""

    def capabilities(self) -> dict[str, Any]:
        """The optional parts of the standard that are supported."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """The device of arrays for which none is named."""
        device: Device = _core._default_device()
        return device

    def devices(self) -> list[Device]:
        """All devices."""
        from artifex_devices._runtime.devices import devices

        return devices()

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtype of each kind of Python number."""
        return {
            "real floating": default_dtype(np.float64),
            "complex floating": default_dtype(np.complex128),
            "integral": default_dtype(np.int64),
            "indexing": np.dtype(np.intp),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes of a kind, as isdtype names it, by name; None is all."""
        found = {name: np.dtype(name) for name in _NAMES}
        return found if kind is None else {name: d for name, d in found.items() if np.isdtype(d, kind)}
