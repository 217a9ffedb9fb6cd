# SPDX-License-Identifier: Apache-2.0
"""NumPy's questions about arrays: shape, dtypes and their promotion, shared memory, text."""

from __future__ import annotations

from typing import Any

import numpy as np

from artifex_devices import _core
from artifex_devices._array_ops.core import blocks
from artifex_devices._array_ops.core.dispatch import implements
from artifex_devices._core import Array


@implements(np.shape)
def _shape(a: Any) -> tuple[int, ...]:
    return tuple(a.shape)


@implements(np.ndim)
def _ndim(a: Any) -> int:
    return int(a.ndim)


@implements(np.size)
def _size(a: Any, axis: Any = None) -> int:
    return int(np.size(np.broadcast_to(np.int8(0), a.shape), axis))


@implements(np.result_type)
def _result_type(*arrays_and_dtypes: Any) -> Any:
    return np.result_type(*(_sample(x) for x in arrays_and_dtypes))


@implements(np.min_scalar_type)
def _min_scalar_type(a: Any) -> Any:
    return a.dtype if a.ndim else np.min_scalar_type(np.asarray(a))


@implements(np.can_cast)
def _can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return bool(np.can_cast(_dtype(from_), _dtype(to), casting))


@implements(np.common_type)
def _common_type(*arrays: Any) -> Any:
    return np.common_type(*(_sample(x) for x in arrays))


@implements(np.iscomplexobj)
def _iscomplexobj(x: Any) -> bool:
    return bool(np.iscomplexobj(_sample(x)))


@implements(np.isrealobj)
def _isrealobj(x: Any) -> bool:
    return bool(np.isrealobj(_sample(x)))


def _dtype(x: Any) -> Any:
    return x.dtype if isinstance(x, Array) else x


def _sample(x: Any) -> Any:
    return np.ones((1,) * x.ndim, x.dtype) if isinstance(x, Array) else x


@implements(np.may_share_memory)
def _may_share_memory(a: Any, b: Any, /, max_work: Any = 0) -> bool:
    return any(np.may_share_memory(x, y, max_work) for x in _memory(a) for y in _memory(b))


@implements(np.shares_memory)
def _shares_memory(a: Any, b: Any, /, max_work: Any = -1) -> bool:
    return any(np.shares_memory(x, y, max_work) for x in _memory(a) for y in _memory(b))


def _memory(x: Any) -> list[Any]:
    """The ndarrays that show its memory: an Array's shards, and its full value once np.asarray(x) has cached it."""
    if not isinstance(x, Array):
        return [x]
    value = _core._cached_host_value(x)
    return [*blocks.local_arrays(x), *([] if value is None else [value])]


@implements(np.array_repr)
def _array_repr(arr: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    with np.printoptions(**_options(max_line_width, precision, suppress_small)):
        return repr(arr)


@implements(np.array_str)
def _array_str(a: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    with np.printoptions(**_options(max_line_width, precision, suppress_small)):
        return str(a)


def _options(width: Any, precision: Any, suppress: Any) -> dict[str, Any]:
    named = {"linewidth": width, "precision": precision, "suppress": suppress}
    return {name: value for name, value in named.items() if value is not None}


@implements(np.array2string)
def _array2string(a: Any, *args: Any, **kwargs: Any) -> str:
    return np.array2string(np.asarray(a), *args, **kwargs)
