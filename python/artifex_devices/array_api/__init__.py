# SPDX-License-Identifier: Apache-2.0
"""The Array API standard (2024.12) for Arrays: the result of `x.__array_namespace__()`.

Functions are NumPy's own, which compute on the devices of the shards. If a function cannot use a sharding over
Auto axes, it replicates the Array first, because code for all array libraries cannot choose a placement. Creation
functions create Arrays on `device=`, a target of `device_put`. Each other NumPy function that supports Arrays has its
own name, such as `xp.pad`. Other functions are absent: `hasattr(xp, "extract")` is False.

Example:
    >>> import numpy as np, artifex_devices as ad
    >>> x = ad.device_put(np.array([1.0, 3.0]))
    >>> xp = x.__array_namespace__()
    >>> xp.add(x, xp.ones(2)), xp.__array_api_version__
    (Array([2., 4.], dtype=float64), '2024.12')
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from artifex_devices._base.checks import failure
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.array_api import exports, fft, linalg
from artifex_devices.array_api.creation import (
    Info,
    arange,
    asarray,
    empty,
    eye,
    from_dlpack,
    full,
    linspace,
    ones,
    zeros,
)
from artifex_devices.array_api.sorting import argsort, sort

# In addition to the functions of NumPy that support Arrays: exports.names(np).
# fmt: off
__all__ = [
    "arange", "argsort", "asarray", "bool", "broadcast_shapes", "can_cast", "complex64", "complex128", "e", "empty",
    "eye", "fft", "finfo", "float32", "float64", "from_dlpack", "full", "iinfo", "inf", "int8", "int16", "int32",
    "int64", "isdtype", "linalg", "linspace", "nan", "newaxis", "ones", "pi", "result_type", "sort", "uint8", "uint16",
    "uint32", "uint64", "zeros",
]
# fmt: on

__array_api_version__ = "2024.12"

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")

e = np.e
inf = np.inf
nan = np.nan
newaxis = None
pi = np.pi

bool = np.bool_
int8, int16, int32, int64 = np.int8, np.int16, np.int32, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
float32, float64 = np.float32, np.float64
complex64, complex128 = np.complex64, np.complex128

can_cast = np.can_cast
finfo = np.finfo
iinfo = np.iinfo
isdtype = np.isdtype
result_type = np.result_type
broadcast_shapes = np.broadcast_shapes


def namespace(api_version: str | None) -> Any:
    """Returns this module, for a supported version of the standard.

    Raises:
        ValueError: The version is not supported.
    """
    if api_version is not None and api_version not in _VERSIONS:
        raise failure(
            ValueError,
            "__array_namespace__",
            f"api_version {safe_repr(api_version)} is not known",
            expected=f"one of {', '.join(_VERSIONS)}",
            fix="leave it out",
        )
    return sys.modules[__name__]


def __getattr__(name: str) -> Any:
    return exports.find(__name__, np, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *exports.names(np)})


def __array_namespace_info__() -> Info:  # noqa: N807 - the standard's name
    """Returns facts about this implementation of the standard."""
    return Info()
