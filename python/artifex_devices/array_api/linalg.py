# SPDX-License-Identifier: Apache-2.0
"""The extension `xp.linalg`: the functions of numpy.linalg that support Arrays.

The leading dimensions of a stack stay sharded; sharded dimensions of the matrices are replicated first.

Example:
    >>> import numpy as np, artifex_devices as ad
    >>> x = ad.device_put(np.array([[2.0, 0.0], [0.0, 4.0]]))
    >>> x.__array_namespace__().linalg.inv(x)
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float64)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from artifex_devices.array_api import exports

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    return exports.find(__name__, np.linalg, name)


def __dir__() -> list[str]:
    return sorted(exports.names(np.linalg))
