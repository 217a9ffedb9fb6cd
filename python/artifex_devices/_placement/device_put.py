# SPDX-License-Identifier: Apache-2.0
"""Moving data between host and devices: device_put, device_get, block_until_ready."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from artifex_devices import tree_util
from artifex_devices._base.leaf_types import Container, K, Leaf, LeafT, NamedTupleT, PyTree, T, Tree
from artifex_devices._base.refused_arguments import hides_unknown, unknown_argument
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array
from artifex_devices._core.internal import get_leaf, put_leaf, put_leaves
from artifex_devices._placement.jax_values import from_jax_tree
from artifex_devices._placement.target import TargetTree
from artifex_devices._tree.prefix import per_leaf

# Types of leaves: with these the usual call does not flatten.
LEAF_TYPES = frozenset({np.ndarray, Array, bool, int, float, complex, np.float32, np.float64, np.int32, np.int64})


@overload
def device_put(
    x: Leaf,
    device: TargetTree = None,
    src: object = None,
    *,
    donate: bool | Tree = False,
    may_alias: bool | Tree | None = None,
) -> Array: ...
@overload
def device_put(
    x: dict[K, LeafT],
    device: TargetTree = None,
    src: object = None,
    *,
    donate: bool | Tree = False,
    may_alias: bool | Tree | None = None,
) -> dict[K, Array]: ...
@overload
def device_put(
    x: dict[K, PyTree],
    device: TargetTree = None,
    src: object = None,
    *,
    donate: bool | Tree = False,
    may_alias: bool | Tree | None = None,
) -> dict[K, PyTree]: ...
@overload
def device_put(
    x: list[LeafT],
    device: TargetTree = None,
    src: object = None,
    *,
    donate: bool | Tree = False,
    may_alias: bool | Tree | None = None,
) -> list[Array]: ...
@overload
def device_put(
    x: NamedTupleT,
    device: TargetTree = None,
    src: object = None,
    *,
    donate: bool | Tree = False,
    may_alias: bool | Tree | None = None,
) -> NamedTupleT: ...
@overload
def device_put(
    x: tuple[LeafT, ...],
    device: TargetTree = None,
    src: object = None,
    *,
    donate: bool | Tree = False,
    may_alias: bool | Tree | None = None,
) -> tuple[Array, ...]: ...
@overload
def device_put(
    x: list[Any] | tuple[Any, ...],
    device: TargetTree = None,
    src: object = None,
    *,
    donate: bool | Tree = False,
    may_alias: bool | Tree | None = None,
) -> PyTree: ...
@overload
def device_put(
    x: T,
    device: TargetTree = None,
    src: object = None,
    *,
    donate: bool | Tree = False,
    may_alias: bool | Tree | None = None,
) -> T: ...
@hides_unknown
def device_put(
    x: PyTree,
    device: TargetTree = None,
    src: object = None,
    *,
    donate: bool | Tree = False,
    may_alias: bool | Tree | None = None,
    **_unknown: Any,
) -> Any:
    """Places a tree of arrays on devices.

    The source is read before the call returns: later writes to it do not change the result.

    Args:
        x: An ndarray of any strides, a number, an Array, or a tree of such leaves.
        device: None (the placement of an Array; the first device for host data), a Device, a Sharding, a PartitionSpec
            under `set_mesh`, a Format (each shard is stored in its Layout), a memory.Space (the same devices, another
            kind of memory), or a tree of such targets that is a prefix of x.
        src: Ignored; accepted as in JAX.
        donate: Whether to delete Arrays of x and reuse their memory (using them afterwards raises RuntimeError); bool
            or prefix tree. Not together with may_alias=True.
        may_alias: True allows the Array to use the memory of a dense ndarray on one CPU device, which takes the same
            few microseconds for any size; the ndarray becomes read-only. `transfers.record` names the lines where this
            saves a copy of 64 MiB or more. False never shares memory, also between Arrays. By default only Arrays share
            memory. Or a prefix tree.

    Returns:
        x with an Array for each leaf.

    Raises:
        TypeError: A leaf is not an array of numbers; the text names the leaf's path.
        ValueError: The sharding or the Layout does not fit the shape; `device` is of another type or not a prefix of x;
            no mesh is set for a PartitionSpec.
        IndivisibleError: A dimension is not divisible by its mesh axes (a ValueError).
        ResourceExhaustedError: Out of memory (a MemoryError and a RuntimeError).
        RuntimeError: An Array of x was deleted or donated.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(8):
        ...     mesh = ad.make_mesh((8,), ("data",))
        ...     x = ad.device_put(np.ones((16, 4)), ad.NamedSharding(mesh, ad.P("data")))
        ...     x.addressable_shards[1].index
        (slice(2, 4, None), slice(None, None, None))
    """
    if _unknown:
        raise unknown_argument("device_put", _unknown)
    if type(x) in LEAF_TYPES:
        return put_leaf(x, device, donate, may_alias)
    return _put_tree(x, device, donate, may_alias)


@overload
def device_get(x: Array) -> NDArray[Any]: ...
@overload
def device_get(x: dict[K, Array]) -> dict[K, NDArray[Any]]: ...
@overload
def device_get(x: list[Array]) -> list[NDArray[Any]]: ...
@overload
def device_get(x: Container) -> PyTree: ...
@overload
def device_get(x: T) -> T: ...
def device_get(x: PyTree) -> PyTree:
    """Copies the Arrays of a tree to the host.

    Args:
        x: A tree; leaves that are not Arrays are unchanged.

    Returns:
        x with a read-only ndarray for each Array; a copy only where several buffers are gathered.

    Raises:
        RuntimeError: An Array was deleted, or its transfer failed.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> ad.device_get({"a": ad.device_put(np.arange(3))})
        {'a': array([0, 1, 2])}
    """
    if type(x) is Array:
        return get_leaf(x)
    return tree_util.tree_map(lambda leaf: get_leaf(leaf) if isinstance(leaf, Array) else leaf, x)


def block_until_ready(x: T) -> T:
    """Waits for all Arrays of a tree and returns the tree.

    Args:
        x: A tree; the method `block_until_ready` of other leaves (arrays of JAX) is called, leaves without it are
            ignored.

    Raises:
        RuntimeError: An Array was deleted, or its transfer failed.
    """
    tree: Any = x
    if type(tree) is Array:
        tree.block_until_ready()
        return x
    for leaf in tree_util.tree_leaves(tree):
        if isinstance(leaf, Array):
            leaf.block_until_ready()
        elif (wait := getattr(leaf, "block_until_ready", None)) is not None:
            wait()
    return x


def _put_tree(x: object, device: object, donate: object, may_alias: object) -> Any:
    from artifex_devices._placement.target import PLACES

    device = from_jax_tree("device_put", device)
    leaves, treedef = tree_util.tree_flatten(x)
    if not leaves:
        return x

    def path_of(index: int) -> str:
        return tree_util.keystr(treedef.paths()[index])

    options = (
        per_leaf("device_put", "device", device, x, PLACES),
        per_leaf("device_put", "donate", donate, x, (bool,)),
        per_leaf("device_put", "may_alias", may_alias, x, (type(None), bool)),
    )
    try:
        arrays = put_leaves(leaves, *options, path_of)
    except ValueError as error:
        if isinstance(x, (list, tuple)) and all(isinstance(leaf, (int, float, complex)) for leaf in leaves):
            raise type(error)(
                f"{error}; a {type(x).__name__} is a tree of numbers, which are placed one by one: for one array write "
                f"ad.device_put(np.array({safe_repr(x)}), sharding)"
            ) from None
        raise
    return tree_util.tree_unflatten(treedef, arrays)
