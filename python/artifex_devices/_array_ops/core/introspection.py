# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions that describe arrays: shape, dtypes and their promotion, shared memory, text."""

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


def _register_on_samples(function: Any) -> None:
    """Registers a function of dtypes: NumPy answers for ndarrays with one element."""
    implements(function)(lambda *args, **named: function(*map(_sample, (*args, *named.values()))))


for _function in (np.result_type, np.common_type, np.iscomplexobj, np.isrealobj):
    _register_on_samples(_function)


@implements(np.min_scalar_type)
def _min_scalar_type(a: Any) -> Any:
    return a.dtype if a.ndim else np.min_scalar_type(np.asarray(a))


@implements(np.can_cast)
def _can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return bool(np.can_cast(_dtype(from_), _dtype(to), casting))


def _dtype(x: Any) -> Any:
    return x.dtype if isinstance(x, Array) else x


def _sample(x: Any) -> Any:
    return np.ones((1,) * x.ndim, x.dtype) if isinstance(x, Array) else x


def _register_memory_test(function: Any, max_work: int) -> None:
    def shares(a: Any, b: Any, /, max_work: Any = max_work) -> bool:
        return any(function(x, y, max_work) for x in _memory(a) for y in _memory(b))

    implements(function)(shares)


_register_memory_test(np.may_share_memory, 0)
_register_memory_test(np.shares_memory, -1)


def _memory(x: Any) -> list[Any]:
    """The ndarrays on its memory: an Array's shards, and its full value if np.asarray(x) has cached it."""
    if not isinstance(x, Array):
        return [x]
    value = _core._cached_host_value(x)
    return [*blocks.local_arrays(x), *([] if value is None else [value])]


def _register_text(function: Any, text_of: Any) -> None:
    def text(
        a: Any = None,
        max_line_width: Any = None,
        precision: Any = None,
        suppress_small: Any = None,
        *,
        arr: Any = None,  # NumPy's name in array_repr
    ) -> str:
        named = {"linewidth": max_line_width, "precision": precision, "suppress": suppress_small}
        with np.printoptions(**{name: value for name, value in named.items() if value is not None}):
            return str(text_of(arr if a is None else a))

    implements(function)(text)


_register_text(np.array_repr, repr)
_register_text(np.array_str, str)


@implements(np.array2string)
def _array2string(a: Any, *args: Any, **kwargs: Any) -> str:
    return np.array2string(np.asarray(a), *args, **kwargs)
