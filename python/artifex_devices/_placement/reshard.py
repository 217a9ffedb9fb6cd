# SPDX-License-Identifier: Apache-2.0
"""with_sharding_constraint and reshard: a value with the sharding that is asked for."""

from __future__ import annotations

from typing import Any

from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Array, NamedSharding, PartitionSpec, Sharding, _put_leaves
from artifex_devices._placement.mesh_context import sharding_of_spec
from artifex_devices._placement.target import sharding_for
from artifex_devices._tree.prefix_broadcast import per_leaf
from artifex_devices.layout import Format

__all__ = ["reshard", "with_sharding_constraint"]

_MISSING: Any = object()
_ENTRIES = (type(None), Sharding, PartitionSpec, Format)


def with_sharding_constraint(x: Any, shardings: Any = _MISSING, *, sharding: Any = _MISSING) -> Any:
    """Gives values the shardings that are asked for, by moving them where they lie otherwise.

    Args:
        x: An Array, an ndarray or a number, or a tree of these.
        shardings: A Sharding, a Format, or a PartitionSpec with a mesh of `set_mesh` or `with mesh:`; or a prefix tree
            of these. An UNCONSTRAINED dimension stays cut as it is, where that is possible.
        sharding: The document's name of shardings.

    Returns:
        x with an Array for each leaf.

    Raises:
        TypeError: An entry is no sharding; shardings is missing or came twice.
        ValueError: An entry is None; the sharding does not fit the shape; it is no prefix of x.
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
    if (shardings is _MISSING) == (sharding is _MISSING):
        given = "neither" if shardings is _MISSING else "both"
        raise TypeError(f"{operation}: expected shardings, or sharding as the document calls it, got {given}; give one")
    asked = sharding if shardings is _MISSING else shardings

    def resolve(leaf: Any, entry: Any) -> Sharding:
        if entry is None:
            raise ValueError(
                f"{operation}: a sharding is None; expected a Sharding or a PartitionSpec; leave the leaf out"
            )
        bound = sharding_for(operation, "shardings", sharding_of_spec(operation, entry, entered=True))
        return _without_unconstrained(leaf, bound)

    return _apply(operation, x, asked, resolve)


def reshard(xs: Any, out_shardings: Any) -> Any:
    """Values with other shardings: `jax.sharding.reshard`.

    Args:
        xs: An Array, an ndarray or a number, or a tree of these.
        out_shardings: A NamedSharding, or a PartitionSpec under `set_mesh`; or a tree of these that is a prefix of xs.

    Returns:
        xs with an Array for each leaf; its spec has an entry for each dimension, as in JAX.

    Raises:
        TypeError: An entry is neither; device_put takes Devices and other Shardings.
        ValueError: An entry is None; no mesh is set for a PartitionSpec; the sharding does not fit; no prefix of xs.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(8), ad.set_mesh(ad.make_mesh((8,), ("data",))):
        ...     ad.reshard(np.ones((16, 4)), ad.P("data")).sharding.spec
        P('data', None)
    """

    def resolve(leaf: Any, entry: Any) -> Sharding:
        if entry is None:
            raise ValueError(
                "reshard: a sharding is None; expected a NamedSharding or a PartitionSpec; leave the leaf out"
            )
        bound = sharding_of_spec("reshard", entry)
        if not isinstance(bound, NamedSharding):
            raise TypeError(
                f"reshard: out_shardings holds a {type(bound).__name__}; expected a NamedSharding or a PartitionSpec, "
                f"got {shown(bound)}; use device_put for it"
            )
        return _with_full_rank(leaf, bound)

    return _apply("reshard", xs, out_shardings, resolve)


def _apply(operation: str, x: Any, asked: Any, resolve: Any) -> Any:
    from artifex_devices import tree_util

    leaves, treedef = tree_util.tree_flatten(x)
    entries = per_leaf(operation, "shardings", asked, x, len(leaves), _ENTRIES, is_checked=False)
    if not isinstance(entries, list):
        entries = [entries] * len(leaves)
    targets = [resolve(leaf, entry) for leaf, entry in zip(leaves, entries, strict=True)]

    def path_of(index: int) -> str:
        path = tree_util.keystr(treedef.paths()[index])
        return f"{path or '(all)'} of {operation}"

    return tree_util.tree_unflatten(treedef, _put_leaves(leaves, targets, False, None, path_of, explicit=False))


def _rank_of(leaf: Any) -> int | None:
    return getattr(leaf, "ndim", None)


def _remade(sharding: NamedSharding, entries: list[Any]) -> NamedSharding:
    spec = PartitionSpec(*entries)
    return NamedSharding(sharding.mesh, spec, memory_kind=sharding.memory_kind, uneven=sharding.uneven)


def _with_full_rank(leaf: Any, sharding: NamedSharding) -> NamedSharding:
    missing = (_rank_of(leaf) or 0) - len(sharding.spec)
    return _remade(sharding, [*sharding.spec, *[None] * missing]) if missing > 0 else sharding


def _without_unconstrained(leaf: Any, sharding: Sharding) -> Sharding:
    """Each UNCONSTRAINED entry replaced by how the leaf is cut there on the same mesh, or None."""
    free = PartitionSpec.UNCONSTRAINED
    if not isinstance(sharding, NamedSharding) or free not in sharding.spec:
        return sharding
    here = leaf.sharding if isinstance(leaf, Array) else None
    now = list(here.spec) if isinstance(here, NamedSharding) and here.mesh == sharding.mesh else []
    used = {axis for entry in sharding.spec if entry is not free for axis in _axes(entry)}
    entries = []
    for dimension, entry in enumerate(sharding.spec):
        if entry is free:
            kept = now[dimension] if dimension < len(now) else None
            entry = None if used & set(_axes(kept)) else kept
        entries.append(entry)
    return _remade(sharding, entries)


def _axes(entry: Any) -> tuple[Any, ...]:
    if entry is None:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)
