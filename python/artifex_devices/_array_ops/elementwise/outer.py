# SPDX-License-Identifier: Apache-2.0
"""ufunc.outer: each element of one operand with each element of the other; the result is sharded as both are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices._array_ops.core.blocks import Box, allocate, check_host_operand, run_all, tiling, views_at
from artifex_devices._array_ops.core.dispatch import implements_method
from artifex_devices._array_ops.core.layout import (
    Placement,
    Spec,
    any_explicit,
    common_placement,
    sharding_with,
    spec_of,
)
from artifex_devices._array_ops.core.reading import pieces_of
from artifex_devices._array_ops.core.ufunc_loops import loop_of, write
from artifex_devices._core import Array, Sharding
from artifex_devices.errors import ShardingTypeError

_SCALARS = (bool, int, float, complex)


@implements_method("outer")
def _outer_method(ufunc: np.ufunc, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    operation = f"{ufunc.__name__}.outer"
    if "out" in options or "where" in options:
        raise TypeError(
            f"{operation}: out and where are not supported on Arrays; expected neither, got {sorted(options)}; use the "
            "result"
        )
    samples = [x if type(x) in _SCALARS else np.ones((0,), x.dtype) for x in inputs]
    ufunc.outer(*samples, **options)  # raises what NumPy raises
    kinds = tuple(np.asarray(x).dtype if type(x) in _SCALARS else x.dtype for x in inputs)  # outer makes arrays of all
    loop = loop_of(ufunc, kinds, tuple(sorted(options.items())))
    one, two = inputs
    placement = common_placement(operation, [x for x in inputs if isinstance(x, Array)])
    shapes = [() if type(x) in _SCALARS else x.shape for x in inputs]
    spec = _merged(operation, placement, inputs, shapes)
    shape = shapes[0] + shapes[1]
    sharding = sharding_with(placement.sharding, spec)
    places = tiling(sharding, shape, operation)
    ndim = len(shapes[0])
    parts = [
        _side(operation, x, placement, sharding_with(placement.sharding, side), places.positions, boxes)
        for x, side, boxes in (
            (one, spec[:ndim], [box[:ndim] for box in places.boxes]),
            (two, spec[ndim:], [box[ndim:] for box in places.boxes]),
        )
    ]
    allocated = [allocate(operation, shape, dtype, sharding, committed=placement.committed) for dtype in loop.dtypes]

    def compute(outputs: Sequence[NDArray[Any]], operands: Sequence[Any]) -> None:
        write(loop, ufunc, options, outputs, operands)

    tasks = []
    wider = (..., *(None,) * len(shapes[1]))
    for number in range(len(places.boxes)):
        outputs = [buffers[number] for _, buffers in allocated]
        if outputs[0].size:
            tasks.extend(
                pieces_of(compute, outputs, [np.asarray(parts[0][number])[wider], np.asarray(parts[1][number])])
            )
    run_all(tasks, sum(array.nbytes for array, _ in allocated))
    results = tuple(array for array, _ in allocated)
    return results if len(results) > 1 else results[0]


def _merged(operation: str, placement: Placement, inputs: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> Spec:
    """The specs of both, of which the second may use only axes that the first does not use."""
    sides: list[list[tuple[Any, ...]]] = []
    used: set[Any] = set()
    for x, shape in zip(inputs, shapes, strict=True):
        side: list[tuple[Any, ...]] = [()] * len(shape)
        for d, names in enumerate(spec_of(x) if isinstance(x, Array) and placement.shares_mesh(x) else ()):
            if not used.intersection(names):
                side[d] = names
            elif any_explicit(placement.sharding, names):
                raise ShardingTypeError(
                    f"{operation}: both operands are sharded over {names}, which can shard only one dimension of the "
                    f"result; expected different Explicit axes, got shapes {shapes[0]} and {shapes[1]}; move one "
                    "first: reshard(y, NamedSharding(y.sharding.mesh, P()))"
                )
        used.update(name for names in side for name in names)
        sides.append(side)
    return (*sides[0], *sides[1])


def _side(
    operation: str, x: Any, placement: Placement, sharding: Sharding, positions: tuple[int, ...], boxes: Sequence[Box]
) -> Sequence[Any]:
    """The part of one operand for each buffer of the result."""
    if type(x) in _SCALARS:
        return [x] * len(boxes)
    if not isinstance(x, Array):
        check_host_operand(operation, x, sharding)
        return [x[box] for box in boxes]
    return views_at(operation, x, placement, positions, boxes, sharding)
