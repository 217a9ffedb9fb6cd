# SPDX-License-Identifier: Apache-2.0
"""device_put_sharded and device_put_replicated: one value for each device, stacked along a new first dimension."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from artifex_devices._base.checks import check_sequence, failure, wrong_type, wrong_value
from artifex_devices._base.leaf_types import PyTree, Tree
from artifex_devices._core import Device, Mesh, NamedSharding, PartitionSpec
from artifex_devices._core.internal import array_from_parts
from artifex_devices._placement.device_put import device_put
from artifex_devices._runtime.device_arguments import check_devices
from artifex_devices.tree_util import tree_flatten, tree_map, tree_unflatten

AXIS = "device"


def device_put_sharded(sharded_values: Sequence[PyTree], devices: Sequence[Device], indices: object = None) -> PyTree:
    """Puts each value on its device and stacks them: value i is row i of the result.

    Args:
        sharded_values: Sequence with a value for each device: arrays of one shape and dtype, or trees of these with
            one structure.
        devices: A different Device for each value.
        indices: None, or the row of each value in the result: a permutation of 0 .. n - 1.

    Returns:
        An Array of shape `(n, *shape)`, sharded along its first dimension over a mesh of `devices` with the axis
        "device"; for trees a tree of such Arrays.

    Raises:
        ValueError: Numbers of values and devices differ, or structures, shapes or dtypes of values; the text lists the
            differences. devices is empty or repeats one; indices is not a permutation.
        TypeError: sharded_values is not a sequence; an entry of devices is not a Device; a value is not an array of
            numbers.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(2):
        ...     ad.device_put_sharded([np.zeros(3), np.ones(3)], ad.devices()).tolist()
        [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    """
    name = "device_put_sharded"
    if isinstance(sharded_values, (str, bytes)) or not isinstance(sharded_values, Sequence):
        expected = "a sequence with one value for each device"
        raise wrong_type(name, "sharded_values", sharded_values, expected, "write list(values)")
    found = _some_devices(name, devices)
    if len(sharded_values) != len(found):
        raise failure(
            ValueError,
            name,
            f"{len(sharded_values)} values for {len(found)} devices",
            expected="one for each device",
            fix="give as many of both",
        )
    order = _rows(name, indices, len(found))
    values = [sharded_values[i] for i in order]
    found = [found[i] for i in order]
    leaves_of, structures = zip(*map(tree_flatten, values), strict=True)
    treedef = structures[0]
    for number, structure in zip(order, structures, strict=True):
        if structure != treedef:
            raise failure(
                ValueError,
                name,
                f"sharded_values[{number}] is a tree of another structure than sharded_values[{order[0]}]",
                expected=treedef,
                got=structure,
                fix="give trees of one structure",
            )
    stacked = []
    for parts in zip(*leaves_of, strict=True):
        placed = [device_put(part, device) for part, device in zip(parts, found, strict=True)]
        ours = [array is not part for array, part in zip(placed, parts, strict=True)]
        stacked.append(_stack(name, placed, found, ours))
    return tree_unflatten(treedef, stacked)


def device_put_replicated(x: Tree, devices: Sequence[Device]) -> PyTree:
    """Puts a value on each device and stacks the copies along a new first dimension.

    Devices that share memory share one copy of the bytes.

    Args:
        x: An array or a number, or a tree of arrays and numbers.
        devices: Devices, all different.

    Returns:
        An Array of shape `(n, *shape)`, sharded along its first dimension over a mesh of `devices` with the axis
        "device"; for a tree a tree of such Arrays.

    Raises:
        ValueError: devices is empty or repeats one.
        TypeError: An entry of devices is not a Device; a leaf is not an array of numbers.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(2):
        ...     ad.device_put_replicated(np.arange(3), ad.devices()).tolist()
        [[0, 1, 2], [0, 1, 2]]
    """
    name = "device_put_replicated"
    found = _some_devices(name, devices)

    def replicate(leaf: object) -> Any:
        first = device_put(leaf, found[0])
        placed = [first, *(device_put(first, device) for device in found[1:])]
        return _stack(name, placed, found, [first is not leaf, *[True] * (len(found) - 1)])

    return tree_map(replicate, x)


def _some_devices(operation: str, listed: object) -> list[Device]:
    if isinstance(listed, (str, bytes)) or not isinstance(listed, (Sequence, np.ndarray)):
        fix = "write artifex_devices.devices()"
        raise wrong_type(operation, "devices", listed, "a list of Devices", fix, ValueError)
    found = check_devices(operation, listed)
    if not found:
        raise ValueError(f"{operation}: devices is empty; expected at least one; write artifex_devices.devices()")
    own = found[0].client.process_index()
    remote = [str(device) for device in found if device.process_index != own]
    if remote:
        raise failure(
            ValueError,
            operation,
            f"{', '.join(remote)} of other processes than this process, {own}",
            expected="devices of this process",
            fix="write local_devices(), or use make_array_from_process_local_data",
        )
    return found


def _rows(name: str, indices: object, count: int) -> list[int]:
    """Returns the number of the value for each row."""
    if indices is None:
        return list(range(count))
    fix = "leave it out to stack the values in their order"
    rows = [index(row) for row in check_sequence(name, "indices", indices, "None or a row for each value", fix)]
    if sorted(rows) != list(range(count)):
        raise wrong_value(name, "indices", rows, f"each of 0 to {count - 1} once", fix)
    return [rows.index(row) for row in range(count)]


def _stack(operation: str, placed: list[Any], devices: list[Device], ours: list[bool]) -> Any:
    mesh = Mesh(np.array(devices, object), (AXIS,))
    shape = (len(devices), *placed[0].shape)
    sharding = NamedSharding(mesh, PartitionSpec(AXIS))
    return array_from_parts(operation, shape, sharding, placed, None, is_stack=True, ours=ours)
