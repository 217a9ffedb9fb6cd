# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries, such as JAX and torch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_CPU = 1  # kDLCPU of DLPack


def copy_of_foreign(x: object) -> NDArray[Any] | None:
    """Returns a copy of another library's array in host memory as an ndarray, and None for anything else.

    An array in the memory of another device is None too: reading it would be an unrequested transfer.
    """
    kind: Any = type(x)
    if hasattr(kind, "__dlpack_device__"):
        if int(kind.__dlpack_device__(x)[0]) != _CPU:
            return None
    elif not hasattr(kind, "__array__"):
        return None
    value = np.array(x)
    return None if value.dtype == object else value
