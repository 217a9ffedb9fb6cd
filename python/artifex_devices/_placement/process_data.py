# SPDX-License-Identifier: Apache-2.0
"""Arrays over several processes out of what each of them has. Imported when the first one is made."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt

from artifex_devices import _core
from artifex_devices._base.clearable_cache import remembered
from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Array, Sharding, _array_from_callback
from artifex_devices._runtime.scopes import transfer_guard_host_to_device

__all__ = ["array_from_local_data"]

Shape = tuple[int, ...]


@remembered(maxsize=1024)
def _processes_along(sharding: Sharding, ndim: int) -> tuple[int | None, ...]:
    """In how many parts the processes cut each dimension; None where they do not have equally many or share some.

    Processes that hold the same part count once, as do parts that a process cuts further among its devices.
    """
    if sharding.is_fully_addressable or sharding.is_fully_replicated:
        return (1,) * ndim
    # As long as there are devices in each dimension: any spec divides that.
    boxes = sharding.devices_indices_map((sharding.num_devices,) * ndim)
    counts: list[int | None] = []
    for d in range(ndim):
        parts: dict[int, set[tuple[Any, Any]]] = defaultdict(set)
        for device, box in boxes.items():
            parts[device.process_index].add((box[d].start, box[d].stop))
        groups = {frozenset(of_process) for of_process in parts.values()}
        distinct = set().union(*groups)
        uniform = len({len(group) for group in groups}) == 1 and sum(map(len, groups)) == len(distinct)
        counts.append(len(groups) if uniform else None)
    return tuple(counts)


def _global_shape(operation: str, sharding: Sharding, local: Shape, name: str) -> Shape:
    """The shape of the whole, where each process has its part only.

    Raises:
        ValueError: The processes' parts of a dimension differ in number or overlap.
    """
    counts = _processes_along(sharding, len(local))
    unknown = [d for d, count in enumerate(counts) if count is None]
    if unknown:
        raise ValueError(
            f"{operation}: {name}the shape of the whole does not follow from local shape {local}: in dimension "
            f"{', '.join(map(str, unknown))} of {sharding} the processes hold different numbers of parts, or "
            "overlapping ones; expected equal numbers of distinct parts; give global_shape"
        )
    return tuple(size * count for size, count in zip(local, counts, strict=True) if count is not None)


def _starts(sharding: Sharding, shape: Shape) -> list[list[int]]:
    """Where this process's parts of each dimension begin, ascending."""
    boxes = sharding.addressable_devices_indices_map(shape).values()
    return [sorted({box[d].start or 0 for box in boxes}) for d in range(len(shape))]


def array_from_local_data(operation: str, sharding: Sharding, data: Any, global_shape: Any, name: str = "") -> Array:
    """Makes an Array of which this process gives its part.

    Args:
        operation: Begins messages.
        sharding: Over devices of several processes.
        data: ndarray: in each dimension either the whole, or this process's parts one after the other.
        global_shape: Of the whole; None where it follows.
        name: Of the leaf, for messages.

    Raises:
        ValueError: Sizes do not fit; the text lists all dimensions. No device is of this process.
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
    starts = _starts(sharding, shape)
    part = sharding.shard_shape(shape)
    is_whole = [size == whole for size, whole in zip(value.shape, shape, strict=True)]
    wrong = [
        f"dimension {d}: global {shape[d]}, this process's parts {len(starts[d]) * part[d]}, data {value.shape[d]}"
        for d in range(value.ndim)
        if not is_whole[d] and value.shape[d] != len(starts[d]) * part[d]
    ]
    if wrong:
        raise ValueError(
            f"{operation}: {name}the data does not fit {sharding}; expected in each dimension the size of the whole or "
            f"that of this process's parts together, got {'; '.join(wrong)}; give this process's part of the whole"
        )
    _core._check_transfer("host_to_device", True, value.shape, value.dtype, "host", sharding, operation)

    def block(index: tuple[slice, ...]) -> npt.NDArray[Any]:
        return value[tuple(own if is_whole[d] else _local(own, starts[d], part[d]) for d, own in enumerate(index))]

    with transfer_guard_host_to_device("allow"):  # asked above, as an explicit transfer
        return _array_from_callback(operation, shape, sharding, block, value.dtype)


def _local(part: slice, starts: list[int], size: int) -> slice:
    begin = starts.index(part.start or 0) * size
    return slice(begin, begin + size)


def _checked_shape(operation: str, given: Any, ndim: int, name: str) -> Shape:
    shape = tuple(given)
    if len(shape) != ndim or not all(isinstance(size, (int, np.integer)) for size in shape):
        raise ValueError(
            f"{operation}: {name}global_shape does not fit the data; expected {ndim} sizes, got {shown(given)}; give "
            "one for each dimension of the data"
        )
    return shape
