# SPDX-License-Identifier: Apache-2.0
"""Moves the operands of NumPy functions over Auto axes where the function cannot use their shardings, with a warning.

Which operands move follows from specs and shapes, so all processes of a job decide alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from artifex_devices._array_ops.core.arguments import on_host, replicated_array
from artifex_devices._array_ops.core.blocks import check_move
from artifex_devices._array_ops.core.operand_sharding import (
    any_explicit,
    common_devices,
    is_split,
    num_parts,
    placed_as,
    sharding_with,
    spec_of,
)
from artifex_devices._base.caller import warn_user
from artifex_devices._base.checks import failure
from artifex_devices._base.raised_exceptions import context_manager
from artifex_devices._core import Array, NamedSharding, Sharding, internal
from artifex_devices._placement.reshard import reshard
from artifex_devices.config import config
from artifex_devices.errors import ResourceExhaustedError, ShardingTypeError

_SETTING = "auto_axes_moves"
_are_refused: ContextVar[bool] = ContextVar("moves over Auto axes are refused", default=False)
_NUMBERS = "biufcV"  # kinds of dtypes that an Array can have; V for ml_dtypes


def whole_along(operation: str, x: Array, axes: Sequence[int]) -> Array:
    """Returns x with these dimensions whole, because a function works along them; moves it over Auto axes.

    Raises:
        ShardingTypeError: One of the dimensions is sharded, and `moved_over_auto` refuses to move x.
    """
    return x if not _sharded(x, axes) else whole_operands(operation, (x, axes, "x"))[0]


def whole_operands(operation: str, *operands: tuple[Any, Sequence[int], str]) -> list[Any]:
    """Applies `whole_along` to several operands with their dimensions and names. Some operands are Arrays."""
    wanted = {n: x for n, (x, axes, _) in enumerate(operands) if isinstance(x, Array) and _sharded(x, axes)}
    found = [x for x, _, _ in operands]
    if wanted:
        refusal = _refusal(operation, *operands[min(wanted)])
        moves = [(x, _target(x, operands[n][1])) for n, x in wanted.items()]
        for n, copy in zip(wanted, moved_over_auto(moves, refusal), strict=True):
            found[n] = copy
    return found


def readable(operation: str, x: Array) -> Array:
    """Returns an Array all of whose tiles are in this process: x, replicated if it spans processes."""
    return x if x.is_fully_addressable else whole_along(operation, x, range(x.ndim))


def _sharded(x: Array, axes: Sequence[int]) -> list[int]:
    spec = spec_of(x)
    return [d for d in axes if is_split(x.sharding, spec[d])]


def _target(x: Array, axes: Sequence[int]) -> Sharding:
    """Returns the sharding of x with these dimensions whole.

    The mesh axes of each shard another dimension instead, if one is unsharded and of a size that they divide: devices
    then exchange parts, and no device holds more than before.
    """
    spec = list(spec_of(x))
    for d in _sharded(x, axes):
        names, spec[d] = spec[d], ()
        parts = num_parts(x.sharding, names)
        others = [i for i, size in enumerate(x.shape) if i not in axes and not spec[i] and size % parts == 0]
        if others:
            spec[others[0]] = names
    return sharding_with(x.sharding, tuple(spec))


def _refusal(operation: str, x: Array, axes: Sequence[int], name: str) -> Exception:
    """Returns the error for an operand that is sharded along one of these dimensions; it has the sharding to use."""
    spec = spec_of(x)
    details = ", ".join(f"dimension {d} over {spec[d]}" for d in _sharded(x, axes))
    target = _target(x, axes)
    entries = target.spec if isinstance(target, NamedSharding) else target
    subject = "a dimension that it works along" if name == "x" else name
    return failure(
        ShardingTypeError,
        operation,
        f"{subject} is sharded",
        expected=f"unsharded dimensions {tuple(axes)} of an Array of shape {x.shape}",
        got=details,
        fix=(
            f"move it first: ad.reshard({name}, ad.NamedSharding({name}.sharding.mesh, ad.{entries})), or gather: "
            f"np.asarray({name})"
        ),
    )


def call_on_host(
    name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], refusal: Exception
) -> Any:
    """Calls a function that has no implementation for Arrays with ndarrays, and replicates the arrays that it returns.

    They are placed on the devices of the operands. Raises `refusal` where `moved_over_auto` does.
    """
    arrays = _arrays_of((args, kwargs))
    if not arrays:  # they are in a container of another kind
        raise refusal
    devices = common_devices(name, arrays)
    replicated = moved_over_auto([(x, sharding_with(x.sharding, ())) for x in arrays], refusal)
    host = {id(x): on_host(name, copy, "x") for x, copy in zip(arrays, replicated, strict=True)}
    result = function(*_replaced(args, host), **_replaced(kwargs, host))

    def placed(value: Any) -> Any:
        if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in _NUMBERS:
            return replicated_array(name, np.asarray(value), devices)
        return value

    return _mapped(result, placed)


def moved_over_auto(moves: Sequence[tuple[Array, Sharding]], refusal: Exception) -> list[Array]:
    """Moves operands to shardings that a function can use, and warns of it once; replicated ones do not move.

    Raises:
        Exception: `refusal`, where an Array is sharded over Explicit axes, the setting `auto_axes_moves` is "error", or
            a device lacks the memory.
    """
    is_explicit = any(any_explicit(x.sharding, axes) for x, _ in moves for axes in spec_of(x))
    setting = "error" if _are_refused.get() else config.read(_SETTING)
    if is_explicit or setting == "error":
        raise refusal
    operation, _, reason = str(refusal).partition(": ")
    moving = {(id(x), target): x for x, target in moves if not x.is_fully_replicated}
    for (_, target), x in moving.items():
        check_move(operation, x, target)
    try:
        copies = {key: internal.moved(x, key[1], x.committed) for key, x in moving.items()}
    except ResourceExhaustedError as exhausted:
        raise refusal from exhausted
    if copies and setting == "warn":
        size = sum(math.prod(x.sharding.shard_shape(x.shape)) * x.dtype.itemsize for x in copies.values())
        verb = "replicated" if all(x.is_fully_replicated for x in copies.values()) else "gathered"
        warn_user(
            f"{operation}: {size} bytes are {verb} on each device, because {reason}; "
            f'ad.config.update("{_SETTING}", "allow") allows such moves without a warning'
        )
    return [copies.get((id(x), target), x) for x, target in moves]


@context_manager
def refused_moves() -> Generator[None, None, None]:
    """Makes moves in the block errors, whatever the setting is."""
    token = _are_refused.set(True)
    try:
        yield
    finally:
        _are_refused.reset(token)


def with_out_sharding(x: Array, change: Callable[[Array], Array], out_sharding: object) -> Array:
    """Returns change(x), placed by out_sharding unless that is None.

    If the shards of x do not allow the change, x is replicated on its devices first.
    """
    if out_sharding is None:
        return change(x)
    try:
        with refused_moves():
            result = change(x)
    except ShardingTypeError:
        result = change(reshard(x, sharding_with(x.sharding, ())))
    return placed_as(result, x, out_sharding)


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
