# SPDX-License-Identifier: Apache-2.0
"""Arrays that span several processes, from the data of each process. Imported at the first use."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from artifex_devices import _core
from artifex_devices._base.clearable_cache import clearable_cache
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array, Sharding, _array_from_callback
from artifex_devices._runtime.scopes import transfer_guard_host_to_device

Shape = tuple[int, ...]
_process_counts = clearable_cache(maxsize=1024)(_core._process_counts)


def _global_shape(operation: str, sharding: Sharding, local: Shape, name: str) -> Shape:
    """The global shape, where each process has its part only; ValueError where the parts do not determine it."""
    counts = _process_counts(sharding, len(local))
    unknown = [d for d, count in enumerate(counts) if count is None]
    if unknown:
        raise ValueError(
            f"{operation}: {name}local shape {local} does not determine the global shape: in dimension "
            f"{', '.join(map(str, unknown))} of {sharding} the processes hold different numbers of parts, or "
            "overlapping ones; expected equal numbers of distinct parts; give global_shape"
        )
    return tuple(size * count for size, count in zip(local, counts, strict=True) if count is not None)


def array_from_local_data(operation: str, sharding: Sharding, data: Any, global_shape: Any, name: str = "") -> Array:
    """An Array of which this process gives its part.

    Args:
        operation: Name of the operation, for messages.
        sharding: Sharding over devices of several processes.
        data: ndarray: in each dimension either all of it, or this process's parts one after the other.
        global_shape: Global shape, or None where `data` determines it.
        name: Name of the leaf, for messages.

    Raises:
        ValueError: Sizes do not fit (the text lists all dimensions), or this process has none of the devices.
    """
    value = np.asarray(data)
    if not sharding.has_addressable_devices:
        raise ValueError(
            f"{operation}: {name}no device of {sharding} is of this process, "
            f"{_core._current_client().process_index()}; expected at least one; call it in processes that have some, "
            "or use make_array_from_callback with dtype"
        )
    if global_shape is None:
        shape = _global_shape(operation, sharding, value.shape, name)
    else:
        shape = _checked_shape(operation, global_shape, value.ndim, name)
    starts = _core._process_starts(sharding, shape)
    part = sharding.shard_shape(shape)
    is_global = [size == full for size, full in zip(value.shape, shape, strict=True)]
    wrong = [
        f"dimension {d}: global {shape[d]}, this process's parts {len(starts[d]) * part[d]}, data {value.shape[d]}"
        for d in range(value.ndim)
        if not is_global[d] and value.shape[d] != len(starts[d]) * part[d]
    ]
    if wrong:
        raise ValueError(
            f"{operation}: {name}the data does not fit {sharding}; expected in each dimension the global size or that "
            f"of this process's parts together, got {'; '.join(wrong)}; give this process's part of the global array"
        )
    _core._check_transfer("host_to_device", True, value.shape, value.dtype, "host", sharding, operation)

    def block(index: tuple[slice, ...]) -> npt.NDArray[Any]:
        return value[tuple(own if is_global[d] else _local(own, starts[d], part[d]) for d, own in enumerate(index))]

    with transfer_guard_host_to_device("allow"):  # checked above, as an explicit transfer
        return _array_from_callback(operation, shape, sharding, block, value.dtype)


def _local(part: slice, starts: list[int], size: int) -> slice:
    begin = starts.index(part.start or 0) * size
    return slice(begin, begin + size)


def _checked_shape(operation: str, global_shape: Any, ndim: int, name: str) -> Shape:
    shape = tuple(global_shape)
    if len(shape) != ndim or not all(isinstance(size, (int, np.integer)) for size in shape):
        raise ValueError(
            f"{operation}: {name}global_shape does not fit the data; expected {ndim} sizes, got "
            f"{safe_repr(global_shape)}; give one for each dimension of the data"
        )
    return shape
