# SPDX-License-Identifier: Apache-2.0
"""The extension `xp.fft`: the functions of numpy.fft on Arrays.

A dimension that is transformed is replicated first if it is sharded; other dimensions stay sharded.

Example:
    >>> import numpy as np, artifex_devices as ad
    >>> x = ad.device_put(np.array([1.0, 0.0, 0.0, 0.0]))
    >>> x.__array_namespace__().fft.rfft(x)
    Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex128)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from artifex_devices._core import Array
from artifex_devices._placement.target import Target
from artifex_devices.array_api import exports
from artifex_devices.array_api.creation import dtype_or_default, placed

__all__ = ["fftfreq", "rfftfreq"]


def __getattr__(name: str) -> Any:
    return exports.find(__name__, np.fft, name)


def __dir__() -> list[str]:
    return sorted([*__all__, *exports.names(np.fft)])


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: Target = None) -> Array:
    """Implements np.fft.fftfreq: the frequencies of the n values of a transform, placed on `device`.

    Example:
        >>> from artifex_devices import array_api as xp
        >>> xp.fft.fftfreq(4, d=0.5)
        Array([ 0. ,  0.5, -1. , -0.5], dtype=float64)
    """
    return placed("fftfreq", np.fft.fftfreq(n, d).astype(dtype_or_default(dtype)), device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: Target = None) -> Array:
    """Implements np.fft.rfftfreq: the frequencies of a transform of n real values, placed on `device`.

    Example:
        >>> from artifex_devices import array_api as xp
        >>> xp.fft.rfftfreq(4, d=0.5)
        Array([0. , 0.5, 1. ], dtype=float64)
    """
    return placed("rfftfreq", np.fft.rfftfreq(n, d).astype(dtype_or_default(dtype)), device)
