# SPDX-License-Identifier: Apache-2.0
"""Arguments of mapped functions as one block a participant, without a copy where they lie as they are needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._array_ops.core.arguments import check_unmasked
from artifex_devices._array_ops.core.blocks import Box, is_inside, local_arrays, moved_to, tiling
from artifex_devices._array_ops.core.layout import Placement
from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Array, NamedSharding, PartitionSpec, Sharding
from artifex_devices._spmd.specs import (
    Layout,
    explicit_names,
    held_names,
    names_by_dimension,
    shape_text,
    spec_of,
)
from artifex_devices.errors import IndivisibleError

__all__ = [
    "LEAF_TYPES",
    "Blocks",
    "blocks_of",
    "check_alive",
    "check_fit",
    "check_placed",
    "infer_specs",
    "is_cut_alike",
    "key_of",
    "leaf_of",
    "unchanged",
]

# One block a participant, read-only.
Blocks = Callable[[Any], list[NDArray[Any]]]

# What surely is a leaf of a tree.
LEAF_TYPES = frozenset({Array, np.ndarray, bool, int, float, complex, np.float32, np.float64, np.int32, np.int64})


def leaf_of(operation: str, x: Any, path: str) -> Any:
    """An Array as it is, anything else as an ndarray.

    Raises:
        TypeError: It is no array of numbers; the text names its path.
    """
    if isinstance(x, Array):
        return x
    if isinstance(x, (np.ndarray, np.generic, bool, int, float, complex)):
        check_unmasked(operation, x, path)
        array = np.asarray(x)
        try:
            _core._host_empty((0,), array.dtype)
        except TypeError as error:
            raise TypeError(f"{operation}: {path}: {str(error).removeprefix('host_empty: ')}") from None
        return array
    raise TypeError(
        f"{operation}: {path} of type {type(x).__name__} is no array; expected an Array, an ndarray or a number, got "
        f"{shown(x)}; convert it first, or bind it to the function with functools.partial"
    )


def check_alive(operation: str, x: Any, path: str) -> None:
    """Refuses an Array that was deleted (RuntimeError); the text names its path."""
    if isinstance(x, Array) and x.is_deleted():
        raise RuntimeError(
            f"{operation}: {path} of {shape_text(x.shape, x.dtype)} was deleted; expected an Array that is still "
            "there; make it again, or delete or donate it only after its last use"
        )


def key_of(x: Any) -> Any:
    """What blocks_of depends on, and what a check of an argument looks at."""
    if type(x) is Array:
        return (x.sharding, x.shape)
    if type(x) is np.ndarray:
        return (x.dtype, x.shape)
    if isinstance(x, np.ndarray):  # np.memmap and the like
        return (type(x), x.dtype, x.shape)
    return type(x)


def check_fit(
    operation: str, layout: Layout, specs: Sequence[PartitionSpec], leaves: Sequence[Any], paths: Callable[[int], str]
) -> None:
    """Refuses specs that are too long for their arguments, and arguments that axes do not divide.

    Args:
        operation: Name for errors.
        layout: The mesh.
        specs: One a leaf.
        leaves: The arguments.
        paths: paths(i) is the name of a leaf.

    Raises:
        ValueError: As said; an IndivisibleError for the latter. All such arguments are named.
    """
    too_long, indivisible = [], []
    sizes = dict(zip(layout.manual, layout.sizes, strict=True))
    for i, (spec, x) in enumerate(zip(specs, leaves, strict=True)):
        if len(spec) > x.ndim:
            too_long.append(
                f"{paths(i)} of {shape_text(x.shape, x.dtype)} has {x.ndim} dimensions, {spec!r} {len(spec)}"
            )
            continue
        for d, axes in enumerate(names_by_dimension(spec)):
            count = 1
            for name in axes:
                count *= sizes[name]
            if x.shape[d] % count:
                indivisible.append(
                    f"{paths(i)} of {shape_text(x.shape, x.dtype)} has {x.shape[d]} in dimension {d}, which {spec!r} "
                    f"spec into {count}"
                )
    if too_long:
        raise ValueError(
            f"{operation}: a spec is too long for its argument: {'; '.join(too_long)}; expected at most one entry a "
            "dimension; shorten the spec (P() for a number)"
        )
    if indivisible:
        raise IndivisibleError(
            f"{operation}: an argument cannot be cut evenly: {'; '.join(indivisible)}; expected sizes that the axes "
            "divide; pad the argument, or choose another spec"
        )


def check_placed(
    operation: str, layout: Layout, specs: Sequence[PartitionSpec], leaves: Sequence[Any], paths: Callable[[int], str]
) -> None:
    """Refuses arguments that do not lie as Explicit axes ask: there nothing moves by itself.

    Raises:
        ValueError: The text names each argument's path, what in_specs say and how it lies.
    """
    explicit = explicit_names(layout.mesh)
    if not explicit:
        return
    wrong = []
    for i, (spec, x) in enumerate(zip(specs, leaves, strict=True)):
        asked, held = names_by_dimension(spec), held_names(x, layout.mesh)
        for d in range(max(len(asked), len(held))):
            mine = [name for name in (asked[d] if d < len(asked) else ()) if name in explicit]
            its = [name for name in (held[d] if d < len(held) else ()) if name in explicit]
            if mine != its:
                lies = f"lies as {x.sharding.spec!r}" if held else "is not placed on this mesh (as P())"
                wrong.append(f"{paths(i)} of {shape_text(x.shape, x.dtype)} {lies}, in_specs say {spec!r}")
                break
    if wrong:
        raise ValueError(
            f"{operation}: arguments do not lie as Explicit axes ask: {'; '.join(wrong)}; expected them to be placed "
            "so; reshard(x, NamedSharding(mesh, spec)) first, leave in_specs out, or use an Auto mesh, which moves them"
        )


def is_cut_alike(x: Array, sharding: Sharding) -> bool:
    """Whether the first, second, ... device of both holds the same part of x; the devices may be others."""
    own = x.sharding
    if own.memory_kind != sharding.memory_kind or own.num_devices != sharding.num_devices:
        return False
    return list(own.devices_indices_map(x.shape).values()) == list(sharding.devices_indices_map(x.shape).values())


def infer_specs(operation: str, layout: Layout, leaves: Sequence[Any]) -> list[PartitionSpec]:
    """How arguments lie over the bound axes.

    Raises:
        TypeError: A bound axis is not Explicit.
    """
    automatic = [name for name in layout.manual if name not in explicit_names(layout.mesh)]
    if automatic:
        raise TypeError(
            f"{operation}: in_specs is missing; expected a tree of PartitionSpecs, as the axes "
            f"{', '.join(map(shown, automatic))} are Auto; give in_specs, or make the mesh by make_mesh (Explicit axes)"
        )
    return [
        spec_of([tuple(n for n in names if n in layout.manual) for names in held_names(x, layout.mesh)]) for x in leaves
    ]


def blocks_of(operation: str, layout: Layout, spec: PartitionSpec, x: Any, path: str, *, moves: bool = False) -> Blocks:
    """How arguments like x (of one key_of) come to the participants; `moves` says that committed ones may be moved.

    Raises:
        ValueError: x is committed to other devices than the mesh's, or to those in another order.
    """
    target = NamedSharding(layout.mesh, spec)
    places = tiling(target, x.shape, operation)
    numbers = _core._buffers_at(target, layout.positions)
    boxes = [places.boxes[number] for number in numbers]
    if not isinstance(x, Array):
        return _host_blocks(operation, target, boxes, path, whole=target.is_fully_replicated)
    if x.sharding._same_devices(target):
        views = _views(operation, layout, x, boxes)
        if views is not None:
            return views

    def moved(x: Array) -> list[NDArray[Any]]:
        lies, expected = list(x.sharding._device_assignment), list(target._device_assignment)
        if x.committed and not moves and lies != expected:
            where = (
                "other devices than the mesh" if set(lies) != set(expected) else "the mesh's devices in another order"
            )
            raise ValueError(
                f"{operation}: {path} lies on {where}; expected {_ids(expected)}, got {_ids(lies)}; move it first: "
                f"device_put({path}, NamedSharding(mesh, {spec!r}))"
            )
        arrays = _arrays_here(moved_to(operation, x, Placement(target, committed=True), target))
        return [arrays[number] for number in numbers]

    return moved


def unchanged(count: int) -> Blocks:
    """How an argument of any type that is passed as it is comes to `count` participants."""
    return lambda x: [x] * count


def _arrays_here(x: Array) -> list[NDArray[Any]]:
    """An ndarray on each distinct buffer that x has in this process."""
    return local_arrays(x, False, True)


def _ids(devices: Sequence[Any]) -> str:
    ids = [device.id for device in devices]
    return f"devices {ids[:8]}" + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")


def _views(operation: str, layout: Layout, x: Array, boxes: Sequence[Box]) -> Blocks | None:
    """Views of what each participant's own device holds; None where it holds too little."""
    mine = tiling(x.sharding, x.shape, operation)
    numbers = _core._buffers_at(x.sharding, layout.positions)
    wholes = [mine.boxes[number] for number in numbers]
    if not all(map(is_inside, boxes, wholes)):
        return None
    if list(boxes) == wholes:
        if list(numbers) == list(range(len(mine.boxes))):
            return _arrays_here

        def as_they_are(x: Array) -> list[NDArray[Any]]:
            arrays = _arrays_here(x)
            return [arrays[number] for number in numbers]

        return as_they_are
    parts = [
        tuple(slice(b.start - w.start, b.stop - w.start) for b, w in zip(box, whole, strict=True))
        for box, whole in zip(boxes, wholes, strict=True)
    ]

    def parts_of(x: Array) -> list[NDArray[Any]]:
        arrays = _arrays_here(x)
        return [arrays[number][part] for number, part in zip(numbers, parts, strict=True)]

    return parts_of


def _host_blocks(operation: str, target: NamedSharding, boxes: Sequence[Box], path: str, *, whole: bool) -> Blocks:
    indices: list[Any] = [(*box, ...) for box in boxes]  # with ..., a view also of a number

    def views(x: Any) -> list[NDArray[Any]]:
        array = np.asarray(x)
        if array.dtype.char == "O":
            leaf_of(operation, x, path)  # an int that fits no dtype
        if not _core._x64_enabled():
            array = _core._narrowed(array, operation)
        _core._check_transfer("host_to_device", False, array.shape, array.dtype, "host", target, operation)
        if whole:
            view = array.view(np.ndarray)
            view.flags.writeable = False
            return [view] * len(indices)
        blocks = []
        for index in indices:
            block = array[index]
            block.flags.writeable = False
            blocks.append(block)
        return blocks

    return views
