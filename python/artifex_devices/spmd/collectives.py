# SPDX-License-Identifier: Apache-2.0
"""What collectives compute out of their members' blocks: the last one to arrive does it for all.

Results never show a member's memory. Where all members get the same, they share one read-only array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.exceptions import AxisError
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices.spmd.axes import Group
from artifex_devices.spmd.participant import Participant, _current
from artifex_devices.spmd.specs import check_unmasked

__all__ = [
    "all_to_all",
    "gather",
    "leaves_of",
    "meet",
    "once_more",
    "permute",
    "rebuild",
    "reduce",
    "scatter",
]

Leaves = list[NDArray[Any]]
_DEPTH = 4  # meet <- collectives.meet <- the operation here <- lax <- the user's line


def leaves_of(operation: str, x: Any) -> tuple[Leaves, Any]:
    """The leaves of a tree as ndarrays, and what `rebuild` needs.

    Raises:
        TypeError: A leaf is no array of numbers.
    """
    if type(x) is np.ndarray:
        return [x], None
    if isinstance(x, (np.generic, bool, int, float, complex)):
        return [np.asarray(x)], None
    from artifex_devices import tree_util

    leaves, treedef = tree_util.tree_flatten(x)
    arrays = [np.asarray(leaf) for leaf in leaves]
    for leaf, array in zip(leaves, arrays, strict=True):
        check_unmasked(operation, leaf, "a leaf")
        if array.dtype.kind in "OSUMm":
            raise TypeError(
                f"{operation}: a leaf of type {type(leaf).__name__} is no array of numbers; expected an ndarray or a "
                f"number, got {leaf!r}; convert it first"
            )
    return arrays, treedef


def rebuild(treedef: Any, leaves: Sequence[Any]) -> Any:
    """The tree with other leaves."""
    if treedef is None:
        return leaves[0]
    from artifex_devices import tree_util

    return tree_util.tree_unflatten(treedef, list(leaves))


def meet(
    operation: str,
    me: Participant,
    group: Group,
    axis_name: Any,
    options: tuple[tuple[str, Any], ...],
    leaves: Leaves,
    complete: Callable[[list[Leaves]], Sequence[Leaves]],
) -> Leaves:
    """Meets the group with these leaves."""
    axes = tuple(axis_name) if type(axis_name) is list else axis_name
    signature: tuple[Any, ...]
    if len(leaves) == 1:
        leaf = leaves[0]
        signature = (operation, axes, options, leaf.dtype, leaf.shape)
    else:
        described = [detail for leaf in leaves for detail in (leaf.dtype, leaf.shape)]
        signature = (operation, axes, options, *described)
    result: Leaves = me.join(me.program.meeting(signature, group.groups, complete), leaves, _DEPTH)
    return result


def once_more(operation: str, axis_name: Any, options: tuple[tuple[str, Any], ...], x: Any) -> NDArray[Any] | None:
    """The everyday collective: one ndarray, of a kind that the program has seen. None for all others."""
    me = _current.get()
    if me is None or type(x) is not np.ndarray or type(axis_name) is list:
        return None
    meeting = me.program.meetings.get((operation, axis_name, options, x.dtype, x.shape))
    if meeting is None or meeting.groups is not me.program.groups.get(axis_name):
        return None
    result: Leaves = me.join(meeting, [x], 3)  # join <- here <- lax <- the user's line
    return result[0]


def _empty(operation: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    try:
        made: NDArray[Any] = _core._host_empty(shape, dtype)
    except TypeError as error:
        raise TypeError(f"{operation}: {str(error).removeprefix('host_empty: ')}") from None
    return made


def _sealed(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def _reduced(operation: str, kind: str, parts: Sequence[NDArray[Any]], *, mean: bool = False) -> NDArray[Any]:
    first = parts[0]
    out = _empty(operation, first.shape, first.dtype)
    try:
        _core._all_reduce(kind, list(parts), out)
    except TypeError as error:
        raise TypeError(f"{operation}: {str(error).removeprefix('all_reduce: ')}") from None
    if mean:
        np.divide(out, out.dtype.type(len(parts)), out=out)
    return _sealed(out)


def reduce(
    operation: str, kind: str, me: Participant, group: Group, axis_name: Any, leaves: Leaves, *, mean: bool = False
) -> Leaves:
    """Combines leaf by leaf, and divides by the number of members for a mean; all members get the same arrays."""

    def complete(payloads: list[Leaves]) -> Sequence[Leaves]:
        result = [_reduced(operation, kind, parts, mean=mean) for parts in zip(*payloads, strict=True)]
        return [result] * len(payloads)

    return meet(operation, me, group, axis_name, (), leaves, complete)


def gather(
    operation: str, me: Participant, group: Group, axis_name: Any, leaves: Leaves, axis: int, tiled: bool
) -> Leaves:
    """Puts members' blocks after each other along a new dimension, or along one that they have."""

    def complete(payloads: list[Leaves]) -> Sequence[Leaves]:
        result = [_joined(operation, parts, axis, tiled) for parts in zip(*payloads, strict=True)]
        return [result] * len(payloads)

    return meet(operation, me, group, axis_name, (("axis", axis), ("tiled", tiled)), leaves, complete)


def _joined(operation: str, parts: Sequence[NDArray[Any]], axis: int, tiled: bool) -> NDArray[Any]:
    first = parts[0]
    count = len(parts)
    shape = list(first.shape)
    if tiled:
        d = _dimension(operation, axis, first.ndim)
        size = shape[d]
        shape[d] = size * count
    else:
        d = _dimension(operation, axis, first.ndim + 1)
        shape.insert(d, count)
    out = _empty(operation, tuple(shape), first.dtype)
    before = (slice(None),) * d
    places = [slice(i * size, (i + 1) * size) if tiled else i for i in range(count)]
    if out.nbytes < 4096:
        for part, place in zip(parts, places, strict=True):
            out[(*before, place)] = part
    else:
        _core._copy_views([out[(*before, place, ...)] for place in places], list(parts))
    return _sealed(out)


def _dimension(operation: str, axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise AxisError(  # a ValueError and an IndexError: JAX raises now the one, now the other
            f"{operation}: axis {axis} is out of range; expected {-ndim} to {ndim - 1} for {ndim} dimensions; "
            "choose one of them"
        )
    return axis % ndim


def _check_split(operation: str, leaf: NDArray[Any], axis: int, count: int, tiled: bool) -> None:
    d = _dimension(operation, axis, leaf.ndim)
    size = leaf.shape[d]
    if size % count if tiled else size != count:
        wanted = f"a multiple of {count}" if tiled else f"exactly {count}"
        raise ValueError(
            f"{operation}: dimension {d} of a block of shape {leaf.shape} cannot be split over the axis; expected a "
            f"size of {wanted} (the axis size), got {size}; "
            f"{'pad it' if tiled else 'use tiled=True for several a member'}"
        )


def _piece(block: NDArray[Any], axis: int, index: int, count: int, tiled: bool) -> NDArray[Any]:
    d = axis % block.ndim
    size = block.shape[d] // count
    place: Any = slice(index * size, (index + 1) * size) if tiled else index
    piece: NDArray[Any] = block[(*(slice(None),) * d, place)]
    return piece


def scatter(
    operation: str, me: Participant, group: Group, axis_name: Any, leaves: Leaves, axis: int, tiled: bool
) -> Leaves:
    """Sums, and gives each member its piece: a view of the one sum."""
    count = len(group.members)
    for leaf in leaves:
        _check_split(operation, leaf, axis, count, tiled)

    def complete(payloads: list[Leaves]) -> Sequence[Leaves]:
        sums = [_reduced(operation, "sum", parts) for parts in zip(*payloads, strict=True)]
        return [[_piece(total, axis, i, count, tiled) for total in sums] for i in range(count)]

    return meet(operation, me, group, axis_name, (("scatter_dimension", axis), ("tiled", tiled)), leaves, complete)


def all_to_all(
    operation: str,
    me: Participant,
    group: Group,
    axis_name: Any,
    leaves: Leaves,
    split_axis: int,
    concat_axis: int,
    tiled: bool,
) -> Leaves:
    """Member i gets piece i of everybody, in their order."""
    count = len(group.members)
    for leaf in leaves:
        _check_split(operation, leaf, split_axis, count, tiled)
        _dimension(operation, concat_axis, leaf.ndim)

    def complete(payloads: list[Leaves]) -> Sequence[Leaves]:
        results: list[Leaves] = [[] for _ in range(count)]
        for parts in zip(*payloads, strict=True):
            concat = concat_axis % parts[0].ndim
            for i in range(count):
                pieces = [_piece(part, split_axis, i, count, tiled) for part in parts]
                results[i].append(_joined(operation, pieces, concat, tiled))
        return results

    options = (("split_axis", split_axis), ("concat_axis", concat_axis), ("tiled", tiled))
    return meet(operation, me, group, axis_name, options, leaves, complete)


def permute(
    operation: str, me: Participant, group: Group, axis_name: Any, leaves: Leaves, pairs: tuple[tuple[int, int], ...]
) -> Leaves:
    """Member `target` gets the block of member `source`; zeros where nothing arrives."""
    count = len(group.members)
    sources = [source for source, _ in pairs]
    targets = [target for _, target in pairs]
    wrong = [pair for pair in pairs if not all(0 <= i < count for i in pair)]
    if wrong:
        raise IndexError(
            f"{operation}: perm names members that are not there; expected indices of 0 to {count - 1}, got {wrong}; "
            "drop these pairs, or look at the size of the axis"
        )
    if len(set(sources)) != len(sources) or len(set(targets)) != len(targets):
        raise ValueError(
            f"{operation}: perm is no permutation; expected pairs of 0 to {count - 1} with each source and each target "
            f"at most once, got {list(pairs)}; drop the ones that come twice"
        )

    def complete(payloads: list[Leaves]) -> Sequence[Leaves]:
        results = [[_empty(operation, leaf.shape, leaf.dtype) for leaf in leaves] for _ in range(count)]
        arrives = {target: source for source, target in pairs}
        targets: Leaves = []
        origins: Leaves = []
        for i, mine in enumerate(results):
            if i in arrives:
                targets.extend(mine)
                origins.extend(payloads[arrives[i]])
            else:
                for leaf in mine:
                    leaf.fill(0)
        _core._copy_views(targets, origins)
        return [[_sealed(leaf) for leaf in mine] for mine in results]

    return meet(operation, me, group, axis_name, (("perm", pairs),), leaves, complete)
