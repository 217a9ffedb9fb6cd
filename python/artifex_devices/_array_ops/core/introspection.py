# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions that describe arrays, and functions whose own Python code works for Arrays too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from artifex_devices._array_ops.core import blocks
from artifex_devices._array_ops.core.registry import implements, implements_each
from artifex_devices._base.argument_types import Casting, Operand
from artifex_devices._core import Array, internal

# NumPy's code reads attributes, or calls functions that are implemented here.
_WITH_OWN_CODE: tuple[Any, ...] = (
    *(np.shape, np.ndim, np.size, np.common_type, np.iscomplexobj, np.isrealobj, np.rollaxis),
    *(np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values, np.vstack, np.hstack, np.dstack),
    *(np.linalg.diagonal, np.linalg.matmul, np.linalg.tensordot, np.linalg.trace, np.linalg.vecdot),
)
for _function in _WITH_OWN_CODE:
    implements(_function)(_function._implementation)


@implements(np.result_type)
def _result_type(*arrays_and_dtypes: Any) -> Any:
    samples = [np.ones((1,) * x.ndim, x.dtype) if isinstance(x, Array) else x for x in arrays_and_dtypes]
    return np.result_type(*samples)


@implements(np.min_scalar_type)
def _min_scalar_type(a: Operand) -> Any:
    return a.dtype if a.ndim else np.min_scalar_type(np.asarray(a))


@implements(np.can_cast)
def _can_cast(from_: Any, to: Any, casting: Casting = "safe") -> bool:
    source, target = (x.dtype if isinstance(x, Array) else x for x in (from_, to))
    return bool(np.can_cast(source, target, casting))


@implements_each(np.may_share_memory, np.shares_memory)
def _shares_memory(function: Callable[..., Any], a: ArrayLike, b: ArrayLike, /, *max_work: Any, **named: Any) -> bool:
    return any(function(x, y, *max_work, **named) for x in _memory(a) for y in _memory(b))


def _memory(x: object) -> list[Any]:
    """Returns the ndarrays on its memory: an Array's shards, and its full value if np.asarray(x) has cached it."""
    if not isinstance(x, Array):
        return [x]
    value = internal.cached_host_value(x)
    return [*blocks.local_arrays("shares_memory", x), *([] if value is None else [value])]


@implements_each(np.array_repr, np.array_str)
def _text(
    function: object,
    a: object = None,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
    *,
    arr: object = None,  # NumPy's name in array_repr
) -> str:
    with np.printoptions(linewidth=max_line_width, precision=precision, suppress=suppress_small):  # None: unchanged
        return (repr if function is np.array_repr else str)(arr if a is None else a)


@implements(np.array2string)
def _array2string(a: object, *args: Any, **kwargs: Any) -> str:
    return np.array2string(np.asarray(a), *args, **kwargs)
