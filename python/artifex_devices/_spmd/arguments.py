# SPDX-License-Identifier: Apache-2.0
"""Arguments of mapped functions as one block for each participant, without a copy where they are placed as needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from artifex_devices import tree_util
from artifex_devices._array_ops.core.arguments import check_unmasked
from artifex_devices._array_ops.core.blocks import Box, buffers_at, covers, moved_to, shift, tiling
from artifex_devices._array_ops.core.operand_sharding import OperandDevices, ids_text
from artifex_devices._base.checks import failure
from artifex_devices._base.foreign_arrays import copy_of_foreign
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array, NamedSharding, PartitionSpec, Sharding, internal
from artifex_devices._runtime.cupy_arrays import cupy_blocks
from artifex_devices._spmd.specs import (
    ParticipantGrid,
    explicit_names,
    held_names,
    names_by_dimension,
    shape_text,
    spec_of,
)
from artifex_devices.errors import IndivisibleError

# One read-only block for each participant.
Blocks = Callable[[Any], list[NDArray[Any]]]


def paths_of(treedef: Any, names: Sequence[str]) -> list[str]:
    """Returns the names of the leaves of a tuple of arguments: the name of the argument, and the path in it."""
    return [f"{names[first.idx]}{tree_util.keystr(tuple(rest))}" for first, *rest in treedef.paths()]


def leaf_of(operation: str, x: object, path: str) -> Any:
    """Returns an Array unchanged, anything else as an ndarray; TypeError, with its path, unless it has numbers.

    Arrays of other libraries in host memory are copied.
    """
    if isinstance(x, Array):
        return x
    if isinstance(x, (np.ndarray, np.generic, bool, int, float, complex)):
        check_unmasked(operation, x, path)
        array = as_ndarray(f"{operation}: {path}", x)
        empty(f"{operation}: {path}", (0,), array.dtype)
        return array
    foreign = copy_of_foreign(x)
    if foreign is not None:
        return leaf_of(operation, foreign, path)
    is_result = path.startswith("output")
    fix = "return arrays only" if is_result else f"{internal.leaf_repair(x)}, or bind it by functools.partial"
    raise failure(
        TypeError,
        operation,
        f"{path} of type {type(x).__name__} is not an array",
        expected="an Array, an ndarray or a number",
        got=safe_repr(x),
        fix=fix,
    )


def as_ndarray(place: str, x: object) -> NDArray[Any]:
    """Returns np.asarray(x); raises OverflowError, which begins with `place`, for an int that 64 bits do not hold."""
    array = np.asarray(x)
    if array.dtype.char == "O" and isinstance(x, int):
        internal.check_int(x, place)
    return array


def empty(place: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Creates a block; raises TypeError, which begins with `place`, unless Arrays can have the dtype."""
    try:
        made: NDArray[Any] = internal.host_empty(shape, dtype)
    except TypeError as error:
        raise TypeError(f"{place}: {str(error).removeprefix('host_empty: ')}") from None
    return made


def check_alive(operation: str, x: object, path: str) -> None:
    """Raises RuntimeError, with its path, for a deleted Array."""
    if isinstance(x, Array) and x.is_deleted():
        raise failure(
            RuntimeError,
            operation,
            f"{path} of {shape_text(x.shape, x.dtype)} was deleted",
            expected="an Array that exists",
            fix="create it again, or delete or donate it only after its last use",
        )


def key_of(x: object) -> Any:
    """Returns the properties that blocks_of and the checks of an argument depend on."""
    if type(x) is Array:
        return (x.sharding, x.shape)
    if type(x) is np.ndarray:
        return (x.dtype, x.shape)
    if isinstance(x, np.ndarray):  # np.memmap and the like
        return (type(x), x.dtype, x.shape)
    return type(x)


def check_fit(
    operation: str, grid: ParticipantGrid, specs: Sequence[PartitionSpec], leaves: Sequence[Any], paths: Sequence[str]
) -> None:
    """Raises one ValueError for all specs that are too long, or one IndivisibleError for all that do not divide."""
    too_long, indivisible = [], []
    sizes = dict(zip(grid.manual, grid.sizes, strict=True))
    for spec, x, path in zip(specs, leaves, paths, strict=True):
        if len(spec) > x.ndim:
            too_long.append(f"{path} of {shape_text(x.shape, x.dtype)} has {x.ndim} dimensions, {spec!r} {len(spec)}")
            continue
        for d, axes in enumerate(names_by_dimension(spec)):
            count = math.prod(sizes[name] for name in axes)
            if x.shape[d] % count:
                indivisible.append(
                    f"{path} of {shape_text(x.shape, x.dtype)} has {x.shape[d]} in dimension {d}, which {spec!r} "
                    f"divides into {count}"
                )
                widths = [(0, -x.shape[d] % count if each == d else 0) for each in range(x.ndim)]
                pad = f"np.pad({path}, {widths})"
    if too_long:
        number = next((path for x, path in zip(leaves, paths, strict=True) if not x.ndim and path.endswith("][0]")), "")
        array = f", or pass a list of numbers as np.array({number.removesuffix('[0]')})" if number else ""
        raise failure(
            ValueError,
            operation,
            f"a spec is too long for its argument: {'; '.join(too_long)}",
            expected="at most one entry for each dimension",
            fix=f"shorten the spec (P() for a number){array}",
        )
    if indivisible:
        raise failure(
            IndivisibleError,
            operation,
            f"an argument cannot be sharded evenly: {'; '.join(indivisible)}",
            expected="sizes that the axes divide",
            fix=f"pad the argument: {pad}, or choose another spec",
        )


def check_placed(
    operation: str, grid: ParticipantGrid, specs: Sequence[PartitionSpec], leaves: Sequence[Any], paths: Sequence[str]
) -> None:
    """Raises ValueError where in_specs differ from the placement of Arrays over Explicit axes.

    Arrays are not moved along Explicit axes without a request; ndarrays and numbers are placed as in_specs has them.
    The text names each argument's path and both specs.
    """
    explicit = explicit_names(grid.mesh)
    if not explicit:
        return
    wrong = []
    for spec, x, path in zip(specs, leaves, paths, strict=True):
        if not isinstance(x, Array):
            continue
        sharding: Any = x.sharding
        requested, held = names_by_dimension(spec), held_names(x, grid.mesh)
        for d in range(max(len(requested), len(held))):
            expected = [name for name in (requested[d] if d < len(requested) else ()) if name in explicit]
            found = [name for name in (held[d] if d < len(held) else ()) if name in explicit]
            if expected != found:
                placed = f"is placed as {sharding.spec!r}" if held else "is not placed on this mesh (as P())"
                if sharding._device_assignment[0].client is not grid.mesh._flat_devices_tuple[0].client:
                    placed = f"is on devices {ids_text(sharding)}"
                wrong.append(f"{path} of {shape_text(x.shape, x.dtype)} {placed}, in_specs has {spec!r}")
                fix = f"ad.reshard(x, ad.NamedSharding(mesh, ad.{spec!r}))"
                break
    if wrong:
        raise failure(
            ValueError,
            operation,
            f"arguments over Explicit axes are not placed as in_specs: {'; '.join(wrong)}",
            expected="equal placements",
            fix=f"reshard first: {fix}, leave in_specs out, or use an Auto mesh, which moves arguments",
        )


def is_free_for(x: object, sharding: Sharding) -> bool:
    """Returns whether x is not an Array that is committed to another sharding.

    The devices may be others, where the first, second, ... device of both holds the same part of x.
    """
    if not isinstance(x, Array) or not x.committed or x.sharding.is_equivalent_to(sharding, x.ndim):
        return True
    own = x.sharding
    if own.memory_kind != sharding.memory_kind or own.num_devices != sharding.num_devices:
        return False
    return list(own.devices_indices_map(x.shape).values()) == list(sharding.devices_indices_map(x.shape).values())


def infer_specs(
    operation: str, grid: ParticipantGrid, leaves: Sequence[Any], paths: Sequence[str]
) -> list[PartitionSpec]:
    """Infers the specs of arguments over the bound axes, which must be Explicit (else TypeError).

    ValueError for arguments sharded over other Explicit axes, as bodies would see complete blocks.
    """
    automatic = [name for name in grid.manual if name not in explicit_names(grid.mesh)]
    if automatic:
        raise failure(
            TypeError,
            operation,
            "in_specs is missing",
            expected=f"a tree of PartitionSpecs, as the axes {', '.join(map(safe_repr, automatic))} are Auto",
            fix="give in_specs, or create the mesh by make_mesh (Explicit axes)",
        )
    specs, wrong = [], []
    for x, path in zip(leaves, paths, strict=True):
        held = held_names(x, grid.mesh)
        specs.append(spec_of([tuple(name for name in names if name in grid.manual) for names in held]))
        others = [name for names in held for name in names if name not in grid.manual]
        wrong += [f"{path} is sharded over {safe_repr(n)}" for n in others if n in explicit_names(grid.mesh)]
    if wrong:
        raise failure(
            ValueError,
            operation,
            f"{'; '.join(wrong)}, an Explicit axis that is not in axis_names",
            expected="complete blocks along it, as nothing is compiled here",
            fix="reshard the argument first, or add the axis to axis_names",
        )
    return specs


def blocks_of(
    operation: str, grid: ParticipantGrid, spec: PartitionSpec, x: Any, path: str, *, moves: bool = False
) -> Blocks:
    """Returns the blocks of arguments like x, of one key_of; `moves` lets committed ones be moved.

    ValueError where x is committed to other devices than the mesh's, or to the same devices in another order.
    """
    target = NamedSharding(grid.mesh, spec)
    target_tiles = tiling(target, x.shape, operation)
    numbers = buffers_at(target, grid.positions)
    boxes = [target_tiles.boxes[number] for number in numbers]
    if not isinstance(x, Array):
        return _host_blocks(operation, target, boxes, path)
    if covers(x.sharding, target, x.shape, operation):
        return _views(operation, grid, x, boxes)

    read = _reader_of(target)

    def moved(x: Array) -> list[NDArray[Any]]:
        found, expected = list(x.sharding._device_assignment), list(target._device_assignment)
        if x.committed and not moves and found != expected:
            is_reordered = set(found) == set(expected)
            where = "the mesh's devices in another order" if is_reordered else "other devices than the mesh"
            if found[0].client is not expected[0].client:
                where = "devices of another world than the mesh"
            raise failure(
                ValueError,
                operation,
                f"{path} is placed on {where}",
                expected=f"devices {ids_text(target)}",
                got=f"devices {ids_text(x.sharding)}",
                fix=f"move it first: ad.device_put({path}, ad.NamedSharding(mesh, ad.{spec!r}))",
            )
        arrays = read(moved_to(operation, x, OperandDevices(target, committed=True), target))
        return [arrays[number] for number in numbers]

    return moved


def _reader_of(sharding: Sharding) -> Callable[[Array], list[Any]]:
    """Makes a function that returns an ndarray on each distinct buffer of an Array here, or CuPy arrays."""
    return _cupy_arrays if internal.is_on_cuda(sharding) else _arrays_here


def _arrays_here(x: Array) -> list[Any]:
    return internal.local_arrays(x, False, True)


def _cupy_arrays(x: Array) -> list[Any]:
    return cupy_blocks("shard_map", x, some=True) or []


def _views(operation: str, grid: ParticipantGrid, x: Array, boxes: Sequence[Box]) -> Blocks:
    """Returns views of the part on each participant's own device, which contains its box."""
    mine = tiling(x.sharding, x.shape, operation)
    numbers = buffers_at(x.sharding, grid.positions)
    held = [mine.boxes[number] for number in numbers]
    read = _reader_of(x.sharding)
    are_entire = list(boxes) == held
    if are_entire and list(numbers) == list(range(len(mine.boxes))):
        return read
    parts = [shift(box, outer) for box, outer in zip(boxes, held, strict=True)]

    def parts_of(x: Array) -> list[NDArray[Any]]:
        arrays = read(x)
        if are_entire:
            return [arrays[number] for number in numbers]
        return [arrays[number][part] for number, part in zip(numbers, parts, strict=True)]

    return parts_of


def _host_blocks(operation: str, target: NamedSharding, boxes: Sequence[Box], path: str) -> Blocks:
    # One index for each distinct block; with ..., a view of a number too.
    indices: list[Any] = [(*box, ...) for box in (boxes[:1] if target.is_fully_replicated else boxes)]
    repeats = len(boxes) // max(1, len(indices))

    def views(x: object) -> list[NDArray[Any]]:
        array = np.asarray(x)
        if array.dtype.char == "O":
            leaf_of(operation, x, path)  # an int that does not fit any dtype
        if not internal.x64_enabled():
            array = internal.narrowed(array, operation)
        internal.host_operand(array.shape, array.dtype, target, operation)
        blocks = [array[index] for index in indices]
        for block in blocks:
            block.flags.writeable = False
        return blocks * repeats

    return views
