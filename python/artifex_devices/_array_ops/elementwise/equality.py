# SPDX-License-Identifier: Apache-2.0
"""One answer for two Arrays: allclose, array_equal, array_equiv."""

from __future__ import annotations

from typing import Any

import numpy as np

from artifex_devices._array_ops.core.arguments import whole_array
from artifex_devices._array_ops.core.dispatch import implements, operand
from artifex_devices._array_ops.core.layout import home_of
from artifex_devices._core import Array

__all__: list[str] = []


@implements(np.allclose)
def _allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    return np.all(np.isclose(a, b, rtol, atol, equal_nan))


@implements(np.array_equal)
def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    one, two = operand("array_equal", a1), operand("array_equal", a2)
    if _shape(one) != _shape(two):
        return _false("array_equal", one, two)
    return _all_equal("array_equal", one, two, equal_nan)


@implements(np.array_equiv)
def _array_equiv(a1: Any, a2: Any) -> Any:
    one, two = operand("array_equiv", a1), operand("array_equiv", a2)
    try:
        np.broadcast_shapes(_shape(one), _shape(two))
    except ValueError:
        return _false("array_equiv", one, two)
    return _all_equal("array_equiv", one, two, False)


def _all_equal(operation: str, one: Any, two: Any, equal_nan: bool) -> Any:
    equal = np.equal(one, two)
    if equal_nan and _has_nan(one) and _has_nan(two):
        equal = np.logical_or(equal, np.logical_and(np.isnan(one), np.isnan(two)))
    return np.all(equal)


def _shape(x: Any) -> tuple[int, ...]:
    return getattr(x, "shape", ())


def _has_nan(x: Any) -> bool:
    return isinstance(x, (float, complex)) or getattr(x, "dtype", np.dtype(bool)).kind not in "biu"


def _false(operation: str, one: Any, two: Any) -> Array:
    home = home_of(operation, [x for x in (one, two) if isinstance(x, Array)])
    return whole_array(operation, (), False, np.bool_, home)
