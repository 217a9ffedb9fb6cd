# SPDX-License-Identifier: Apache-2.0
"""Collectives for the bodies of `shard_map` and `pmap`: the names of `jax.lax`.

Each is called by every participant of a group, with blocks of one shape and dtype or trees of them. Sums have a fixed
order, so results repeat bit for bit. Results are read-only ndarrays. Where participants do not meet, all of them stop
and the caller gets an error with a table of where each device stood.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from artifex_devices._base.safe_repr import shown
from artifex_devices._core import _arrive, _take
from artifex_devices._placement.reshard import with_sharding_constraint
from artifex_devices._runtime.device_arguments import whole_number
from artifex_devices._spmd import collectives
from artifex_devices._spmd.axes import group_of, names_of, require
from artifex_devices._spmd.whole_numbers import numbers_in

__all__ = [
    "all_gather",
    "all_to_all",
    "axis_index",
    "axis_size",
    "pbroadcast",
    "pcast",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "pshuffle",
    "psum",
    "psum_scatter",
    "pswapaxes",
    "pvary",
    "with_sharding_constraint",
]


def psum(x: Any, axis_name: Any, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> Any:
    """The sum over all members of an axis.

    Args:
        x: A block or a tree of blocks; bools are counted as int32. Python numbers are multiplied by the axis size.
        axis_name: Name of an axis that the body's shard_map or pmap binds, or a tuple of names.
        axis_index_groups: Lists of indices along the axis that are summed by themselves; all of one size.

    Returns:
        x with the sum in place of each block, the same read-only array for all members. float16 and bfloat16 are added
        in float32 and rounded once.

    Raises:
        NameError: The name is not bound.
        TypeError: A leaf is no array of numbers.
        ValueError: axis_index_groups do not hold each index once, or differ in size.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(4):
        ...     print(np.asarray(ad.pmap(lambda x: ad.lax.psum(x, "i"), axis_name="i")(np.arange(4))))
        [6 6 6 6]
    """
    if axis_index_groups is None:
        turn = _arrive("psum", axis_name, x)
        if turn is not None:  # the everyday one: an ndarray of a kind that the program has met before
            turn()
            return _take()
    me = require("psum", axis_name)
    group = group_of("psum", me, axis_name, axis_index_groups)
    if type(x) in (int, float, complex):
        return x * group.size
    leaves, treedef = collectives.leaves_of("psum", x)
    leaves = [leaf.astype(np.int32) if leaf.dtype.char == "?" else leaf for leaf in leaves]
    return collectives.rebuild(treedef, collectives.reduce("psum", "sum", me, group, axis_name, leaves))


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> Any:
    """The mean over all members of an axis; arguments as psum. Bools and small integers give float32, int64 float64.

    Integers are added as floats, so that sums of small ones do not wrap around (JAX adds them as they are).
    """
    me = require("pmean", axis_name)
    group = group_of("pmean", me, axis_name, axis_index_groups)
    leaves, treedef = collectives.leaves_of("pmean", x)
    leaves = [leaf.astype(_mean_dtype(leaf.dtype)) if leaf.dtype.kind in "biu" else leaf for leaf in leaves]
    return collectives.rebuild(treedef, collectives.reduce("pmean", "sum", me, group, axis_name, leaves, mean=True))


def _mean_dtype(dtype: np.dtype[Any]) -> type[Any]:
    return np.float64 if dtype.itemsize == 8 else np.float32


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> Any:
    """The element-wise maximum over all members of an axis; NaN where any has one. Arguments as psum."""
    return _extreme("pmax", "max", x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> Any:
    """The element-wise minimum over all members of an axis; NaN where any has one. Arguments as psum."""
    return _extreme("pmin", "min", x, axis_name, axis_index_groups)


def _extreme(operation: str, kind: str, x: Any, axis_name: Any, index_groups: Any) -> Any:
    me = require(operation, axis_name)
    group = group_of(operation, me, axis_name, index_groups)
    leaves, treedef = collectives.leaves_of(operation, x)
    return collectives.rebuild(treedef, collectives.reduce(operation, kind, me, group, axis_name, leaves))


def all_gather(
    x: Any,
    axis_name: Any,
    *,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    axis: int = 0,
    tiled: bool = False,
) -> Any:
    """The blocks of all members of an axis, in their order.

    Args:
        x: A block or a tree of blocks.
        axis_name: As psum.
        axis_index_groups: As psum.
        axis: The new dimension, of the axis's size; with tiled=True the dimension along which blocks are joined.
        tiled: Join blocks instead of stacking them.

    Returns:
        x with the gathered array in place of each block, the same read-only array for all members.

    Raises:
        NameError: The name is not bound.
        ValueError: The blocks do not have this dimension.
    """
    me = require("all_gather", axis_name)
    if type(axis_name) is tuple and not axis_name:
        return x  # over no axis there is nothing to stack either
    group = group_of("all_gather", me, axis_name, axis_index_groups)
    leaves, treedef = collectives.leaves_of("all_gather", x)
    axis = whole_number("all_gather", "axis", axis)
    return collectives.rebuild(treedef, collectives.gather("all_gather", me, group, axis_name, leaves, axis, tiled))


def psum_scatter(
    x: Any,
    axis_name: Any,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    tiled: bool = False,
) -> Any:
    """The sum over all members of an axis, of which each gets its piece.

    Args:
        x: A block or a tree of blocks.
        axis_name: As psum.
        scatter_dimension: The dimension that is split over the members; of the axis's size, and gone in the result,
            or with tiled=True a multiple of it, and divided by it in the result.
        axis_index_groups: As psum.
        tiled: Whether the dimension stays.

    Returns:
        x with a read-only array in place of each block.

    Raises:
        NameError: The name is not bound.
        ValueError: The dimension cannot be split.
    """
    me = require("psum_scatter", axis_name)
    group = group_of("psum_scatter", me, axis_name, axis_index_groups)
    leaves, treedef = collectives.leaves_of("psum_scatter", x)
    if any(leaf.dtype.char == "?" for leaf in leaves):
        raise TypeError("psum_scatter: bools have no sum; expected numbers, got bool; convert it: x.astype(np.int32)")
    axis = whole_number("psum_scatter", "scatter_dimension", scatter_dimension)
    return collectives.rebuild(treedef, collectives.scatter("psum_scatter", me, group, axis_name, leaves, axis, tiled))


def all_to_all(
    x: Any,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
    tiled: bool = False,
) -> Any:
    """Splits each block over the members; member i gets the i-th piece of everybody.

    Args:
        x: A block or a tree of blocks.
        axis_name: As psum.
        split_axis: The dimension that is split; of the axis's size, or with tiled=True a multiple of it.
        concat_axis: Where the pieces are stacked, or with tiled=True joined.
        axis_index_groups: As psum.
        tiled: Whether split_axis stays.

    Returns:
        x with a read-only array in place of each block.

    Raises:
        NameError: The name is not bound.
        ValueError: The dimension cannot be split.
    """
    return _exchange("all_to_all", x, axis_name, split_axis, concat_axis, axis_index_groups, tiled)


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Sequence[Sequence[int]] | None = None) -> Any:
    """Swaps a dimension of the blocks, of the axis's size, with the axis: all_to_all of it with itself."""
    return _exchange("pswapaxes", x, axis_name, axis, axis, axis_index_groups, tiled=False)


def _exchange(
    operation: str, x: Any, axis_name: Any, split_axis: int, concat_axis: int, index_groups: Any, tiled: bool
) -> Any:
    me = require(operation, axis_name)
    group = group_of(operation, me, axis_name, index_groups)
    leaves, treedef = collectives.leaves_of(operation, x)
    split = whole_number(operation, "split_axis", split_axis)
    concat = whole_number(operation, "concat_axis", concat_axis)
    made = collectives.all_to_all(operation, me, group, axis_name, leaves, split, concat, tiled)
    return collectives.rebuild(treedef, made)


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Sends blocks along an axis.

    Args:
        x: A block or a tree of blocks.
        axis_name: As psum; several names in the order of the mesh.
        perm: Pairs (source, target) of indices along the axis; each at most once as source and as target.

    Returns:
        x with the block that arrived in place of each block, zeros where none did.

    Raises:
        NameError: The name is not bound.
        IndexError: perm names a member that is not there.
        ValueError: perm is no permutation; names in another order than the mesh's, for which JAX has no one answer.
    """
    me = require("ppermute", axis_name)
    names = names_of(axis_name)
    order = [name for name in me.axis_names if name in names]
    if len(names) > 1 and list(names) != order:
        raise ValueError(
            f"ppermute: the axis names are in another order than the mesh's; expected {tuple(order)}, got {names}; "
            "name them in that order and number the members so"
        )
    return _permute("ppermute", x, axis_name, perm)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Member i gets the block of member perm[i].

    Raises:
        NameError: The name is not bound.
        ValueError: perm does not hold each index once.
    """
    me = require("pshuffle", axis_name)
    count = group_of("pshuffle", me, axis_name).size
    perm = numbers_in("pshuffle", "perm", perm)
    if sorted(perm) != list(range(count)):
        raise ValueError(
            f"pshuffle: perm is no permutation; expected each of 0 to {count - 1} once, got {list(perm)}; complete it"
        )
    return _permute("pshuffle", x, axis_name, list(zip(perm, range(count), strict=True)))


def _permute(operation: str, x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    me = require(operation, axis_name)
    group = group_of(operation, me, axis_name)
    leaves, treedef = collectives.leaves_of(operation, x)
    pairs = _pairs(operation, perm)
    return collectives.rebuild(treedef, collectives.permute(operation, me, group, axis_name, leaves, pairs))


def _pairs(operation: str, perm: Any) -> tuple[tuple[int, int], ...]:
    if isinstance(perm, str) or not isinstance(perm, Iterable):
        raise TypeError(
            f"{operation}: perm is of type {type(perm).__name__}; expected pairs (source, target), got {shown(perm)}; "
            "write [(0, 1), (1, 0)]"
        )
    pairs = [numbers_in(operation, f"perm[{place}]", pair) for place, pair in enumerate(perm)]
    if wrong := [pair for pair in pairs if len(pair) != 2]:
        raise ValueError(
            f"{operation}: perm has entries that are no pairs; expected (source, target), got {wrong}; write "
            "[(0, 1), (1, 0)]"
        )
    return tuple((source, target) for source, target in pairs)


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """Gives all members of an axis the block of member `source`.

    Raises:
        NameError: The name is not bound.
        ValueError: There is no such member.
    """
    me = require("pbroadcast", axis_name)
    group = group_of("pbroadcast", me, axis_name)
    source = whole_number("pbroadcast", "source", source)
    if not 0 <= source < group.size:
        raise ValueError(f"pbroadcast: there is no member {source}; expected 0 to {group.size - 1}; choose one of them")
    leaves, treedef = collectives.leaves_of("pbroadcast", x)

    made = collectives.broadcast("pbroadcast", me, group, axis_name, leaves, source)
    return collectives.rebuild(treedef, made)


def axis_index(axis_name: Any) -> np.int32:
    """This participant's index along an axis, or row-major along several in the order named; NameError if unbound."""
    me = require("axis_index", axis_name)
    return np.int32(group_of("axis_index", me, axis_name).index)


def axis_size(axis_name: Any) -> int:
    """Number of members of an axis, or of several together; NameError if unbound."""
    me = require("axis_size", axis_name)
    return group_of("axis_size", me, axis_name).size


def pvary(x: Any, axis_name: Any) -> Any:
    """X itself: here values are not tracked by the axes over which they vary. NameError for an unbound name."""
    group_of("pvary", require("pvary", axis_name), axis_name)
    return x


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """X itself, as pvary; `to` is "varying" or "reduced" and otherwise a ValueError."""
    if to not in ("varying", "reduced"):
        raise ValueError(f"pcast: to is not known; expected 'varying' or 'reduced', got {shown(to)}; choose one")
    return pvary(x, axis_name)
