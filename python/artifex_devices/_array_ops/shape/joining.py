# SPDX-License-Identifier: Apache-2.0
"""Arrays joined and split: each buffer of a result reads only its own boxes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from artifex_devices._array_ops.core.arguments import (
    as_operand,
    deliver,
    host_target,
    on_host,
    one_axis,
    refuse_bool_axis,
)
from artifex_devices._array_ops.core.blocks import Box
from artifex_devices._array_ops.core.fused_small import from_fused, fused_values, is_small
from artifex_devices._array_ops.core.operand_sharding import (
    OperandDevices,
    Spec,
    any_explicit,
    broadcast_specs,
    can_shard,
    common_devices,
    sharding_with,
    spec_of,
)
from artifex_devices._array_ops.core.reading import Source, assemble
from artifex_devices._array_ops.core.registry import implements, implements_each
from artifex_devices._array_ops.index.indexing import get, part_of, rows
from artifex_devices._array_ops.shape.reshaping import expand_dims
from artifex_devices._base.argument_types import Casting, Operand, Out
from artifex_devices._base.checks import failure
from artifex_devices._core import Array, NamedSharding
from artifex_devices.errors import ShardingTypeError


def _operands(operation: str, arrays: Array | Sequence[ArrayLike]) -> list[Operand]:
    return [as_operand(operation, x) for x in (rows(arrays) if isinstance(arrays, Array) else arrays)]


@implements(np.concatenate)
def concatenate(
    arrays: Array | Sequence[ArrayLike],
    /,
    axis: int | None = 0,
    out: Out = None,
    *,
    dtype: DTypeLike | None = None,
    casting: Casting = "same_kind",
) -> Operand:
    """Implements np.concatenate: sharded as the first sharded operand, if that divides the joined dimension."""
    parts = _operands("concatenate", arrays)
    refuse_bool_axis("concatenate", axis)
    if axis is None:
        parts = [np.ravel(x) for x in parts]
        axis = 0
    if any(x.ndim == 0 for x in parts):
        which = [i for i, x in enumerate(parts) if x.ndim == 0]
        raise failure(
            ValueError,
            "concatenate",
            f"operands {which} have no dimension to join",
            expected="1 or more",
            got="shape ()",
            fix="use np.stack",
        )
    axis = one_axis("concatenate", axis, parts[0].ndim)
    first = parts[0].shape
    wrong = [
        f"operand {i}: {x.shape}"
        for i, x in enumerate(parts)
        if x.ndim != len(first) or x.shape[:axis] + x.shape[axis + 1 :] != first[:axis] + first[axis + 1 :]
    ]
    if wrong:
        raise failure(
            ValueError,
            "concatenate",
            f"shapes differ in more than dimension {axis}",
            expected=f"{first} except for that",
            got="; ".join(wrong),
            fix="reshape or pad them",
        )
    return _joined("concatenate", parts, axis, out, dtype, casting)


def _joined(
    operation: str, parts: Sequence[Operand], axis: int, out: Out, dtype: DTypeLike | None, casting: Casting
) -> Operand:
    """Joins the parts along one dimension; their shapes are checked."""
    into = host_target(operation, out)
    target: Any = None if into is None else np.empty(0, into.dtype)  # each operand is cast to its dtype
    kind = np.concatenate([np.ones(1, x.dtype)[:0] for x in parts], out=target, dtype=dtype, casting=casting).dtype
    ends = np.cumsum([x.shape[axis] for x in parts]).tolist()
    first = parts[0].shape
    shape = (*first[:axis], ends[-1], *first[axis + 1 :])
    held = [x for x in parts if isinstance(x, Array)]
    devices = common_devices(operation, held)
    sharding = sharding_with(devices.sharding, _joined_spec(operation, devices, shape, axis, held))
    sources = [Source(operation, x, sharding) for x in parts]
    fused = fused_values(parts) if into is None and is_small(*(x.nbytes for x in parts)) else None
    if fused is not None:
        value = np.concatenate(fused, axis, dtype=kind, casting="unsafe")
        return from_fused(operation, value, kind, sharding, committed=devices.committed)

    def fill(out: NDArray[Any], box: Box, position: int) -> None:
        mine = box[axis]
        for source, end, x in zip(sources, ends, parts, strict=True):
            begin = end - x.shape[axis]
            low, high = max(begin, mine.start), min(end, mine.stop)
            if low < high:
                target = out[(*(slice(None),) * axis, slice(low - mine.start, high - mine.start))]
                wanted = (*box[:axis], slice(low - begin, high - begin, 1), *box[axis + 1 :])
                source.copy_box(target, wanted, position)

    result = assemble(operation, shape, kind, sharding, committed=devices.committed, fill=fill)
    return deliver(operation, result, into)


def _joined_spec(
    operation: str, devices: OperandDevices, shape: tuple[int, ...], axis: int, arrays: Sequence[Array]
) -> Spec:
    """Returns the spec of the operands; the joined dimension is sharded as in the first, if that divides its size."""
    open_shape = (*shape[:axis], -1, *shape[axis + 1 :])  # sizes there do not matter
    spec = list(broadcast_specs(operation, devices, open_shape, arrays))
    used = {name for axes in spec for name in axes}
    requested = [spec_of(x)[axis] for x in arrays if devices.shares_mesh(x)]
    wanted: tuple[Hashable, ...] = next((axes for axes in requested if axes and not used.intersection(axes)), ())
    if isinstance(devices.sharding, NamedSharding) and can_shard(devices.sharding, wanted, shape[axis]):
        spec[axis] = wanted
    for axes in requested:
        if axes and axes != spec[axis] and any_explicit(devices.sharding, axes):
            raise failure(
                ShardingTypeError,
                operation,
                (
                    f"dimension {axis} of the result, of size {shape[axis]}, would be sharded over "
                    f"{spec[axis] or 'no axis'} where an operand is sharded over Explicit axes {axes}"
                ),
                expected="operands that agree and a size that they divide",
                fix="replicate that operand first: ad.reshard(x, ad.NamedSharding(x.sharding.mesh, ad.P()))",
            )
    return tuple(spec)


@implements(np.stack)
def stack(
    arrays: Array | Sequence[ArrayLike],
    axis: int = 0,
    out: Out = None,
    *,
    dtype: DTypeLike | None = None,
    casting: Casting = "same_kind",
) -> Operand:
    """Implements np.stack: the new dimension is not sharded, all other dimensions are sharded as in the operands."""
    parts = _operands("stack", arrays)
    if not parts:
        raise ValueError("stack: the list of arrays is empty; expected 1 array or more, got 0; check the list")
    first = parts[0].shape
    wrong = [f"operand {i}: {x.shape}" for i, x in enumerate(parts) if x.shape != first]
    if wrong:
        raise ValueError(f"stack: shapes differ; expected {first}, got {'; '.join(wrong)}; reshape or pad them")
    axis = one_axis("stack", axis, len(first) + 1)
    return _joined("stack", [expand_dims(x, axis) for x in parts], axis, out, dtype, casting)


@implements(np.column_stack)
def _column_stack(tup: Sequence[ArrayLike]) -> Operand:
    columns = [np.atleast_1d(x) for x in _operands("column_stack", tup)]
    return concatenate([x if x.ndim > 1 else x[:, None] for x in columns], 1)


@implements(np.append)
def _append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Operand:
    return concatenate(_operands("append", (arr, values)), axis)


@implements(np.block)
def _block(arrays: Any) -> Operand:
    depth, rank = _depth_and_rank(arrays)
    rank = max(depth, rank)

    def join(node: Any, depth: int) -> Any:
        if isinstance(node, list):
            return np.concatenate([join(part, depth - 1) for part in node], axis=-depth)
        x = as_operand("block", node)
        return x if x.ndim == rank else x[(*(None,) * (rank - x.ndim), ...)]

    result = join(arrays, depth)
    return result if isinstance(arrays, list) else np.copy(result)


def _depth_and_rank(arrays: Any) -> tuple[int, int]:
    """Returns how deep the lists are nested, and the largest number of dimensions."""
    if not isinstance(arrays, list):
        return 0, as_operand("block", arrays).ndim
    parts = [_depth_and_rank(part) for part in arrays]
    depths = {depth for depth, _ in parts}
    if len(depths) != 1:
        raise failure(
            ValueError,
            "block",
            "lists are nested unevenly or empty",
            expected="one depth everywhere",
            got=sorted(depths),
            fix="put each single array in its own list",
        )
    return 1 + depths.pop(), max(rank for _, rank in parts)


@implements(np.array_split)
def split(ary: Array, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Implements np.array_split: each part keeps its spec, in the split dimension if that divides its size."""
    axis = one_axis("array_split", axis, ary.ndim)
    size = ary.shape[axis]
    if np.ndim(indices_or_sections) == 0:
        count = int(indices_or_sections)
        if count <= 0:
            raise ValueError(f"array_split: sections is {count}; expected 1 or more; give a positive number")
        small, longer = divmod(size, count)
        stops = np.cumsum([small + 1] * longer + [small] * (count - longer)).tolist()
        bounds = list(zip([0, *stops[:-1]], stops, strict=True))
    else:
        places = [int(i) for i in on_host("split", indices_or_sections, "indices")]
        bounds = [
            slice(start, stop).indices(size)[:2] for start, stop in zip([0, *places], [*places, size], strict=True)
        ]
    return [part_of("split", ary, axis, slice(start, stop)) for start, stop in bounds]


@implements(np.split)
def _split(ary: Array, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    axis = one_axis("split", axis, ary.ndim)
    if np.ndim(indices_or_sections) == 0 and ary.shape[axis] % int(indices_or_sections):
        raise failure(
            ValueError,
            "split",
            f"{indices_or_sections} sections do not divide dimension {axis} of shape {ary.shape}",
            expected=f"a divisor of {ary.shape[axis]}",
            got=indices_or_sections,
            fix="np.array_split makes uneven parts",
        )
    return split(ary, indices_or_sections, axis)


@implements_each(np.hsplit, np.vsplit, np.dsplit)
def _split_along(function: Callable[..., Any], ary: Array, indices_or_sections: Any) -> list[Array]:
    name = function.__name__
    axis, least = {"hsplit": (1, 1), "vsplit": (0, 1), "dsplit": (2, 3)}[name]
    if ary.ndim < least:
        raise failure(
            ValueError,
            name,
            "an array with too few dimensions",
            expected=f"{least} or more",
            got=f"shape {ary.shape}",
            fix="reshape it",
        )
    return _split(ary, indices_or_sections, axis if ary.ndim > axis else 0)


@implements(np.unstack)
def _unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    if not x.ndim:
        raise ValueError("unstack: an Array without dimensions cannot be unstacked; expected 1 or more, got shape ()")
    axis = one_axis("unstack", axis, x.ndim)
    return tuple(get(x, (*(slice(None),) * axis, i)) for i in range(x.shape[axis]))
