# SPDX-License-Identifier: Apache-2.0
"""Element-wise functions: each device computes its own elements of the result."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from artifex_devices._array_ops.core.arguments import check_target, check_ufunc_out, where_mask
from artifex_devices._array_ops.core.blocks import check_host_operand, moved_to, outputs_of, run_all, tiling
from artifex_devices._array_ops.core.fused_small import from_fused, fused_values, is_small
from artifex_devices._array_ops.core.operand_sharding import (
    OperandDevices,
    broadcast_specs,
    common_devices,
    is_split,
    sharding_with,
    spec_in,
    spec_of,
)
from artifex_devices._array_ops.core.reading import SCALARS, Compute, operand_parts, operand_spec, pieces_of
from artifex_devices._array_ops.core.ufunc_loops import SPREAD_BYTES, Loop, loop_of, spread_from, write
from artifex_devices._base.argument_types import Operand
from artifex_devices._base.checks import failure
from artifex_devices._base.clearable_cache import clearable
from artifex_devices._core import Array, Sharding, internal


def elementwise(ufunc: np.ufunc, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Calls a ufunc without core dimensions, out= and where=; each result is sharded as the operands."""
    kinds = tuple(type(x) if type(x) in SCALARS else x.dtype for x in inputs)
    loop = loop_of(ufunc, kinds, tuple(sorted(options.items())) if options else ())
    if ufunc.nout == 1:
        quick = _compute_on_slabs(loop, ufunc, inputs, kinds, options)
        if quick is not None:
            return quick
    compute = functools.partial(write, loop, ufunc, options)
    results = map_elements(
        ufunc.__name__,
        compute,
        inputs,
        loop.dtypes,
        spread_from=spread_from(ufunc, kinds),
    )
    return results[0] if ufunc.nout == 1 else results


def elementwise_into(ufunc: np.ufunc, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Calls a ufunc with out= (ndarrays to write the result to) or where=.

    Without out, elements for which the mask is False are 0; NumPy does not initialize them.
    """
    options = dict(options)
    targets: tuple[Any, ...] | None = options.pop("out", None)
    mask = options.pop("where", True)
    if targets is not None and not all(isinstance(target, np.ndarray) for target in targets):
        details = ", ".join(type(target).__name__ for target in targets)
        raise TypeError(
            f"{ufunc.__name__}: out is not an ndarray; Arrays are immutable: expected {ufunc.nout} ndarrays to write "
            f"the result to, got {details}; leave out away and use the result"
        )
    kinds = tuple(type(x) if type(x) in SCALARS else x.dtype for x in inputs)
    given = tuple(sorted(options.items()))
    loop = loop_of(ufunc, kinds, given)
    if targets is not None:
        for target in targets:
            check_target(ufunc.__name__, target)
        check_ufunc_out(ufunc, kinds, tuple(target.dtype for target in targets), given)
    operands = list(inputs) if mask is True else [*inputs, where_mask(ufunc.__name__, mask)]

    def compute(outputs: Sequence[NDArray[Any]], parts: Sequence[Any]) -> None:
        if mask is True:
            write(loop, ufunc, options, outputs, parts)
            return
        if targets is None:
            for output in outputs:
                output[...] = 0
        write(loop, ufunc, {**options, "where": parts[-1]}, outputs, parts[:-1])

    results = map_elements(
        ufunc.__name__, compute, operands, loop.dtypes, into=targets, spread_from=spread_from(ufunc, kinds)
    )
    return results[0] if ufunc.nout == 1 else results


def _compute_on_slabs(
    loop: Loop, ufunc: np.ufunc, inputs: Sequence[Any], kinds: tuple[Any, ...], options: dict[str, Any]
) -> Array | None:
    """Calls NumPy once for all shards, if operands are small and sharded alike, replicated, or numbers."""
    leader: Any = None
    dtypes, writes_strided = loop
    for x in inputs:
        if type(x) is Array and x is not leader and (leader is None or (x.ndim, x.size) > (leader.ndim, leader.size)):
            leader = x
    touched_bytes = leader.nbytes * (1 + len(inputs))
    if not touched_bytes:  # NumPy refuses numbers that the dtype cannot hold also for empty arrays
        ufunc(*(x if type(x) in SCALARS else np.ones(1, x.dtype)[:0] for x in inputs), **options)
    if touched_bytes >= SPREAD_BYTES and touched_bytes >= spread_from(ufunc, kinds):
        return None
    sharding = leader.sharding
    shape = leader.shape
    committed = leader.committed
    parts: list[Any] = []
    for x in inputs:
        if type(x) in SCALARS:
            parts.append(x)
            continue
        if type(x) is not Array:
            return None
        alike = (x.sharding is sharding or x.sharding == sharding) and x.shape == shape
        if not alike and not _fits_every_shard(x, leader):
            return None
        slab = internal.slab_array(x)
        if slab is None:
            return None
        if not alike:
            slab = slab.reshape((1,) * (1 + len(shape) - x.ndim) + x.shape)
        parts.append(slab)
        committed = committed or x.committed
    out = internal.empty(shape, dtypes[0], sharding, committed, ufunc.__name__)
    slab = internal.slab_array(out, True)
    if slab is None:
        return None
    if writes_strided:
        ufunc(*parts, out=slab, **options)
    else:
        slab[...] = ufunc(*parts, **options)
    return out


def _fits_every_shard(x: Array, leader: Array) -> bool:
    """Returns whether x is replicated on the devices of `leader`, and broadcasts to each shard of it."""
    if not (x.is_fully_replicated and leader.committed and x.sharding._same_devices(leader.sharding)):
        return False
    spec, own = spec_of(leader), spec_of(x)
    offset = leader.ndim - x.ndim
    for d, size in enumerate(x.shape):
        axes = spec[offset + d]
        if size != leader.shape[offset + d]:
            if size != 1:
                return False
        elif is_split(leader.sharding, axes) or own[d] not in ((), axes):
            return False
    return True


_ResultPlacement = tuple[tuple[int, ...], OperandDevices, Sharding]
_result_placements: dict[Any, _ResultPlacement] = clearable({})  # by all that _result_placement depends on


def _result_placement(operation: str, inputs: Sequence[Any]) -> _ResultPlacement:
    """Returns the cached shape, devices and sharding of the result for these operands."""
    key = tuple(
        (x.sharding, x.shape, x.committed) if type(x) is Array else None if type(x) in SCALARS else x.shape
        for x in inputs
    )
    cached = _result_placements.get(key)
    if cached is None:
        arrays = [x for x in inputs if isinstance(x, Array)]
        shape = _common_shape(operation, inputs)
        devices = common_devices(operation, arrays)
        sharding = arrays[0].sharding
        if not all(x.shape == shape and (x.sharding is sharding or x.sharding == sharding) for x in arrays):
            sharding = sharding_with(devices.sharding, broadcast_specs(operation, devices, shape, arrays))
            # An operand's own spelling of the same spec is kept, P('a', None) or P('a'), as _compute_on_slabs does.
            spec = spec_in(sharding, len(shape))
            alike = (x for x in arrays if x.shape == shape and devices.shares_mesh(x) and spec_of(x) == spec)
            sharding = next((x.sharding for x in alike), sharding)
        cached = shape, devices, sharding
        if len(_result_placements) >= 4096:
            _result_placements.clear()
        _result_placements[key] = cached
    return cached


@overload
def map_elements(
    operation: str,
    compute: Compute,
    inputs: Sequence[Any],
    dtypes: Sequence[Any],
    *,
    into: None = ...,
    spread_from: int = ...,
) -> Sequence[Array]: ...
@overload
def map_elements(
    operation: str,
    compute: Compute,
    inputs: Sequence[Any],
    dtypes: Sequence[Any],
    *,
    into: Sequence[NDArray[Any]],
    spread_from: int = ...,
) -> Sequence[Operand]: ...
def map_elements(
    operation: str,
    compute: Compute,
    inputs: Sequence[Any],
    dtypes: Sequence[Any],
    *,
    into: Sequence[NDArray[Any]] | None = None,
    spread_from: int = SPREAD_BYTES,
) -> Sequence[Operand]:
    """Calls `compute` for each part of the results, on its device. The inputs broadcast to its outputs.

    At least one input is an Array; other inputs may be Arrays, ndarrays and numbers. Returns one Array of the common
    shape for each dtype, or the ndarrays `into` of this shape, which it has written.
    """
    shape, devices, sharding = _result_placement(operation, inputs)
    inputs = [
        moved_to(operation, x, devices, sharding_with(sharding, operand_spec(x.shape, shape, sharding)))
        if isinstance(x, Array) and x.sharding is not sharding and not x.sharding._same_devices(sharding)
        else x
        for x in inputs
    ]
    if into is None:
        quick = _compute_fused(operation, compute, inputs, dtypes, shape, devices, sharding)
        if quick is not None:
            return quick
    places = tiling(sharding, shape, operation)
    operands = [operand_parts(operation, x, devices, shape, sharding, places.positions, places.boxes) for x in inputs]
    if into is not None and not sharding.is_fully_addressable:
        raise failure(
            RuntimeError,
            operation,
            "out is host memory, and parts of the operands are in other processes",
            expected="operands that are fully addressable",
            fix="leave out away, or gather them by multihost_utils.process_allgather",
        )
    results, targets = outputs_of(operation, shape, dtypes, sharding, committed=devices.committed, into=into)
    tasks = []
    for number in range(len(places.boxes)) if into is None else places.first.values():
        outputs = [buffers[number] for buffers in targets]
        if outputs[0].size:
            parts = [operand[number] if type(operand) is list else operand for operand in operands]
            tasks.extend(pieces_of(compute, outputs, parts))
    run_all(tasks, sum(x.nbytes for x in (*results, *inputs) if type(x) not in SCALARS), spread_from)
    return tuple(results)


def _compute_fused(
    operation: str,
    compute: Compute,
    inputs: Sequence[Any],
    dtypes: Sequence[Any],
    shape: tuple[int, ...],
    devices: OperandDevices,
    sharding: Sharding,
) -> tuple[Array, ...] | None:
    """Calls NumPy once for all shards, if operands and results are small and on the same devices."""
    nbytes = math.prod(shape) * sum(dtype.itemsize for dtype in dtypes)
    if not is_small(nbytes, *(x.nbytes for x in inputs if type(x) not in SCALARS)):
        return None
    parts = fused_values(inputs)
    if parts is None:
        return None
    for x in inputs:
        if type(x) not in SCALARS and not isinstance(x, Array):
            target = sharding if x.shape == shape else sharding_with(sharding, operand_spec(x.shape, shape, sharding))
            check_host_operand(operation, x, target)
    values = [np.empty(shape, dtype) for dtype in dtypes]
    compute(values, parts)
    return tuple(from_fused(operation, value, value.dtype, sharding, committed=devices.committed) for value in values)


def _common_shape(operation: str, inputs: Sequence[Any]) -> tuple[int, ...]:
    shapes = [() if type(x) in SCALARS else x.shape for x in inputs]
    first = next(shape for shape in shapes if shape or len(shapes) == 1) if any(shapes) else ()
    if all(shape in (first, ()) for shape in shapes):
        return first
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        details = " and ".join(map(str, shapes))
        raise failure(
            ValueError,
            operation,
            "the operands' shapes do not broadcast",
            expected="equal sizes or 1 in each dimension from the last one on",
            got=details,
            fix="reshape one of them",
        ) from None
