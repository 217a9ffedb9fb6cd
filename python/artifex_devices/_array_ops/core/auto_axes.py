# SPDX-License-Identifier: Apache-2.0
"""Moves the operands of NumPy functions over Auto axes where the function cannot use their shardings, with a warning.

Which operands move follows from specs and shapes, so all processes of a job decide alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from artifex_devices._array_ops.core.arguments import on_host, replicated_array
from artifex_devices._array_ops.core.blocks import check_move
from artifex_devices._array_ops.core.operand_sharding import any_explicit, common_devices, sharding_with, spec_of
from artifex_devices._base.caller import warn_user
from artifex_devices._core import Array, internal
from artifex_devices.config import config
from artifex_devices.errors import ResourceExhaustedError

_SETTING = "auto_axes_moves"
_NUMBERS = "biufcV"  # kinds of dtypes that an Array can have; V for ml_dtypes


def call_with_replicated(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], refusal: Exception
) -> Any:
    """Replicates the Arrays that are sharded over Auto axes and calls the function again.

    Raises:
        Exception: `refusal`, where an Array is sharded over Explicit axes, nothing can move, the result must share
            memory (copy=False), the setting `auto_axes_moves` is "error", or a device lacks memory for the whole.
    """
    arrays = _arrays_of((args, kwargs))
    moved = [x for x in arrays if not x.is_fully_replicated]
    if not moved or kwargs.get("copy") is False:
        raise refusal
    replicated = _replicate(arrays, moved, refusal)
    return function(*_replaced(args, replicated), **_replaced(kwargs, replicated))


def call_on_host(
    name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], refusal: Exception
) -> Any:
    """Calls a function that has no implementation for Arrays with ndarrays, and replicates the arrays that it returns.

    They are placed on the devices of the operands. Raises as `call_with_replicated`.
    """
    arrays = _arrays_of((args, kwargs))
    if not arrays:  # they are in a container of another kind
        raise refusal
    devices = common_devices(name, arrays)
    replicated = _replicate(arrays, [x for x in arrays if not x.is_fully_replicated], refusal)
    host = {key: on_host(name, x, "x") for key, x in replicated.items()}
    result = function(*_replaced(args, host), **_replaced(kwargs, host))

    def placed(value: Any) -> Any:
        if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in _NUMBERS:
            return replicated_array(name, np.asarray(value), devices)
        return value

    return _mapped(result, placed)


def _replicate(arrays: Sequence[Array], moved: Sequence[Array], refusal: Exception) -> dict[int, Array]:
    """Returns the replicated Arrays by the id of each Array, and warns of the Arrays that it moves."""
    is_explicit = any(any_explicit(x.sharding, axes) for x in arrays for axes in spec_of(x))
    if is_explicit or config.read(_SETTING) == "error":
        raise refusal
    operation, _, reason = str(refusal).partition(": ")
    targets = [sharding_with(x.sharding, ()) for x in moved]
    for x, target in zip(moved, targets, strict=True):
        check_move(operation, x, target)
    try:
        copies = {id(x): internal.moved(x, to, x.committed) for x, to in zip(moved, targets, strict=True)}
    except ResourceExhaustedError as exhausted:
        raise refusal from exhausted
    if moved and config.read(_SETTING) == "warn":
        size = sum(x.nbytes for x in moved)
        warn_user(
            f"{operation}: {size} bytes are replicated on each device, because {reason}; "
            f'ad.config.update("{_SETTING}", "allow") allows such moves without a warning'
        )
    return {id(x): copies.get(id(x), x) for x in arrays}


def _arrays_of(value: Any) -> list[Array]:
    found: list[Array] = []
    _mapped(value, lambda part: found.append(part) if isinstance(part, Array) else None)
    return found


def _replaced(value: Any, by_id: Mapping[int, Any]) -> Any:
    return _mapped(value, lambda part: by_id.get(id(part), part))


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Applies `change` to the parts of lists, tuples and dicts, and keeps these containers."""
    if isinstance(value, dict):
        return {key: _mapped(part, change) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(part, change) for part in value))
    if type(value) in (list, tuple):
        return type(value)(_mapped(part, change) for part in value)
    return change(value)
