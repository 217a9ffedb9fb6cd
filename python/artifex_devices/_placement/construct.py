# SPDX-License-Identifier: Apache-2.0
"""Arrays made of parts: of other Arrays, of what a callback returns, of the data of this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from artifex_devices import _core
from artifex_devices._core import Array, _array_from_callback, _array_from_parts
from artifex_devices._placement.device_put import device_put
from artifex_devices._placement.target import PLACES, sharding_for
from artifex_devices._tree.prefix_broadcast import per_leaf

__all__ = [
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
]


def make_array_from_single_device_arrays(
    shape: Any = None,
    sharding: Any = None,
    arrays: Sequence[Array] | None = None,
    *,
    dtype: Any = None,
) -> Array:
    """Makes one Array out of Arrays that lie on one device each, without a copy.

    Both forms work: (shape, sharding, arrays), and (arrays, sharding) with the shape that the parts come to.

    Args:
        shape: Shape of the whole; or the arrays, in the document's form.
        sharding: A Sharding, a Format, or a PartitionSpec under set_mesh.
        arrays: List or tuple, one Array for each device of the sharding that is of this process, in any order: each is
            matched by its device. The other processes give the parts of theirs.
        dtype: None, or what all parts must have; needed where no device is of this process.

    Returns:
        A committed Array on the parts' memory; each part keeps its own life. Replicas are compared: they must hold the
        same bits.

    Raises:
        ValueError: Parts do not fit: wrong count, device, dtype or shape, unequal replicas; the text lists all of it.
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
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(
            f"{operation}: arrays is of type {type(arrays).__name__}; expected a list or tuple of Arrays; "
            "write list(arrays)"
        )
    target = sharding_for(operation, "sharding", sharding, len(shape) if hasattr(shape, "__len__") else None)
    return _array_from_parts(operation, shape, target, arrays, dtype)


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Any,
    data_callback: Callable[[tuple[slice, ...]], Any],
    dtype: Any = None,
) -> Array:
    """Makes an Array by asking for each device's block.

    Args:
        shape: Shape of the whole.
        sharding: A Sharding, a Format, or a PartitionSpec under set_mesh.
        data_callback: Gets the index of a block in the whole, a tuple of slices, and returns the block: an ndarray, a
            number or an Array. It is called once for each device of this process in mesh order, replicas too, but
            once in all for a fully replicated array, as in JAX. The block is copied before the next call, so that it
            may be one buffer that is filled again and again.
        dtype: None, or what all blocks must have; needed where no device is of this process.

    Raises:
        ValueError: Blocks of a wrong shape or dtype, or replicas that differ; the text lists all of them.
        IndivisibleError: The sharding does not divide the shape (a ValueError).
        TypeError: A block is no array of numbers; sharding or data_callback is of another type.

    Whatever the callback raises comes through.

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
    if not callable(data_callback):
        raise TypeError(
            f"{operation}: data_callback is of type {type(data_callback).__name__}; expected a function of an index; "
            "write lambda index: source[index]"
        )
    target = sharding_for(operation, "sharding", sharding, len(shape) if hasattr(shape, "__len__") else None)
    return _array_from_callback(operation, shape, target, lambda index: data_callback(index), dtype)


def make_array_from_process_local_data(sharding: Any, local_data: Any, global_shape: Any = None) -> Any:
    """Makes Arrays out of the data that each process has.

    In each dimension the data is either the whole (equal in all processes), or what the devices of this process hold of
    it: their distinct parts, one after the other. With one process the data is the whole.

    Args:
        sharding: What device_put takes as device, or a prefix tree of these; not None.
        local_data: An ndarray or a number, or a tree of these.
        global_shape: The shape of the whole, or a prefix tree of these. None: it follows from the data, taken as this
            process's part in each dimension that processes cut.

    Returns:
        local_data with an Array for each leaf.

    Raises:
        ValueError: The data does not fit the sharding and global_shape, or global_shape does not follow as processes
            hold different numbers of parts; the text lists all that is wrong. sharding is None.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(8):
        ...     sharding = ad.NamedSharding(ad.make_mesh((8,), ("data",)), ad.P("data"))
        ...     ad.make_array_from_process_local_data(sharding, np.ones((16, 4))).shape
        (16, 4)
    """
    operation = "make_array_from_process_local_data"
    if sharding is None:
        raise ValueError(f"{operation}: sharding is None; expected a Sharding; say NamedSharding(mesh, P('data'))")
    if _core._current_client().process_count() > 1:
        return _from_all_processes(operation, sharding, local_data, global_shape)
    if global_shape is not None:
        wrong = [
            f"leaf {name or '(all)'}: global_shape {tuple(shape)}, data {np.shape(leaf)}"
            for name, leaf, shape in _with_shapes(operation, local_data, global_shape)
            if shape is not None and tuple(shape) != np.shape(leaf)
        ]
        if wrong:
            raise ValueError(
                f"{operation}: global_shape is not that of the data; expected equal shapes, as there is one process, "
                f"got {'; '.join(wrong)}; leave global_shape out"
            )
    return device_put(local_data, sharding)


def _from_all_processes(operation: str, sharding: Any, local_data: Any, global_shape: Any) -> Any:
    from artifex_devices import tree_util
    from artifex_devices._placement.process_data import array_from_local_data

    leaves, treedef = tree_util.tree_flatten(local_data)
    places = per_leaf(operation, "sharding", sharding, local_data, len(leaves), PLACES)
    made = []
    for i, (name, leaf, shape) in enumerate(_with_shapes(operation, local_data, global_shape)):
        target = sharding_for(operation, "sharding", places[i] if isinstance(places, list) else places, np.ndim(leaf))
        made.append(array_from_local_data(operation, target, leaf, shape, f"leaf {name}: " if name else ""))
    return tree_util.tree_unflatten(treedef, made)


def _with_shapes(operation: str, local_data: Any, global_shape: Any) -> list[tuple[str, Any, Any]]:
    """(path, leaf, its global shape or None) of each leaf."""
    from artifex_devices import tree_util

    found = tree_util.tree_flatten_with_path(local_data)[0]
    if _is_shape(global_shape):
        shapes = [global_shape] * len(found)
    else:
        shapes = per_leaf(
            operation,
            "global_shape",
            global_shape,
            local_data,
            len(found),
            (type(None), tuple, list),
            is_value=_is_shape,
        )
    return [(tree_util.keystr(path), leaf, shape) for (path, leaf), shape in zip(found, shapes, strict=True)]


def _is_shape(node: Any) -> bool:
    if node is None:
        return True
    return isinstance(node, (tuple, list)) and all(size is None or isinstance(size, int) for size in node)
