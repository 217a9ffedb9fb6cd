# SPDX-License-Identifier: Apache-2.0
"""Moving data between host and devices: device_put, device_get, block_until_ready."""

from __future__ import annotations

from typing import Any

import numpy as np

from artifex_devices._core import Array, Device, Sharding, _get_leaf, _put_leaf, _put_leaves

__all__ = ["block_until_ready", "device_get", "device_put"]

# What is surely no container, so that the everyday call does not need optree.
_LEAF_TYPES = frozenset({np.ndarray, Array, bool, int, float, complex, np.float32, np.float64, np.int32, np.int64})


def device_put(
    x: Any,
    device: Any = None,
    src: Any = None,
    *,
    donate: Any = False,
    may_alias: Any = None,
) -> Any:
    """Places a tree of arrays on devices.

    The source has been read when it returns: later writes to it never show in the result.

    Args:
        x: An ndarray of any strides, a number, an Array, or a tree of these.
        device: None (where an Array is; the first device for host data), a Device, a Sharding, or a tree of these
            that is a prefix of x.
        src: Where x comes from; accepted as documented, the library knows.
        donate: Delete Arrays of x afterwards and reuse their memory; bool or prefix tree.
        may_alias: True lets the Array show the ndarray's own memory where that is dense and stays whole; the ndarray
            becomes read-only. False never shares memory, also between Arrays. None shares between Arrays only. Or a
            prefix tree.

    Returns:
        x with an Array for each leaf.

    Raises:
        TypeError: A leaf is no array of numbers; the text names the leaf's path.
        ValueError: The sharding does not fit the shape; `device` is of another type or no prefix of x.
        IndivisibleError: A dimension is not divisible by its mesh axes (a ValueError).
        ResourceExhaustedError: Out of memory (a MemoryError and a RuntimeError).
        RuntimeError: An Array of x was deleted.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(8):
        ...     mesh = ad.make_mesh((8,), ("data",))
        ...     x = ad.device_put(np.ones((16, 4)), ad.NamedSharding(mesh, ad.P("data")))
        ...     x.addressable_shards[1].index
        (slice(2, 4, None), slice(None, None, None))
    """
    if type(x) in _LEAF_TYPES:
        return _put_leaf(x, device, donate, may_alias)
    return _put_tree(x, device, donate, may_alias)


def device_get(x: Any) -> Any:
    """Brings a tree of Arrays to the host.

    Args:
        x: A tree; leaves that are no Arrays stay as they are.

    Returns:
        x with a read-only ndarray for each Array; a copy only where several buffers had to be gathered.

    Raises:
        RuntimeError: An Array was deleted, or its transfer failed.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> ad.device_get({"a": ad.device_put(np.arange(3))})
        {'a': array([0, 1, 2])}
    """
    if type(x) is Array:
        return _get_leaf(x)
    from artifex_devices import tree_util

    return tree_util.tree_map(lambda leaf: _get_leaf(leaf) if isinstance(leaf, Array) else leaf, x)


def block_until_ready(x: Any) -> Any:
    """Waits for all Arrays of a tree and returns the tree.

    Args:
        x: A tree; other leaves are left alone.

    Raises:
        RuntimeError: An Array was deleted, or its transfer failed.
    """
    if type(x) is Array:
        return x.block_until_ready()
    from artifex_devices import tree_util

    for leaf in tree_util.tree_leaves(x):
        if isinstance(leaf, Array):
            leaf.block_until_ready()
    return x


def _put_tree(x: Any, device: Any, donate: Any, may_alias: Any) -> Any:
    from artifex_devices import tree_util

    leaves, treedef = tree_util.tree_flatten(x)
    if not leaves:
        return x

    def path_of(index: int) -> str:
        return tree_util.keystr(treedef.paths()[index])

    placed = _put_leaves(
        leaves,
        _per_leaf("device", device, x, len(leaves), single=(type(None), Device, Sharding)),
        _per_leaf("donate", donate, x, len(leaves), single=(bool,)),
        _per_leaf("may_alias", may_alias, x, len(leaves), single=(type(None), bool)),
        path_of,
    )
    return tree_util.tree_unflatten(treedef, placed)


def _per_leaf(argument: str, prefix: Any, x: Any, count: int, *, single: tuple[type, ...]) -> Any:
    """One value for all leaves, or a list with one for each, from a prefix tree."""
    if isinstance(prefix, single):
        return prefix
    from artifex_devices import tree_util

    def is_leaf(node: Any) -> bool:
        return isinstance(node, single)

    try:
        per_leaf = tree_util.broadcast_prefix(prefix, x, is_leaf)
    except ValueError:
        told = "; ".join(str(error(argument)) for error in tree_util.prefix_errors(prefix, x, is_leaf))
        if not told:
            raise  # a registered type's own error
        raise ValueError(f"device_put: {told}; give one value, or a tree with the same outer structure") from None
    assert len(per_leaf) == count
    for value in per_leaf:
        if not isinstance(value, single):
            expected = " or ".join("None" if kind is type(None) else kind.__name__ for kind in single)
            raise ValueError(
                f"device_put: {argument} is of type {type(value).__name__}; expected {expected} or a tree of these "
                f"that is a prefix of x, got {value!r}; give one value for all of x, or one a part"
            )
    return per_leaf
