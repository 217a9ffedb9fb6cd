# SPDX-License-Identifier: Apache-2.0
"""Functions along whole dimensions: each device computes its own blocks."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from artifex_devices._array_ops.core.auto_axes import whole_along, whole_operands
from artifex_devices._array_ops.core.blocks import (
    PARALLEL_BYTES,
    allocate,
    local_arrays,
    outputs_of,
    piece_count,
    run_all,
)
from artifex_devices._array_ops.core.fused_small import from_fused, fused_value, is_small, small_value
from artifex_devices._array_ops.core.operand_sharding import sharding_with, spec_of
from artifex_devices._base.argument_types import Operand
from artifex_devices._base.blas_threads import shared_cores
from artifex_devices._core import Array


@overload
def apply_along(
    operation: str,
    x: Array,
    sizes: Mapping[int, int | None],
    compute: Callable[[NDArray[Any]], Any],
    dtype: DTypeLike,
    *,
    leading: tuple[int, ...] = ...,
    into: None = ...,
) -> Array: ...
@overload
def apply_along(
    operation: str,
    x: Array,
    sizes: Mapping[int, int | None],
    compute: Callable[[NDArray[Any]], Any],
    dtype: DTypeLike,
    *,
    leading: tuple[int, ...] = ...,
    into: NDArray[Any] | None,
) -> Operand: ...
def apply_along(
    operation: str,
    x: Array,
    sizes: Mapping[int, int | None],
    compute: Callable[[NDArray[Any]], Any],
    dtype: DTypeLike,
    *,
    leading: tuple[int, ...] = (),
    into: NDArray[Any] | None = None,
) -> Any:
    """Computes a function along whole dimensions; the result is sharded as x in its other dimensions.

    `sizes` maps the dimensions that must be whole to their sizes in the result, or to None for removed
    dimensions. `compute` takes a block with all elements along them. `leading` are the sizes of new dimensions in
    front. `into` is None, or an ndarray of the result's shape to write and return.
    """
    x = whole_along(operation, x, sorted(sizes))
    spec = spec_of(x)
    kept = [(d, sizes.get(d, size)) for d, size in enumerate(x.shape)]
    shape = leading + tuple(size for _, size in kept if size is not None)
    sharding = sharding_with(x.sharding, ((),) * len(leading) + tuple(spec[d] for d, size in kept if size is not None))
    whole = small_value(x) if into is None else None
    if whole is not None:
        value = np.asarray(compute(whole))
        return from_fused(operation, value.reshape(shape), dtype, sharding, committed=x.committed)
    blocks = local_arrays(operation, x, False, into is None)
    (result,), (outputs,) = outputs_of(operation, shape, [dtype], sharding, committed=x.committed, into=into)
    # The dimensions of x along which a large block can be split, with their numbers in the result.
    places = {d: len(leading) + i for i, d in enumerate(d for d, size in kept if size is not None) if d not in sizes}
    tasks = [
        functools.partial(_write, compute, block[piece], [output[_in_result(piece, places)]])
        for block, output in zip(blocks, outputs, strict=True)
        if output.size
        for piece in pieces_along(block, places)
    ]
    run_all(tasks, x.nbytes)
    return result


def pieces_along(block: NDArray[Any], dims: Iterable[int]) -> list[tuple[Any, ...]]:
    """Returns indices that split a block along one of the dimensions `dims`; `(...,)` for a small block.

    The slice before the Ellipsis of the other indices, `(:, ..., start:stop, ...)`, is in the dimension that is split.
    """
    count = piece_count(block)
    long = [d for d in dims if block.shape[d] > 1]
    if count < 2 or not long:
        return [(...,)]
    axis = next((d for d in long if block.shape[d] >= count), max(long, key=lambda d: block.shape[d]))
    step = -(-block.shape[axis] // count)
    before = (slice(None),) * axis
    return [(*before, slice(start, start + step), ...) for start in range(0, block.shape[axis], step)]


def _in_result(piece: tuple[Any, ...], places: Mapping[int, int]) -> tuple[Any, ...]:
    """Returns the index of the result for a piece of the operand."""
    return piece if len(piece) == 1 else (*(slice(None),) * places[len(piece) - 2], *piece[-2:])


def matrices(operation: str, *operands: Any) -> list[Any]:
    """Returns operands that are stacks of matrices, with their last two dimensions whole."""
    for x in operands:
        if x.ndim < 2:
            raise np.linalg.LinAlgError(
                f"{operation}: {x.ndim}-dimensional array given; expected matrices, at least two dimensions, got shape "
                f"{tuple(x.shape)}; reshape it first"
            )
    return whole_operands(operation, *((x, (x.ndim - 2, x.ndim - 1), "x") for x in operands))


def over_matrices(operation: str, x: Array, compute: Callable[[NDArray[Any]], Any]) -> Any:
    """Computes a function of each matrix of a stack of shape (..., M, N), whose last two dimensions must be whole.

    `compute` returns one or more ndarrays (a tuple), which have the leading dimensions of its argument. The result is
    an Array, or a tuple of Arrays of the class that `compute` returns, sharded as x in the leading dimensions.
    """
    (x,) = matrices(operation, x)
    samples = compute(np.empty((0, *x.shape[-2:]), x.dtype))
    wanted = _tuple_of(samples)
    stack, spec = x.shape[:-2], spec_of(x)[:-2]
    shardings = [sharding_with(x.sharding, (*spec, *((),) * (sample.ndim - 1))) for sample in wanted]
    work = x.nbytes * min(x.shape[-2:])  # a factorization reads each byte about this many times
    whole = fused_value(x) if is_small(work) else None
    if whole is not None:
        results = [
            from_fused(operation, np.asarray(value), sample.dtype, sharding, committed=x.committed)
            for value, sample, sharding in zip(_tuple_of(compute(whole)), wanted, shardings, strict=True)
        ]
        return _as(samples, results)
    allocated = [
        allocate(operation, (*stack, *sample.shape[1:]), sample.dtype, sharding, committed=x.committed)
        for sample, sharding in zip(wanted, shardings, strict=True)
    ]
    tasks: list[Callable[[], Any]] = []
    for number, block in enumerate(local_arrays(operation, x, False, True)):
        outputs = [buffers[number] for _, buffers in allocated]
        if any(output.size for output in outputs):
            tasks.extend(
                functools.partial(_write, compute, block[piece], [output[piece] for output in outputs])
                for piece in pieces_along(block, range(len(stack)))
            )
    is_parallel = len(tasks) > 1 and work >= PARALLEL_BYTES
    with shared_cores(len(tasks)) if is_parallel else contextlib.nullcontext():  # LAPACK has its own threads
        run_all(tasks, work)
    return _as(samples, [array for array, _ in allocated])


def _tuple_of(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _as(samples: Any, results: Sequence[Array]) -> Any:
    """Converts the results to the type that `compute` returns: one, a named tuple or a tuple."""
    if not isinstance(samples, tuple):
        return results[0]
    return type(samples)(*results) if hasattr(samples, "_fields") else tuple(results)


def _write(compute: Callable[[NDArray[Any]], Any], block: NDArray[Any], outputs: Sequence[NDArray[Any]]) -> None:
    for output, value in zip(outputs, _tuple_of(compute(block)), strict=True):
        np.copyto(output, value, casting="unsafe")  # as NumPy with out=
