# SPDX-License-Identifier: Apache-2.0
"""The computations of collectives: the last member to arrive does them for all.

Results never share memory that a member can write. Members with equal results share one read-only array.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.exceptions import AxisError
from numpy.typing import NDArray

from artifex_devices import tree_util
from artifex_devices._array_ops.core.arguments import check_unmasked
from artifex_devices._base.checks import failure
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import internal
from artifex_devices._runtime.cupy_arrays import is_on_gpu
from artifex_devices._runtime.gpu_block import GpuBlock, array_beside, gpu_blocks, host_copy, is_gpu_block
from artifex_devices._spmd.arguments import as_ndarray, empty
from artifex_devices._spmd.axis_groups import Membership
from artifex_devices._spmd.cross_process_op import CrossProcessOp
from artifex_devices._spmd.exact_total import exact_total
from artifex_devices._spmd.session import Participant

Leaves = list[Any]  # ndarrays or GpuBlocks
_EXACT = (("reproducible", True),)  # the option of exact sums


class Call(NamedTuple):
    """A call of a collective by one participant.

    Attributes:
        argument: The indices among its arguments, as the session has prepared them: a Permutation, the AxisGroups of
            axis_index_groups, or None.
    """

    operation: str
    me: Participant
    group: Membership
    axis_name: Any
    argument: Any


def leaves_of(operation: str, x: object) -> tuple[Leaves, Any]:
    """Returns the leaves of a tree as ndarrays or blocks of GPUs, and the structure for `rebuild`.

    TypeError where a leaf is not numeric.
    """
    if type(x) is np.ndarray:
        return [x], None
    if is_on_gpu(x):
        return gpu_blocks([x]), None
    if isinstance(x, (np.generic, bool, int, float, complex)):
        return [as_ndarray(operation, x)], None
    leaves, treedef = tree_util.tree_flatten(x)
    arrays = [gpu_blocks([leaf])[0] if is_on_gpu(leaf) else as_ndarray(operation, leaf) for leaf in leaves]
    for leaf, array in zip(leaves, arrays, strict=True):
        check_unmasked(operation, leaf, "a leaf")
        if array.dtype.kind in "OSUMm":
            raise failure(
                TypeError,
                operation,
                f"a leaf of type {type(leaf).__name__} is not an array of numbers",
                expected="an ndarray or a number",
                got=safe_repr(leaf),
                fix="convert it first",
            )
    return arrays, treedef


def rebuild(treedef: Any, leaves: Sequence[Any]) -> Any:
    """Builds the tree with other leaves."""
    if treedef is None:
        return leaves[0]
    return tree_util.tree_unflatten(treedef, list(leaves))


def meet(
    call: Call,
    options: tuple[tuple[str, Any], ...],
    leaves: Leaves,
    complete: Callable[[list[Leaves]], Sequence[Leaves]],
    op: CrossProcessOp | None = None,
) -> Leaves:
    """Meets the group with these leaves; `op` as in Collective."""
    operation, me, group, axis_name, argument = call
    axes = tuple(axis_name) if type(axis_name) is list else axis_name
    on_gpu = [number for number, leaf in enumerate(leaves) if is_gpu_block(leaf)]
    kinds = [(f"gpu {leaf.dtype}" if is_gpu_block(leaf) else leaf.dtype, leaf.shape) for leaf in leaves]
    signature = (operation, axes, options, *[detail for kind in kinds for detail in kind])
    session = me.session
    collective = session.collectives.get(signature, group.groups)
    if collective is None:
        collective = session.collectives.add(signature, group.groups, complete, op)
        if len(leaves) == 1 and not on_gpu:
            values = tuple(value for _, value in options if value is not argument)
            session.know(operation, axes, leaves[0], argument, values, collective)
    if not on_gpu:
        result: Leaves = me.join(collective, leaves)
        return result
    across = group.groups.across is not None  # blocks pass between processes in the memory of the host
    result = me.join(collective, [host_copy(leaf) for leaf in leaves] if across else leaves)
    return [array_beside(made, leaves[i]) if i in on_gpu else made for i, made in enumerate(result)]


def _sealed(array: Any) -> Any:
    if type(array) is GpuBlock:  # each member gets a copy
        return array
    array.setflags(write=False)  # in a fifth of the time of array.flags.writeable = False
    return array


def _columns(payloads: Sequence[Any]) -> list[Leaves]:
    """Returns the blocks of all members, leaf by leaf; a payload is a list of leaves, or the only leaf."""
    first = payloads[0]
    if type(first) is list and len(first) != 1:
        return [list(parts) for parts in zip(*payloads, strict=True)]
    return [[leaves[0] if type(leaves) is list else leaves for leaves in payloads]]


def _reduced(operation: str, kind: str, parts: Leaves) -> Any:
    first = parts[0]
    if type(parts[0]) is GpuBlock:
        return _reduced_on_gpu(kind, parts)
    out = empty(operation, first.shape, first.dtype)
    try:
        internal.all_reduce(kind, parts, out)
    except TypeError as error:
        raise TypeError(f"{operation}: {str(error).removeprefix('all_reduce: ')}") from None
    return out


def _reduced_on_gpu(kind: str, parts: Leaves) -> Any:
    """Combines the parts in their order, on the GPU of the first; 16-bit floats are added in float32."""
    dtype = parts[0].dtype
    wide = np.float32 if dtype.name in ("float16", "bfloat16") and kind == "sum" else dtype
    combine = {"sum": np.add, "max": np.maximum, "min": np.minimum}[kind]
    total = functools.reduce(combine, [part.astype(wide) for part in parts])
    return total.astype(dtype, copy=False)


def _divide(total: NDArray[Any], size: int) -> None:
    """Divides `total` in place by the size as a number of its dtype, as JAX does."""
    divisor = total.dtype.type(size)
    if total.dtype.name in ("float16", "bfloat16") and not is_gpu_block(total):
        internal.divide(total, float(divisor))
    else:
        np.divide(total, divisor, out=total)


def _combine(call: Call, options: tuple[tuple[str, Any], ...], leaves: Leaves, op: CrossProcessOp) -> Leaves:
    """Combines the blocks leaf by leaf, by `op.reduction` and `op.share`."""

    def complete(payloads: list[Leaves]) -> Sequence[Leaves]:
        totals = [_reduced(call.operation, op.reduction, parts) for parts in _columns(payloads)]
        return op.share(totals, len(payloads))

    return meet(call, options, leaves, complete, op)


def reduce(
    call: Call, leaves: Leaves, kind: str, mean: bool = False, options: tuple[tuple[str, Any], ...] = ()
) -> Leaves:
    """Combines the blocks leaf by leaf, for a mean divided by their number; all members get the same arrays.

    `options` are compared between the members.
    """

    def share(totals: Leaves, size: int) -> Sequence[Leaves]:
        for total in totals:
            if mean:
                _divide(total, size)
            _sealed(total)
        return [totals] * size

    op = CrossProcessOp(reduction=kind, share=share, is_shared=True, is_total=not mean)
    return _combine(call, options, leaves, op)


def gather(call: Call, leaves: Leaves, axis: int, tiled: bool) -> Leaves:
    """Stacks the members' blocks along a new dimension, or joins them along an existing one."""

    def complete(payloads: list[Leaves]) -> Sequence[Leaves]:
        result = [_joined(call.operation, parts, axis, tiled) for parts in _columns(payloads)]
        return [result] * len(payloads)

    options = (("axis", axis), ("tiled", tiled))
    return meet(call, options, leaves, complete, CrossProcessOp(is_shared=True))


def _joined(operation: str, parts: Sequence[Any], axis: int, tiled: bool) -> Any:
    """Stacks the parts along a new dimension, or joins them along an existing one."""
    shape = parts[0].shape
    d = _dimension(operation, axis, len(shape) + (not tiled))
    if type(parts[0]) is GpuBlock:
        return np.concatenate(parts, d) if tiled else np.stack(parts, d)
    stacked = (*shape[:d], len(parts), *shape[d:])
    joined = (*shape[:d], len(parts) * shape[d], *shape[d + 1 :]) if tiled else stacked
    out = empty(operation, joined, parts[0].dtype)
    rows = np.moveaxis(out.reshape(stacked), d, 0)
    if out.nbytes < 4096:
        for i, part in enumerate(parts):
            rows[i] = part
    else:  # in parallel where that is worth it
        internal.copy_views([rows[i, ...] for i in range(len(parts))], list(parts))
    return _sealed(out)


def _dimension(operation: str, axis: int, ndim: int) -> int:
    if not ndim:
        raise failure(
            AxisError,
            operation,
            "the block has no dimensions",
            expected="1 or more",
            got="shape ()",
            fix="add one by x[None], or leave tiled out",
        )
    if not -ndim <= axis < ndim:
        raise failure(
            AxisError,
            operation,
            f"axis {axis} is out of range",
            expected=f"{-ndim} to {ndim - 1} for {ndim} dimensions",
            fix="choose one of them",
        )
    return axis % ndim


def _check_split(call: Call, leaf: NDArray[Any], axis: int, tiled: bool) -> None:
    operation, count = call.operation, call.group.size
    d = _dimension(operation, axis, leaf.ndim)
    size = leaf.shape[d]
    if size % count if tiled else size != count:
        expected = f"a multiple of {count}" if tiled else f"exactly {count}"
        widths = [(0, -size % count if each == d else 0) for each in range(leaf.ndim)]
        fix = f"pad it: np.pad(x, {widths})" + ("" if tiled else " and use tiled=True")
        raise failure(
            ValueError,
            operation,
            f"dimension {d} of a block of shape {leaf.shape} cannot be split over the axis",
            expected=f"a size of {expected} (the axis size)",
            got=size,
            fix=fix if size % count or not size else "use tiled=True for several rows per member",
        )


def _piece(block: NDArray[Any], axis: int, index: int, count: int, tiled: bool) -> NDArray[Any]:
    d = axis % block.ndim
    size = block.shape[d] // count
    place: Any = slice(index * size, (index + 1) * size) if tiled else index
    piece: NDArray[Any] = block[(*(slice(None),) * d, place)]
    return piece


def reduce_exactly(call: Call, leaves: Leaves, mean: bool = False) -> Leaves:
    """Sums the blocks exactly, leaf by leaf, and rounds once; all members get the same arrays."""

    def complete(payloads: list[Leaves]) -> Sequence[Leaves]:
        size = len(payloads)
        totals = [_sealed(exact_total(call.operation, parts, size if mean else 1)) for parts in _columns(payloads)]
        return [totals] * size

    return meet(call, _EXACT, leaves, complete, CrossProcessOp(is_shared=True))


def scatter(call: Call, leaves: Leaves, axis: int, tiled: bool, exact: bool = False) -> Leaves:
    """Sums the blocks, if `exact` rounding once, and gives each member its piece as a view of the sum."""
    if any(leaf.dtype.char == "?" for leaf in leaves):
        raise TypeError("psum_scatter: bools have no sum; expected numbers, got bool; convert it: x.astype(np.int32)")
    for leaf in leaves:
        _check_split(call, leaf, axis, tiled)

    def share(totals: Leaves, size: int) -> Sequence[Leaves]:
        sums = [_sealed(total) for total in totals]
        return [[_piece(total, axis, i, size, tiled) for total in sums] for i in range(size)]

    options = (("scatter_dimension", axis), ("tiled", tiled))
    if exact:

        def complete(payloads: list[Leaves]) -> Sequence[Leaves]:
            return share([exact_total(call.operation, parts) for parts in _columns(payloads)], len(payloads))

        return meet(call, (*options, *_EXACT), leaves, complete, CrossProcessOp())
    by_rows = all(axis % leaf.ndim == 0 for leaf in leaves)
    return _combine(call, options, leaves, CrossProcessOp(reduction="sum", share=share, by_rows=by_rows))


def all_to_all(call: Call, leaves: Leaves, split_axis: int, concat_axis: int, tiled: bool) -> Leaves:
    """Gives member i piece i of each member, in their order."""
    operation, count = call.operation, call.group.size
    for leaf in leaves:
        _check_split(call, leaf, split_axis, tiled)
        _dimension(operation, concat_axis, leaf.ndim)

    def pick(block: NDArray[Any], index: int, size: int) -> NDArray[Any]:
        return _piece(block, split_axis, index, size, tiled)

    axes = [concat_axis % leaf.ndim for leaf in leaves]  # not the leaves, as sessions cache this function

    def finish(index: int, pieces: list[Leaves]) -> Leaves:
        return [_joined(operation, parts, axis, tiled) for axis, parts in zip(axes, _columns(pieces), strict=True)]

    def complete(payloads: list[Leaves]) -> Sequence[Leaves]:
        exchanged = [_exchanged(operation, parts, split_axis, concat_axis, tiled) for parts in _columns(payloads)]
        return [[each[i] for each in exchanged] for i in range(count)]

    options = (("split_axis", split_axis), ("concat_axis", concat_axis), ("tiled", tiled))
    op = CrossProcessOp(pick=pick, finish=finish)
    return meet(call, options, leaves, complete, op)


def _exchanged(operation: str, parts: Sequence[Any], split_axis: int, concat_axis: int, tiled: bool) -> Any:
    """Stacks the results: that of member i is piece i of each part, joined in their order."""
    count = len(parts)
    shape = parts[0].shape
    split, concat = split_axis % len(shape), concat_axis % len(shape)
    piece_shape = (*shape[:split], count, shape[split] // count, *shape[split + 1 :]) if tiled else shape
    sources = [np.moveaxis(part.reshape(piece_shape), split, 0) for part in parts]  # views: by member, then its piece
    return _joined(operation, sources, concat + 1, tiled)


class Permutation:
    """Pairs (source, target) of members, each at most once as source and as target; other members get no block."""

    __slots__ = ("_hash", "_pairs", "source_of")

    def __init__(self, operation: str, pairs: Sequence[tuple[int, int]], count: int) -> None:
        """Raises IndexError for members that do not exist, ValueError for repeated ones."""
        self._pairs = tuple(pairs)
        self._hash = hash(self._pairs)
        self.source_of = {target: source for source, target in pairs}
        wrong = [pair for pair in pairs if not all(0 <= i < count for i in pair)]
        if wrong:
            raise failure(
                IndexError,
                operation,
                "perm names members that do not exist",
                expected=f"indices of 0 to {count - 1}",
                got=wrong,
                fix="drop these pairs, or check the size of the axis",
            )
        if not len({source for source, _ in pairs}) == len(self.source_of) == len(pairs):
            raise failure(
                ValueError,
                operation,
                "perm is not a permutation",
                expected=f"pairs of 0 to {count - 1} with each source and each target at most once",
                got=list(pairs),
                fix="drop the repeated ones",
            )

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Permutation) and self._pairs == other._pairs)

    def __repr__(self) -> str:
        return repr(self._pairs)


def permute(call: Call, leaves: Leaves) -> Leaves:
    """Gives each member the block of its source in the permutation `call.argument`, or zeros."""
    operation, count = call.operation, call.group.size
    source_of = call.argument.source_of
    kinds = [(leaf.shape, leaf.dtype) for leaf in leaves]  # not the leaves, as sessions cache this function

    def fill(blocks: Sequence[Leaves | None]) -> list[Leaves]:
        """Copies of the blocks, or zeros for None. A block is a list of leaves, or the only leaf."""
        results: list[Leaves] = [[] for _ in blocks]
        copies: Leaves = []
        origins: Leaves = []
        for mine, block in zip(results, blocks, strict=True):
            for number, (shape, dtype) in enumerate(kinds):
                part: Any = block[number] if type(block) is list else block
                if is_gpu_block(part):
                    mine.append(part)  # each member gets a copy
                    continue
                if part is not None and internal.is_constant(part):
                    mine.append(part.view())  # of an argument or a result, which is read-only
                    continue
                made = empty(operation, shape, dtype)
                mine.append(made)
                if part is None:
                    made.fill(0)
                else:
                    copies.append(made)
                    origins.append(part)
        internal.copy_views(copies, origins)
        return [[_sealed(leaf) for leaf in mine] for mine in results]

    def complete(payloads: list[Leaves]) -> Sequence[Leaves]:
        return fill([payloads[source_of[i]] if i in source_of else None for i in range(count)])

    op = CrossProcessOp(
        sources=lambda index, size: (source_of[index],) if index in source_of else (),
        finish=lambda index, blocks: fill([blocks[0] if blocks else None])[0],
    )
    return meet(call, (("perm", call.argument),), leaves, complete, op)


def broadcast(call: Call, leaves: Leaves, source: int) -> Leaves:
    """Gives all members copies of the block of one, in the same arrays."""

    def copied(block: Any) -> Leaves:
        return [_sealed(leaf.copy()) for leaf in (block if type(block) is list else [block])]

    def complete(payloads: list[Leaves]) -> Sequence[Leaves]:
        return [copied(payloads[source])] * len(payloads)

    op = CrossProcessOp(sources=lambda index, size: (source,), finish=lambda index, blocks: copied(blocks[0]))
    return meet(call, (("source", source),), leaves, complete, op)
