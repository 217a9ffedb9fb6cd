# SPDX-License-Identifier: Apache-2.0
"""Element-wise functions of NumPy that are not ufuncs: fix, sinc and i0, and those that look elements up in a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from artifex_devices._array_ops.core.arguments import array_operand, as_array, on_host
from artifex_devices._array_ops.core.auto_axes import whole_operands
from artifex_devices._array_ops.core.registry import implements, implements_each
from artifex_devices._array_ops.elementwise.ufuncs import map_elements
from artifex_devices._base.argument_types import Out
from artifex_devices._core import Array


def _map(operation: str, function: Callable[[NDArray[Any]], Any], x: Array, dtype: Any = None) -> Array:
    """Returns function(x), computed on each shard; the dtype of the result is that of NumPy."""
    if dtype is None:
        dtype = function(np.ones(1, x.dtype)).dtype

    def compute(outputs: Any, parts: Any) -> None:
        outputs[0][...] = function(parts[0])

    return map_elements(operation, compute, [x], (dtype,))[0]


@implements(np.fix)
def _fix(x: ArrayLike, out: Out = None) -> Any:
    return np.trunc(x, out=out)


@implements_each(np.sinc, np.i0)
def _of_one(function: Callable[..., Any], x: ArrayLike) -> Array:
    return _map(function.__name__, function, array_operand(function.__name__, x))


@implements(np.interp)
def _interp(
    x: ArrayLike, xp: ArrayLike, fp: ArrayLike, left: Any = None, right: Any = None, period: float | None = None
) -> Array:
    points, values = _tables("interp", xp=xp, fp=fp)
    return _map(
        "interp", lambda part: np.interp(part, points, values, left, right, period), as_array("interp", x, [x, xp, fp])
    )


@implements(np.digitize)
def _digitize(x: ArrayLike, bins: ArrayLike, right: bool = False) -> Array:
    (edges,) = _tables("digitize", bins=bins)
    return _map("digitize", lambda part: np.digitize(part, edges, right), as_array("digitize", x, [x, bins]))


@implements(np.isin)
def _isin(
    element: ArrayLike, test_elements: ArrayLike, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Array:
    (known,) = _tables("isin", test_elements=test_elements)
    x = as_array("isin", element, [element, test_elements])
    return _map("isin", lambda part: np.isin(part, known, assume_unique, invert, kind=kind), x, np.dtype(bool))


def _tables(operation: str, **tables: ArrayLike) -> list[NDArray[Any]]:
    """Returns the arguments that every element is compared with as ndarrays; a sharded Array is gathered first."""
    whole = whole_operands(operation, *((table, range(np.ndim(table)), name) for name, table in tables.items()))
    return [on_host(operation, table, name) for name, table in zip(tables, whole, strict=True)]
