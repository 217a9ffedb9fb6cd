# SPDX-License-Identifier: Apache-2.0
"""Collectives for the bodies of `shard_map` and `pmap`, with the names of `jax.lax`.

Every participant of a group calls the same collective, with blocks of one shape and dtype, or trees of blocks. Sums
have a fixed order, so results repeat bit for bit. Results are read-only ndarrays. Where participants call different
collectives, all of them stop and the caller gets an error with the position of each device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from artifex_devices._base.checks import (
    check_bool,
    check_choice,
    check_int,
    check_sequence,
    check_sequence_of_ints,
    failure,
)
from artifex_devices._base.leaf_types import T
from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices._base.refused_arguments import hides_unknown, missing_argument, unknown_argument
from artifex_devices._base.unspecified import UNSPECIFIED
from artifex_devices._core.internal import arrive, take
from artifex_devices._core.internal import check_int as _check_int
from artifex_devices._placement.reshard import with_sharding_constraint
from artifex_devices._spmd import collectives
from artifex_devices._spmd.axes import AxisNames, group_of, names_of, require
from artifex_devices._spmd.block_sums import block_sums

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
    "sum_over",
    "with_sharding_constraint",
]
add_public_lookup(__name__)

IndexGroups: TypeAlias = Sequence[Sequence[int]] | None
Number: TypeAlias = np.generic | complex  # includes int and float
FloatBlock = TypeVar("FloatBlock", bound=NDArray[np.inexact[Any]])


def _collective(
    function: Callable[..., Any], operation: str, x: T, axis_name: AxisNames, index_groups: object, *options: Any
) -> T:
    """Calls function(call, leaves, *options) and puts the result into the tree of x."""
    group = group_of(operation, axis_name, index_groups)
    argument = None if index_groups is None else group.groups
    leaves, treedef = collectives.leaves_of(operation, x)
    call = collectives.Call(operation, require(operation, axis_name), group, axis_name, argument)
    result: T = collectives.rebuild(treedef, function(call, leaves, *options))
    return result


@overload
def psum(
    x: bool | NDArray[np.bool_],
    axis_name: AxisNames,
    *,
    axis_index_groups: IndexGroups = None,
    reproducible: bool = False,
) -> NDArray[np.int32]: ...
@overload
def psum(
    x: np.generic, axis_name: AxisNames, *, axis_index_groups: IndexGroups = None, reproducible: bool = False
) -> NDArray[Any]: ...
@overload
def psum(x: T, axis_name: AxisNames, *, axis_index_groups: IndexGroups = None, reproducible: bool = False) -> T: ...
@hides_unknown
def psum(
    x: Any,
    axis_name: AxisNames = UNSPECIFIED,
    *,
    axis_index_groups: IndexGroups = None,
    reproducible: bool = False,
    **_unknown: Any,
) -> Any:
    """Returns the sum over all members of an axis.

    Args:
        x: A block or a tree of blocks; bools are counted as int32. Python numbers are multiplied by the axis size.
        axis_name: Name of an axis that the body's shard_map or pmap binds, or a tuple of names.
        axis_index_groups: Lists of indices along the axis, of equal size; each list is summed separately.
        reproducible: Whether sums are exact and rounded once. They then have the same bits for the same blocks in any
            order, on any number of processes.

    Returns:
        x with the sum in place of each block, the same read-only array for all members. float16 and bfloat16 are added
        in float32 and rounded once.

    Raises:
        NameError: The name is not bound.
        OverflowError: The sum of a Python int does not fit 64 bits.
        TypeError: A leaf is not an array of numbers.
        ValueError: axis_index_groups do not hold each index once, or differ in size.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(4):
        ...     print(np.asarray(ad.pmap(lambda x: ad.lax.psum(x, "i"), axis_name="i")(np.arange(4))))
        [6 6 6 6]
    """
    if _unknown:
        raise unknown_argument("psum", _unknown)
    if reproducible is not False:
        check_bool("psum", "reproducible", reproducible)
        if type(x) not in (int, float, complex):  # multiplied below, which rounds once
            return _exact("psum", x, axis_name, axis_index_groups, _exact_sum)
    proceed = arrive("psum", axis_name, x, axis_index_groups)
    if proceed is not None:  # the common case of all collectives: the session has checked such a call before
        return take(proceed())
    if type(x) in (int, float, complex):
        total = x * group_of("psum", axis_name, axis_index_groups).size
        if type(total) is int:
            _check_int(total, "psum")
        return total
    return _collective(_sum, "psum", x, axis_name, axis_index_groups)


def _counted(leaves: list[Any]) -> list[Any]:
    """Returns bools as int32, other leaves unchanged."""
    return [leaf.astype(np.int32) if leaf.dtype.char == "?" else leaf for leaf in leaves]


def _sum(call: collectives.Call, leaves: list[Any]) -> Any:
    return collectives.reduce(call, _counted(leaves), "sum")


def _exact(
    operation: str,
    x: Any,
    axis_name: AxisNames,
    index_groups: IndexGroups,
    function: Callable[..., Any],
    *options: Any,
) -> Any:
    """Calls a collective with reproducible=True."""
    proceed = arrive(operation, axis_name, x, index_groups, *options, True)
    if proceed is not None:
        return take(proceed())
    return _collective(function, operation, x, axis_name, index_groups, *options)


def _exact_sum(call: collectives.Call, leaves: list[Any]) -> Any:
    return collectives.reduce_exactly(call, _counted(leaves))


@overload
def pmean(
    x: FloatBlock, axis_name: AxisNames, *, axis_index_groups: IndexGroups = None, reproducible: bool = False
) -> FloatBlock: ...
@overload
def pmean(
    x: Number | NDArray[Any], axis_name: AxisNames, *, axis_index_groups: IndexGroups = None, reproducible: bool = False
) -> NDArray[Any]: ...
@overload
def pmean(x: T, axis_name: AxisNames, *, axis_index_groups: IndexGroups = None, reproducible: bool = False) -> T: ...
@hides_unknown
def pmean(
    x: Any,
    axis_name: AxisNames = UNSPECIFIED,
    *,
    axis_index_groups: IndexGroups = None,
    reproducible: bool = False,
    **_unknown: Any,
) -> Any:
    """Returns the mean over all members of an axis; arguments as psum.

    Bools and small integers give float32, int64 gives float64. Integers are added as floats: sums of small dtypes do
    not overflow (JAX adds integers in their dtype). With reproducible=True the exact quotient is rounded once.
    """
    if _unknown:
        raise unknown_argument("pmean", _unknown)
    if reproducible is not False:
        check_bool("pmean", "reproducible", reproducible)
        return _exact("pmean", x, axis_name, axis_index_groups, _exact_mean)
    proceed = arrive("pmean", axis_name, x, axis_index_groups)
    if proceed is not None:
        return take(proceed())
    return _collective(_mean, "pmean", x, axis_name, axis_index_groups)


def _as_float(leaf: Any) -> Any:
    if leaf.dtype.kind not in "biu":
        return leaf
    return leaf.astype(np.float64 if leaf.dtype.itemsize == 8 else np.float32)


def _mean(call: collectives.Call, leaves: list[Any]) -> Any:
    return collectives.reduce(call, [_as_float(leaf) for leaf in leaves], "sum", True)


def _exact_mean(call: collectives.Call, leaves: list[Any]) -> Any:
    return collectives.reduce_exactly(call, [_as_float(leaf) for leaf in leaves], True)


@overload
def sum_over(x: Number, axis_name: AxisNames, axis: int | tuple[int, ...] | None = None) -> NDArray[Any]: ...
@overload
def sum_over(x: T, axis_name: AxisNames, axis: int | tuple[int, ...] | None = None) -> T: ...
def sum_over(x: Any, axis_name: AxisNames, axis: int | tuple[int, ...] | None = None) -> Any:
    """Returns the exact sum of the elements of all members' blocks, rounded once.

    The bits are those of `sum` of the global Array inside `reproducible()`, however the blocks divide it.

    Args:
        x: A block or a tree of blocks, with the dtypes that `np.sum` takes.
        axis_name: As psum.
        axis: The dimension or dimensions of the blocks that are summed; all by default. Each element of the result
            needs 576 bytes of memory during the call.

    Returns:
        x with a read-only array in place of each block. Its dtype is that of `np.sum`.

    Raises:
        NameError: The name is not bound.
        TypeError: A leaf is not an array of numbers.
        ValueError: The blocks do not have this dimension.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> x = np.array([1e16, 1.0, -1e16, 1.0])
        >>> with ad.simulate(2):
        ...     mesh = ad.make_mesh((2,), ("i",))
        ...     f = ad.shard_map(lambda b: ad.lax.sum_over(b, "i"), mesh=mesh, in_specs=ad.P("i"), out_specs=ad.P())
        ...     print(np.asarray(f(x)))
        2.0
    """
    return _collective(block_sums, "sum_over", x, axis_name, None, axis)


@overload
def pmax(x: Number, axis_name: AxisNames, *, axis_index_groups: IndexGroups = None) -> NDArray[Any]: ...
@overload
def pmax(x: T, axis_name: AxisNames, *, axis_index_groups: IndexGroups = None) -> T: ...
@hides_unknown
def pmax(x: Any, axis_name: AxisNames = UNSPECIFIED, *, axis_index_groups: IndexGroups = None, **_unknown: Any) -> Any:
    """Returns the element-wise maximum over all members of an axis; NaN where any has one. Arguments as psum."""
    if _unknown:
        raise unknown_argument("pmax", _unknown)
    proceed = arrive("pmax", axis_name, x, axis_index_groups)
    if proceed is not None:
        return take(proceed())
    return _collective(collectives.reduce, "pmax", x, axis_name, axis_index_groups, "max")


@overload
def pmin(x: Number, axis_name: AxisNames, *, axis_index_groups: IndexGroups = None) -> NDArray[Any]: ...
@overload
def pmin(x: T, axis_name: AxisNames, *, axis_index_groups: IndexGroups = None) -> T: ...
@hides_unknown
def pmin(x: Any, axis_name: AxisNames = UNSPECIFIED, *, axis_index_groups: IndexGroups = None, **_unknown: Any) -> Any:
    """Returns the element-wise minimum over all members of an axis; NaN where any has one. Arguments as psum."""
    if _unknown:
        raise unknown_argument("pmin", _unknown)
    proceed = arrive("pmin", axis_name, x, axis_index_groups)
    if proceed is not None:
        return take(proceed())
    return _collective(collectives.reduce, "pmin", x, axis_name, axis_index_groups, "min")


@overload
def all_gather(
    x: Number, axis_name: AxisNames, *, axis_index_groups: IndexGroups = None, axis: int = 0, tiled: bool = False
) -> NDArray[Any]: ...
@overload
def all_gather(
    x: T, axis_name: AxisNames, *, axis_index_groups: IndexGroups = None, axis: int = 0, tiled: bool = False
) -> T: ...
@hides_unknown
def all_gather(
    x: Any,
    axis_name: AxisNames,
    *,
    axis_index_groups: IndexGroups = None,
    axis: int = 0,
    tiled: bool = False,
    **_unknown: Any,
) -> Any:
    """Returns the blocks of all members of an axis, in their order.

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
    if _unknown:
        raise unknown_argument("all_gather", _unknown)
    proceed = arrive("all_gather", axis_name, x, axis_index_groups, axis, tiled)
    if proceed is not None:
        return take(proceed())
    require("all_gather", axis_name)
    if type(axis_name) is tuple and not axis_name:
        return x  # without an axis, no blocks are stacked
    axis = check_int("all_gather", "axis", axis)
    return _collective(collectives.gather, "all_gather", x, axis_name, axis_index_groups, axis, tiled)


@hides_unknown
def psum_scatter(
    x: T,
    axis_name: AxisNames,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: IndexGroups = None,
    tiled: bool = False,
    reproducible: bool = False,
    **_unknown: NoReturn,
) -> T:
    """Returns this member's piece of the sum over all members of an axis.

    Args:
        x: A block or a tree of blocks.
        axis_name: As psum.
        scatter_dimension: The dimension that is split over the members. Its size is the axis's, and the result does not
            have it; with tiled=True its size is a multiple of the axis's, by which it is divided in the result.
        axis_index_groups: As psum.
        tiled: Whether the result has the dimension.
        reproducible: As psum.

    Returns:
        x with a read-only array in place of each block.

    Raises:
        NameError: The name is not bound.
        ValueError: The dimension cannot be split.
    """
    if _unknown:
        raise unknown_argument("psum_scatter", _unknown)
    if reproducible is not False:
        check_bool("psum_scatter", "reproducible", reproducible)
        axis = check_int("psum_scatter", "scatter_dimension", scatter_dimension)
        return _exact("psum_scatter", x, axis_name, axis_index_groups, _exact_scatter, axis, tiled)  # type: ignore[no-any-return]
    proceed = arrive("psum_scatter", axis_name, x, axis_index_groups, scatter_dimension, tiled)
    if proceed is not None:
        return take(proceed())  # type: ignore[no-any-return]
    axis = check_int("psum_scatter", "scatter_dimension", scatter_dimension)
    return _collective(collectives.scatter, "psum_scatter", x, axis_name, axis_index_groups, axis, tiled)


def _exact_scatter(call: collectives.Call, leaves: list[Any], axis: int, tiled: bool) -> Any:
    return collectives.scatter(call, leaves, axis, tiled, True)


def all_to_all(
    x: T,
    axis_name: AxisNames,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: IndexGroups = None,
    tiled: bool = False,
) -> T:
    """Splits each block over the members; member i gets the i-th piece of every member.

    Args:
        x: A block or a tree of blocks.
        axis_name: As psum.
        split_axis: The dimension that is split. Its size is the axis's, or with tiled=True a multiple of it.
        concat_axis: The dimension along which the pieces are stacked, or with tiled=True joined.
        axis_index_groups: As psum.
        tiled: Whether the result has split_axis.

    Returns:
        x with a read-only array in place of each block.

    Raises:
        NameError: The name is not bound.
        ValueError: The dimension cannot be split.
    """
    proceed = arrive("all_to_all", axis_name, x, axis_index_groups, split_axis, concat_axis, tiled)
    if proceed is not None:
        return take(proceed())  # type: ignore[no-any-return]
    return _exchange("all_to_all", x, axis_name, split_axis, concat_axis, axis_index_groups, tiled)


def pswapaxes(x: T, axis_name: AxisNames, axis: int, *, axis_index_groups: IndexGroups = None) -> T:
    """Swaps a dimension of the blocks, of the axis's size, with the axis: all_to_all with split_axis = concat_axis."""
    proceed = arrive("pswapaxes", axis_name, x, axis_index_groups, axis, axis, False)
    if proceed is not None:
        return take(proceed())  # type: ignore[no-any-return]
    return _exchange("pswapaxes", x, axis_name, axis, axis, axis_index_groups, tiled=False)


def _exchange(
    operation: str, x: T, axis_name: AxisNames, split_axis: int, concat_axis: int, index_groups: object, tiled: bool
) -> T:
    split = check_int(operation, "split_axis", split_axis)
    concat = check_int(operation, "concat_axis", concat_axis)
    return _collective(collectives.all_to_all, operation, x, axis_name, index_groups, split, concat, tiled)


@overload
def ppermute(x: Number, axis_name: AxisNames, perm: Sequence[tuple[int, int]]) -> NDArray[Any]: ...
@overload
def ppermute(x: T, axis_name: AxisNames, perm: Sequence[tuple[int, int]]) -> T: ...
@hides_unknown
def ppermute(x: Any, axis_name: AxisNames, perm: Sequence[tuple[int, int]] = UNSPECIFIED, **_unknown: Any) -> Any:
    """Sends blocks along an axis.

    Args:
        x: A block or a tree of blocks.
        axis_name: As psum; several names must be in the order of the mesh.
        perm: Pairs (source, target) of indices along the axis; each at most once as source and as target.

    Returns:
        x with the received block in place of each block; zeros where this member is not a target.

    Raises:
        NameError: The name is not bound.
        IndexError: perm has a member that does not exist.
        ValueError: perm is not a permutation; names are in another order than the mesh's, for which JAX is ambiguous.
    """
    if _unknown:
        raise unknown_argument("ppermute", _unknown)
    if perm is UNSPECIFIED:
        raise missing_argument("ppermute", "perm")
    proceed = arrive("ppermute", axis_name, x, perm)
    if proceed is not None:
        return take(proceed())
    me = require("ppermute", axis_name)
    names = names_of(axis_name)
    order = [name for name in me.axis_names if name in names]
    if len(names) > 1 and list(names) != order:
        raise failure(
            ValueError,
            "ppermute",
            "the axis names are in another order than the mesh's",
            expected=tuple(order),
            got=names,
            fix="name them in that order and number the members so",
        )
    return _permute("ppermute", x, axis_name, perm, _pairs)


@overload
def pshuffle(x: Number, axis_name: AxisNames, perm: Sequence[int]) -> NDArray[Any]: ...
@overload
def pshuffle(x: T, axis_name: AxisNames, perm: Sequence[int]) -> T: ...
def pshuffle(x: Any, axis_name: AxisNames, perm: Sequence[int]) -> Any:
    """Returns the block of member perm[i] to member i.

    Raises:
        NameError: The name is not bound.
        ValueError: perm does not hold each index once.
    """
    proceed = arrive("pshuffle", axis_name, x, perm)
    if proceed is not None:
        return take(proceed())
    return _permute("pshuffle", x, axis_name, perm, _shuffled)


def _permute(
    operation: str, x: object, axis_name: AxisNames, perm: object, check: Callable[[Any, int], tuple[Any, Any]]
) -> Any:
    """Sends blocks by perm; check(perm, axis size) returns its indices as tuples of ints, and its pairs."""
    me = require(operation, axis_name)
    group = group_of(operation, axis_name)
    scheduler = me.session.scheduler
    permutation = scheduler.prepared(me, operation, group.groups, perm)
    if permutation is None:
        indices, pairs = check(perm, group.size)
        permutation = collectives.Permutation(operation, pairs, group.size)
        permutation = scheduler.prepare(me, operation, group.groups, perm, indices, permutation)
    leaves, treedef = collectives.leaves_of(operation, x)
    call = collectives.Call(operation, me, group, axis_name, permutation)
    return collectives.rebuild(treedef, collectives.permute(call, leaves))


def _pairs(perm: object, count: int) -> tuple[Any, Any]:
    listed = check_sequence("ppermute", "perm", perm, "pairs (source, target)", "write [(0, 1), (1, 0)]")
    pairs = tuple(
        check_sequence_of_ints("ppermute", f"perm[{i}]", pair, "write (0, 1)") for i, pair in enumerate(listed)
    )
    if wrong := [list(pair) for pair in pairs if len(pair) != 2]:
        raise failure(
            ValueError,
            "ppermute",
            "perm has entries that are not pairs",
            expected="(source, target)",
            got=wrong,
            fix="write [(0, 1), (1, 0)]",
        )
    return pairs, pairs


def _shuffled(perm: object, count: int) -> tuple[Any, Any]:
    indices = check_sequence_of_ints("pshuffle", "perm", perm, "write [1, 0]")
    if sorted(indices) != list(range(count)):
        raise failure(
            ValueError,
            "pshuffle",
            "perm is not a permutation",
            expected=f"each of 0 to {count - 1} once",
            got=indices,
            fix="complete it",
        )
    return indices, list(zip(indices, range(count), strict=True))


@overload
def pbroadcast(x: Number, axis_name: AxisNames, source: int) -> NDArray[Any]: ...
@overload
def pbroadcast(x: T, axis_name: AxisNames, source: int) -> T: ...
def pbroadcast(x: Any, axis_name: AxisNames, source: int) -> Any:
    """Returns the block of member `source` to all members of an axis.

    Raises:
        NameError: The name is not bound.
        ValueError: The member does not exist.
    """
    proceed = arrive("pbroadcast", axis_name, x, None, source)
    if proceed is not None:
        return take(proceed())
    size = group_of("pbroadcast", axis_name).size
    source = check_int("pbroadcast", "source", source, "choose one of them", minimum=0, maximum=size - 1)
    return _collective(collectives.broadcast, "pbroadcast", x, axis_name, None, source)


def axis_index(axis_name: AxisNames) -> np.int32:
    """Returns this participant's index along an axis, or row-major along several as named.

    Raises:
        NameError: The body binds no axis of this name.
    """
    return np.int32(group_of("axis_index", axis_name).index)


def axis_size(axis_name: AxisNames) -> int:
    """Returns the number of members of an axis, or of several together.

    Raises:
        NameError: The body binds no axis of this name.
    """
    return group_of("axis_size", axis_name).size


def pvary(x: T, axis_name: AxisNames) -> T:
    """Returns x: values do not record the axes over which they vary.

    Raises:
        NameError: The body binds no axis of this name.
    """
    group_of("pvary", axis_name)
    return x


def pcast(x: T, axis_name: AxisNames, *, to: str) -> T:
    """Returns x, as pvary.

    Raises:
        NameError: The body binds no axis of this name.
        ValueError: `to` is neither "varying" nor "reduced".
    """
    check_choice("pcast", "to", to, ("varying", "reduced"))
    return pvary(x, axis_name)
