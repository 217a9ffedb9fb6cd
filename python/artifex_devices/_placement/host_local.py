# SPDX-License-Identifier: Apache-2.0
"""Conversions of `multihost_utils` between local data of each process and global Arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from artifex_devices import tree_util
from artifex_devices._base.leaf_types import PyTree, Tree
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array, Mesh, NamedSharding, PartitionSpec, internal
from artifex_devices._placement.construct import array_from_local_data, make_array_from_single_device_arrays
from artifex_devices._placement.device_put import device_put


def spans_processes(leaf: object) -> bool:
    """Returns whether a leaf is an Array on devices of several processes; the same in all of them."""
    return isinstance(leaf, Array) and len({device.process_index for device in leaf.sharding.device_set}) > 1


def host_local_array_to_global_array(local_inputs: Tree, global_mesh: Mesh, pspecs: PartitionSpec | Tree) -> PyTree:
    """Converts local data of each process to global Arrays, whose parts on its devices are that data.

    Args:
        local_inputs: Tree of ndarrays, numbers or Arrays of this process.
        global_mesh: Mesh over the devices of all processes, in which each process's devices form a box.
        pspecs: PartitionSpec of the global Arrays, or a tree of PartitionSpecs that is a prefix of local_inputs.

    Returns:
        The tree with Arrays on `global_mesh`. A dimension that is sharded over n processes is n times
        longer. Arrays that span processes already are returned unchanged.

    Raises:
        TypeError: global_mesh is not a Mesh; an entry of pspecs is not a PartitionSpec.
        ValueError: An entry of pspecs is None; the devices of this process are not a box of the mesh; sizes do not fit.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> from artifex_devices import multihost_utils
        >>> with ad.simulate(4):
        ...     mesh = ad.make_mesh((4,), ("x",))
        ...     multihost_utils.host_local_array_to_global_array(np.arange(8), mesh, ad.P("x")).sharding.spec
        P('x',)
    """
    operation = "host_local_array_to_global_array"
    local_mesh = _local_mesh(operation, global_mesh)

    def convert(leaf: object, spec: PartitionSpec, name: str) -> Any:
        if spans_processes(leaf):
            return leaf
        sharding = NamedSharding(global_mesh, spec)
        if local_mesh is global_mesh:
            return _put(operation, leaf, sharding, name)
        value = np.asarray(leaf)
        internal.check_transfer("host_to_device", False, value.shape, value.dtype, "host", sharding, operation)
        return array_from_local_data(operation, sharding, value, None, f"leaf {name}: " if name else "")

    return _map(operation, convert, local_inputs, pspecs)


def global_array_to_host_local_array(global_inputs: Tree, global_mesh: Mesh, pspecs: PartitionSpec | Tree) -> PyTree:
    """Converts global Arrays to Arrays of this process, from the parts that are on its devices.

    Args:
        global_inputs: Tree of Arrays.
        global_mesh: Mesh over the devices of all processes, in which each process's devices form a box.
        pspecs: PartitionSpec of the Arrays, or a tree of PartitionSpecs that is a prefix of global_inputs; Arrays
            with another sharding are moved first.

    Returns:
        The tree with Arrays on `global_mesh.local_mesh`. Arrays of this process alone are returned unchanged.

    Raises:
        TypeError: global_mesh is not a Mesh; an entry of pspecs is not a PartitionSpec.
        ValueError: An entry of pspecs is None; the devices of this process are not a box of the mesh; sizes do not fit.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> from artifex_devices import multihost_utils
        >>> with ad.simulate(4):
        ...     mesh = ad.make_mesh((4,), ("x",))
        ...     x = ad.device_put(np.arange(8), ad.NamedSharding(mesh, ad.P("x")))
        ...     multihost_utils.global_array_to_host_local_array(x, mesh, ad.P("x")) is x
        True
    """
    operation = "global_array_to_host_local_array"
    local_mesh = _local_mesh(operation, global_mesh)

    def convert(leaf: object, spec: PartitionSpec, name: str) -> Any:
        if isinstance(leaf, Array) and not spans_processes(leaf):
            return leaf
        local = NamedSharding(local_mesh, spec)
        if not isinstance(leaf, Array):
            return _put(operation, leaf, local, name)
        sharding = NamedSharding(global_mesh, spec)
        moved = leaf if leaf.sharding.is_equivalent_to(sharding, leaf.ndim) else device_put(leaf, sharding)
        return make_array_from_single_device_arrays([part.data for part in moved.addressable_shards], local)

    return _map(operation, convert, global_inputs, pspecs)


def _put(operation: str, leaf: object, sharding: NamedSharding, name: str) -> Any:
    """Places a leaf by an implicit transfer, as in JAX."""
    place = f"{name or '(all)'} of {operation}"
    return internal.put_leaves([leaf], sharding, False, None, lambda _: place, explicit=False)[0]


def _local_mesh(operation: str, mesh: object) -> Mesh:
    if not isinstance(mesh, Mesh):
        raise _wrong_type(f"{operation}: global_mesh", mesh, "a Mesh", "create one by make_mesh")
    local: Mesh = mesh.local_mesh
    return local


def _wrong_type(where: str, value: object, expected: str, fix: str) -> TypeError:
    return TypeError(f"{where} is of type {type(value).__name__}; expected {expected}, got {safe_repr(value)}; {fix}")


def _map(operation: str, convert: Callable[..., Any], tree: object, pspecs: PartitionSpec | Tree) -> PyTree:
    """Maps convert(leaf, spec, name) over the leaves of a tree."""

    def is_leaf(node: object) -> bool:
        return node is None or isinstance(node, PartitionSpec)

    for path, spec in tree_util.tree_leaves_with_path(pspecs, is_leaf):
        where = f"{operation}: pspecs{tree_util.keystr(path)}"
        if spec is None:
            raise ValueError(f"{where} is None; expected a PartitionSpec; write P() for a replicated value")
        if not isinstance(spec, PartitionSpec):
            raise _wrong_type(where, spec, "a PartitionSpec", "write P('x')")
    leaves, treedef = tree_util.tree_flatten(tree)
    specs = tree_util.broadcast_prefix(pspecs, tree, is_leaf)
    names = [tree_util.keystr(path) for path in treedef.paths()]
    made = [convert(leaf, spec, name) for leaf, spec, name in zip(leaves, specs, names, strict=True)]
    return tree_util.tree_unflatten(treedef, made)
