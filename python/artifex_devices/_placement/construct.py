# SPDX-License-Identifier: Apache-2.0
"""Arrays built from parts: other Arrays, the results of a callback, or the data of each process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from artifex_devices import tree_util
from artifex_devices._base.checks import MAX_DIMENSIONS, bounded_list, check_callable, check_type, failure
from artifex_devices._base.clearable_cache import clearable_cache
from artifex_devices._base.leaf_types import PyTree, Tree
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array, NamedSharding, Sharding, internal
from artifex_devices._core.internal import array_from_callback, array_from_parts
from artifex_devices._placement.device_put import device_put
from artifex_devices._placement.target import PLACES, Target, TargetTree, resolve_target, sharding_for, sharding_of_new
from artifex_devices._runtime.scopes import transfer_guard_host_to_device
from artifex_devices._tree.prefix import per_leaf
from artifex_devices.layout import Format

_process_groups = clearable_cache(maxsize=1024)(internal.process_groups)
_process_parts = clearable_cache(maxsize=256)(internal.process_parts)


@overload
def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Target, arrays: Sequence[Array], *, dtype: DTypeLike | None = None
) -> Array: ...
@overload
def make_array_from_single_device_arrays(
    shape: Sequence[Array], sharding: Target, *, dtype: DTypeLike | None = None
) -> Array: ...
def make_array_from_single_device_arrays(
    shape: Any = None, sharding: Any = None, arrays: Sequence[Array] | None = None, *, dtype: DTypeLike | None = None
) -> Array:
    """Builds one Array from Arrays on one device each, without a copy.

    Both forms work: (shape, sharding, arrays), and (arrays, sharding) with the shape that follows from the parts.

    Args:
        shape: Shape of the global array; or the arrays, in the short form.
        sharding: A Sharding, a Format, or a PartitionSpec under set_mesh.
        arrays: List or tuple with one Array for each device of the sharding that is in this process, in any order: each
            is matched by its device. The other processes give the parts of their devices.
        dtype: None, or the dtype of all parts; required if no device is in this process.

    Returns:
        A committed Array on the parts' memory; the parts stay usable. Replicas are compared: they must hold the same
        bits.

    Raises:
        ValueError: Parts have a wrong count, device, dtype or shape, or replicas differ; the text lists all problems.
        RuntimeError: Parts were deleted.
        TypeError: An argument is of another type or missing.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(2):
        ...     sharding = ad.NamedSharding(ad.make_mesh((2,), ("data",)), ad.P("data"))
        ...     parts = [ad.device_put(np.full((1, 3), i), device) for i, device in enumerate(ad.devices())]
        ...     ad.make_array_from_single_device_arrays((2, 3), sharding, parts).tolist()
        [[0, 0, 0], [1, 1, 1]]
    """
    operation = "make_array_from_single_device_arrays"
    if arrays is None:
        arrays, shape = shape, None
        if isinstance(arrays, (list, tuple)) and arrays and all(isinstance(entry, int) for entry in arrays):
            raise TypeError(f"{operation}: arrays is missing; expected (shape, sharding, arrays) or (arrays, sharding)")
    check_type(operation, "arrays", arrays, (list, tuple), "a list or tuple of Arrays", "write list(arrays)")
    target = sharding_for(operation, "sharding", sharding, len(shape) if hasattr(shape, "__len__") else None)
    return array_from_parts(operation, shape, target, arrays, dtype)


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Target,
    data_callback: Callable[[tuple[slice, ...]], ArrayLike],
    dtype: DTypeLike | None = None,
) -> Array:
    """Builds an Array from a callback that returns the block of each device.

    Args:
        shape: Shape of the global array.
        sharding: A Sharding, a Format, or a PartitionSpec under set_mesh.
        data_callback: Function of the index of a block, a tuple of slices, that returns the block: an ndarray, a number
            or an Array. It is called once for each device of this process in mesh order, replicas included, but only
            once for a fully replicated array, as in JAX. The block is copied before the next call, and the callback may
            reuse one buffer. Its exceptions are passed on.
        dtype: None, or the dtype of all blocks; required if no device is in this process.

    Raises:
        ValueError: Blocks have a wrong shape or dtype, or replicas differ; the text lists all of them.
        IndivisibleError: The sharding does not divide the shape (a ValueError).
        TypeError: A block is not an array of numbers; sharding or data_callback is of another type.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> source = np.arange(16).reshape(8, 2)
        >>> with ad.simulate(8):
        ...     sharding = ad.NamedSharding(ad.make_mesh((8,), ("data",)), ad.P("data"))
        ...     x = ad.make_array_from_callback((8, 2), sharding, lambda index: source[index])
        ...     x.addressable_shards[3].data.tolist()
        [[6, 7]]
    """
    operation = "make_array_from_callback"
    fix = "write lambda index: source[index]"
    check_callable(operation, "data_callback", data_callback, "a function of an index", fix)
    target = sharding_for(operation, "sharding", sharding, len(shape) if hasattr(shape, "__len__") else None)
    return array_from_callback(operation, shape, target, lambda index: data_callback(index), dtype)


def make_array_from_process_local_data(sharding: TargetTree, local_data: Tree, global_shape: object = None) -> PyTree:
    """Builds Arrays from the data of each process.

    In each dimension the data is either the full extent (equal in all processes), or the parts of this process's
    devices: each distinct part once, in order. With one process the data is the global array.

    Args:
        sharding: A target of device_put other than None, or a prefix tree of such targets.
        local_data: An ndarray or a number, or a tree of ndarrays and numbers.
        global_shape: The shape of the global array, or a prefix tree of shapes. With None it follows from the data,
            taken as this process's part in each dimension that is sharded over processes. With a sharding of
            `uneven="last-short"` the last parts may be shorter: then the processes exchange their sizes, and all
            processes of the sharding must call it together.

    Returns:
        local_data with an Array for each leaf.

    Raises:
        ValueError: The data does not fit the sharding and global_shape, or global_shape does not follow because
            processes hold different numbers of parts; the text lists all problems. sharding is None.
        IndivisibleError: The sharding does not divide the global shape (a ValueError).

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(8):
        ...     sharding = ad.NamedSharding(ad.make_mesh((8,), ("data",)), ad.P("data"))
        ...     ad.make_array_from_process_local_data(sharding, np.ones((16, 4))).shape
        (16, 4)
    """
    operation = "make_array_from_process_local_data"
    if sharding is None:
        raise ValueError(f"{operation}: sharding is None; expected a Sharding; write NamedSharding(mesh, P('data'))")
    if internal.current_client().process_count() > 1:
        return _from_all_processes(operation, sharding, local_data, global_shape)
    if global_shape is not None:
        wrong = [
            f"leaf {name or '(all)'}: global_shape {tuple(shape)}, data {np.shape(leaf)}"
            for name, leaf, shape in _with_shapes(operation, local_data, global_shape)
            if shape is not None and tuple(shape) != np.shape(leaf)
        ]
        if wrong:
            raise failure(
                ValueError,
                operation,
                "global_shape is not the shape of the data",
                expected="equal shapes in a program of one process",
                got="; ".join(wrong),
                fix="leave global_shape out",
            )
    try:
        return device_put(local_data, sharding)
    except ValueError:
        _check_shapes(operation, sharding, local_data)
        raise


def _check_shapes(operation: str, sharding: TargetTree, local_data: Tree) -> None:
    """Raises the error of device_put for a shape that a sharding does not fit, with the name of this operation."""
    places = per_leaf(operation, "sharding", sharding, local_data, PLACES, is_checked=False)
    for i, (name, leaf, _) in enumerate(_with_shapes(operation, local_data, None)):
        place = places[i] if isinstance(places, list) else places
        if isinstance(place, Sharding):
            _process_parts(place, np.shape(leaf), f"{operation}: leaf {name}" if name else operation)


def _from_all_processes(operation: str, sharding: TargetTree, local_data: Tree, global_shape: object) -> Any:
    treedef = tree_util.tree_structure(local_data)
    places = per_leaf(operation, "sharding", resolve_target(operation, sharding), local_data, PLACES)
    arrays = []
    for i, (name, leaf, shape) in enumerate(_with_shapes(operation, local_data, global_shape)):
        target = places[i] if isinstance(places, list) else places
        where = sharding_of_new(operation, target)
        array = array_from_local_data(operation, where, leaf, shape, f"leaf {name}: " if name else "")
        arrays.append(device_put(array, target))
    return tree_util.tree_unflatten(treedef, arrays)


def _with_shapes(operation: str, local_data: Tree, global_shape: object) -> list[tuple[str, Any, Any]]:
    """Returns (path, leaf, global shape or None) for each leaf."""
    found = tree_util.tree_flatten_with_path(local_data)[0]
    if _is_shape(global_shape):
        shapes = [global_shape] * len(found)
    else:
        kinds = (type(None), tuple, list)
        shapes = per_leaf(operation, "global_shape", global_shape, local_data, kinds, is_value=_is_shape)
    return [(tree_util.keystr(path), leaf, shape) for (path, leaf), shape in zip(found, shapes, strict=True)]


def _is_shape(node: object) -> bool:
    if node is None:
        return True
    return isinstance(node, (tuple, list)) and all(size is None or isinstance(size, int) for size in node)


def _global_shape(operation: str, sharding: Sharding, local: tuple[int, ...], name: str) -> tuple[int, ...]:
    """Returns the global shape, of which each process has a part; ValueError where the parts do not determine it.

    The processes of the sharding agree on the size of an uneven dimension that they divide: see needs_agreement.
    """
    groups = _process_groups(sharding, len(local), operation)
    unknown = [d for d, each in enumerate(groups) if each is None]
    if unknown:
        raise failure(
            ValueError,
            operation,
            (
                f"{name}local shape {local} does not determine the global shape: in dimension "
                f"{', '.join(map(str, unknown))} of {sharding} the processes hold different numbers of parts, or "
                "overlapping ones"
            ),
            expected="equal numbers of distinct parts",
            fix="give global_shape",
        )
    if not needs_agreement(sharding):
        return tuple(size * len(each or ()) for size, each in zip(local, groups, strict=True))
    return _agreed_shape(operation, sharding, local, [each or [] for each in groups], name)


def needs_agreement(sharding: Any) -> bool:
    """Returns whether processes must exchange the sizes of their parts, because the last ones may be shorter."""
    sharding = sharding.sharding if isinstance(sharding, Format) else sharding
    is_uneven = isinstance(sharding, NamedSharding) and sharding.uneven is not None
    return is_uneven and not sharding.is_fully_addressable


def _agreed_shape(
    operation: str, sharding: Sharding, local: tuple[int, ...], groups: list[list[list[int]]], name: str
) -> tuple[int, ...]:
    """Returns the global shape that follows from the sizes of all processes of the sharding, which call it together.

    `groups` are, by dimension, the processes that hold the same part. All processes raise ValueError if the size of any
    process is not the size of its part.
    """
    from artifex_devices.distributed.exchange import gather_sizes

    client = next(iter(sharding.device_set)).client
    shape = list(local)
    sizes: dict[int, dict[int, int]] = {}  # by dimension that is divided, and by process
    for d, each in enumerate(groups):
        if len(each) > 1:
            what = f"{operation}: {name}the size of dimension {d} of {sharding}"
            sizes[d] = gather_sizes(client, what, sorted(process for group in each for process in group), local[d])
            shape[d] = sum(sizes[d][group[0]] for group in each)
    parts = _process_parts(sharding, tuple(shape), operation)
    wrong = [
        f"dimension {d}: process {process} has {size} and its part is {wanted}"
        for d, found in sizes.items()
        for process, size in found.items()
        if size != (wanted := _length(parts[process][d]))
    ]
    if wrong:
        raise failure(
            ValueError,
            operation,
            f"{name}the data of the processes are not the parts of one array by {sharding}",
            expected=f"parts of shape {tuple(shape)}, the sum of all",
            got="; ".join(wrong),
            fix="cut the global array by batch_placement.batch_share(sharding, length) in each process",
        )
    return tuple(shape)


def _length(parts: list[tuple[int, int]]) -> int:
    return sum(end - begin for begin, end in parts)


def array_from_local_data(
    operation: str, sharding: Sharding, data: object, global_shape: object, name: str = ""
) -> Array:
    """Creates an Array over several processes from this process's part; `name` is the leaf's, for messages.

    In each dimension `data` has either all elements, or this process's parts in order. global_shape may be None where
    `data` determines it. Raises ValueError if sizes do not fit, or if no device of the sharding is of this process.
    """
    value = np.asarray(data)
    if not sharding.has_addressable_devices:
        raise failure(
            ValueError,
            operation,
            f"{name}no device of {sharding} is of this process, {internal.current_client().process_index()}",
            expected="at least one",
            fix="call it in processes that have some, or use make_array_from_callback with dtype",
        )
    if global_shape is None:
        shape = _global_shape(operation, sharding, value.shape, name)
    else:
        shape = _checked_shape(operation, global_shape, value.ndim, name)
    what = f"{operation}: {name}the local data of shape {value.shape}"
    parts = _process_parts(sharding, shape, what)[internal.current_client().process_index()]
    is_global = [size == full for size, full in zip(value.shape, shape, strict=True)]
    wrong = [
        f"dimension {d}: global {shape[d]}, this process's parts {_length(parts[d])}, data {value.shape[d]}"
        for d in range(value.ndim)
        if not is_global[d] and value.shape[d] != _length(parts[d])
    ]
    if wrong:
        raise failure(
            ValueError,
            operation,
            f"{name}the data does not fit {sharding}",
            expected="in each dimension the global size or that of this process's parts together",
            got="; ".join(wrong),
            fix="give this process's part of the global array",
        )
    internal.check_transfer("host_to_device", True, value.shape, value.dtype, "host", sharding, operation)

    def block(index: tuple[slice, ...]) -> NDArray[Any]:
        return value[tuple(own if is_global[d] else _in_parts(own, parts[d]) for d, own in enumerate(index))]

    with transfer_guard_host_to_device("allow"):  # checked above, as an explicit transfer
        return array_from_callback(operation, shape, sharding, block, value.dtype)


def array_without_shards(operation: str, sharding: Sharding, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Creates an Array over other processes; no device of the sharding is of this process."""
    return array_from_callback(operation, shape, sharding, lambda index: (), dtype)


def _in_parts(wanted: slice, parts: list[tuple[int, int]]) -> slice:
    """Returns where a part of the global array is in the parts of this process, which follow each other."""
    before = 0
    for begin, end in parts:
        if begin == (wanted.start or 0):
            return slice(before, before + end - begin)
        before += end - begin
    return slice(0, 0)  # an empty part


def _checked_shape(operation: str, global_shape: Any, ndim: int, name: str) -> tuple[int, ...]:
    shape = tuple(bounded_list(operation, "global_shape", global_shape, MAX_DIMENSIONS))
    if len(shape) != ndim or not all(isinstance(size, (int, np.integer)) for size in shape):
        raise failure(
            ValueError,
            operation,
            f"{name}global_shape does not fit the data",
            expected=f"{ndim} sizes",
            got=safe_repr(global_shape),
            fix="give one for each dimension of the data",
        )
    return shape
