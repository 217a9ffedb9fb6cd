# SPDX-License-Identifier: Apache-2.0
"""with_sharding_constraint and reshard: values with the requested shardings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from artifex_devices import tree_util
from artifex_devices._base.checks import wrong_type
from artifex_devices._base.leaf_types import Container, K, Leaf, LeafT, NamedTupleT, PyTree, T
from artifex_devices._base.refused_arguments import hides_unknown, missing_argument, unknown_argument
from artifex_devices._base.unspecified import UNSPECIFIED
from artifex_devices._core import Array, Device, NamedSharding, PartitionSpec, Sharding
from artifex_devices._core.internal import put_leaves
from artifex_devices._placement.mesh_context import names_of_entry, sharding_of_spec
from artifex_devices._placement.target import TargetTree, sharding_for
from artifex_devices._tree.prefix import per_leaf
from artifex_devices.layout import Format

_ENTRIES = (type(None), Sharding, PartitionSpec, Format)


@overload
def with_sharding_constraint(x: Leaf, shardings: TargetTree = ..., *, sharding: TargetTree = ...) -> Array: ...
@overload
def with_sharding_constraint(
    x: dict[K, LeafT], shardings: TargetTree = ..., *, sharding: TargetTree = ...
) -> dict[K, Array]: ...
@overload
def with_sharding_constraint(
    x: NamedTupleT, shardings: TargetTree = ..., *, sharding: TargetTree = ...
) -> NamedTupleT: ...
@overload
def with_sharding_constraint(x: Container, shardings: TargetTree = ..., *, sharding: TargetTree = ...) -> PyTree: ...
@overload
def with_sharding_constraint(x: T, shardings: TargetTree = ..., *, sharding: TargetTree = ...) -> T: ...
def with_sharding_constraint(
    x: PyTree, shardings: TargetTree = UNSPECIFIED, *, sharding: TargetTree = UNSPECIFIED
) -> PyTree:
    """Returns values with the requested shardings; moves values that have other shardings.

    Args:
        x: An Array, an ndarray or a number, or a tree of such leaves.
        shardings: A Sharding, a Format, or a PartitionSpec with a mesh of `set_mesh` or `with mesh:`; or a prefix tree
            of such targets. An UNCONSTRAINED dimension keeps its axes, where that is possible.
        sharding: Another name of shardings.

    Returns:
        x with an Array for each leaf.

    Raises:
        TypeError: An entry is not a sharding; shardings is missing or given by both names.
        ValueError: An entry is None; the sharding does not fit the shape; it is not a prefix of x.
        RuntimeError: A PartitionSpec and no mesh.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(8):
        ...     mesh = ad.make_mesh((8,), ("data",))
        ...     x = ad.with_sharding_constraint(np.ones((16, 4)), ad.NamedSharding(mesh, ad.P("data")))
        ...     x.addressable_shards[0].data.shape
        (2, 4)
    """
    operation = "with_sharding_constraint"
    if (shardings is UNSPECIFIED) == (sharding is UNSPECIFIED):
        problem = "missing" if shardings is UNSPECIFIED else "given twice, as sharding too"
        raise TypeError(f"{operation}: shardings is {problem}; expected one sharding or tree; give one")
    requested = sharding if shardings is UNSPECIFIED else shardings

    def resolve(leaf: object, entry: object) -> Sharding:
        bound = sharding_for(operation, "shardings", sharding_of_spec(operation, entry, entered=True))
        return _without_unconstrained(leaf, bound)

    return _apply(operation, x, requested, resolve)


@overload
def reshard(xs: Leaf, out_shardings: TargetTree) -> Array: ...
@overload
def reshard(xs: dict[K, LeafT], out_shardings: TargetTree) -> dict[K, Array]: ...
@overload
def reshard(xs: NamedTupleT, out_shardings: TargetTree) -> NamedTupleT: ...
@overload
def reshard(xs: Container, out_shardings: TargetTree) -> PyTree: ...
@overload
def reshard(xs: T, out_shardings: TargetTree) -> T: ...
@hides_unknown
def reshard(xs: PyTree, out_shardings: TargetTree = UNSPECIFIED, **_unknown: object) -> PyTree:
    """Returns values with other shardings: `jax.sharding.reshard`.

    Args:
        xs: An Array, an ndarray or a number, or a tree of such leaves.
        out_shardings: A NamedSharding, or a PartitionSpec under `set_mesh`; or a tree of such targets that is a prefix
            of xs.

    Returns:
        xs with an Array for each leaf; its spec has an entry for each dimension, as in JAX.

    Raises:
        TypeError: An entry is of another type; device_put takes Devices and other Shardings.
        ValueError: An entry is None; no mesh is set for a PartitionSpec; the sharding does not fit; out_shardings is
            not a prefix of xs.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(8), ad.set_mesh(ad.make_mesh((8,), ("data",))):
        ...     ad.reshard(np.ones((16, 4)), ad.P("data")).sharding.spec
        P('data', None)
    """
    if _unknown:
        raise unknown_argument("reshard", _unknown)
    if out_shardings is UNSPECIFIED:
        raise missing_argument("reshard", "out_shardings")

    def resolve(leaf: object, entry: object) -> Sharding:
        bound = sharding_of_spec("reshard", entry)
        if not isinstance(bound, NamedSharding):
            expected = "a NamedSharding or a PartitionSpec"
            spec = repr(bound) if isinstance(bound, str) else "'x'"
            fix = "use ad.device_put(x, device)" if isinstance(bound, (Device, Sharding)) else f"write ad.P({spec})"
            raise wrong_type("reshard", "an entry of out_shardings", bound, expected, fix)
        return _with_full_rank(leaf, bound)

    return _apply("reshard", xs, out_shardings, resolve)


def _apply(operation: str, x: object, requested: object, resolve: Callable[..., Any]) -> Any:
    leaves, treedef = tree_util.tree_flatten(x)
    entries = per_leaf(operation, "shardings", requested, x, _ENTRIES, is_checked=False)
    if not isinstance(entries, list):
        entries = [entries] * len(leaves)
    if any(entry is None for entry in entries):
        raise ValueError(f"{operation}: a sharding is None; expected a Sharding or a PartitionSpec; leave the leaf out")
    targets = [resolve(leaf, entry) for leaf, entry in zip(leaves, entries, strict=True)]

    def path_of(index: int) -> str:
        path = tree_util.keystr(treedef.paths()[index])
        return f"{path or '(all)'} of {operation}"

    return tree_util.tree_unflatten(treedef, put_leaves(leaves, targets, False, None, path_of, explicit=False))


def _with_full_rank(leaf: object, sharding: NamedSharding) -> NamedSharding:
    missing = getattr(leaf, "ndim", 0) - len(sharding.spec)
    return sharding.update(spec=[*sharding.spec, *[None] * missing]) if missing > 0 else sharding


def _without_unconstrained(leaf: object, sharding: Sharding) -> Sharding:
    """Replaces UNCONSTRAINED entries by the entries of the leaf's sharding on the same mesh, or by None."""
    free = PartitionSpec.UNCONSTRAINED
    if not isinstance(sharding, NamedSharding) or free not in sharding.spec:
        return sharding
    current = leaf.sharding if isinstance(leaf, Array) else None
    entries = current.spec if isinstance(current, NamedSharding) and current.mesh == sharding.mesh else ()
    used = {axis for entry in sharding.spec if entry is not free for axis in names_of_entry(entry)}
    now = [None if used & set(names_of_entry(entry)) else entry for entry in entries] + [None] * len(sharding.spec)
    return sharding.update(spec=[now[i] if entry is free else entry for i, entry in enumerate(sharding.spec)])
