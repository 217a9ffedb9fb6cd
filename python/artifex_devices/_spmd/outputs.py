# SPDX-License-Identifier: Apache-2.0
"""Makes Arrays of the results of bodies, without copying results that nothing else can write to."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from artifex_devices import tree_util
from artifex_devices._array_ops.core.arguments import check_unmasked
from artifex_devices._array_ops.core.blocks import run_all, tiling
from artifex_devices._base.checks import failure
from artifex_devices._base.clearable_cache import remember
from artifex_devices._base.foreign_arrays import copy_of_foreign
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.text import shortened_list
from artifex_devices._core import Array, NamedSharding, PartitionSpec, internal
from artifex_devices._runtime.cupy_arrays import is_on_gpu
from artifex_devices._spmd.arguments import as_ndarray, empty
from artifex_devices._spmd.block_exchange import bytes_of
from artifex_devices._spmd.on_cuda import array_of_parts
from artifex_devices._spmd.process_groups import CrossProcessGroups
from artifex_devices._spmd.result_check import ResultCheck
from artifex_devices._spmd.specs import ParticipantGrid, names_by_dimension, shape_text, spread_prefix

_NDARRAY = {np.ndarray}
_SAME_NDARRAY = 2  # likeness of parts that are one ndarray
_COMPARED_BYTES = 1 << 20  # of replicas at once
_ADOPTED_BYTES = 4096  # smaller results are copied without a check of their references


class _GlobalOutput(NamedTuple):
    """The global array that results of one shape and dtype become."""

    shape: tuple[int, ...]
    sharding: NamedSharding
    participants: tuple[int, ...]  # of each distinct buffer: the participant whose result it takes
    is_complete: bool  # these are all participants, in order
    none_adopted: list[bool]
    replicas: list[list[int]]  # participants whose results must be equal
    sharers: CrossProcessGroups | None  # processes whose results must be equal


class Outputs:
    """Makes Arrays of the values that the participants of one mapped function returned."""

    argument = "out_specs"

    def __init__(self, operation: str, grid: ParticipantGrid, out_specs: object, *, checks_replicas: bool) -> None:
        """`out_specs` is a prefix of the results of bodies."""
        self.operation = operation
        self.grid = grid
        self.out_specs = out_specs
        self.checks_replicas = checks_replicas
        self._single = self._is_spec(out_specs) and out_specs is not None
        self._global_outputs: dict[Any, _GlobalOutput] = {}

    @staticmethod
    def _is_spec(node: object) -> bool:
        return isinstance(node, PartitionSpec)

    def assemble(self, results: list[Any], check: ResultCheck | None = None) -> Any:
        """Assembles the tree of Arrays; empties `results` to drop its references.

        `check` gets each output, where other processes have parts of it. Errors name the path of the result and the
        devices: ValueError where out_specs is not a prefix, results differ in structure, shape, dtype or a replicated
        value, or have too few dimensions for their spec; TypeError where a result is not an array.
        """
        if self._single and (internal.likeness(results) or {*map(type, results)} == _NDARRAY):
            return self._array(self.out_specs, results, "", check)
        leaves, treedef = tree_util.tree_flatten(results[0])
        specs = spread_prefix(
            self.operation, self.argument, self.out_specs, results[0], "what the body returns", self._is_spec
        )
        columns: list[list[Any]] = [[leaf] for leaf in leaves]
        for participant in range(1, len(results)):
            leaves, other = tree_util.tree_flatten(results[participant])
            if other != treedef:
                names = self.grid.device_names
                raise failure(
                    ValueError,
                    self.operation,
                    "devices returned trees of different structure",
                    expected=f"{treedef} as on {names[0]}",
                    got=f"{other} on {names[participant]}",
                    fix="return the same structure everywhere",
                )
            for column, leaf in zip(columns, leaves, strict=True):
                column.append(leaf)
        results.clear()
        paths = treedef.paths() if leaves else []
        leaves.clear()
        made: list[Array] = []
        for spec, path in zip(specs, paths, strict=True):
            column = columns[len(made)]
            name = tree_util.keystr(path)
            self._make_arrays(column, name)
            made.append(self._array(spec, column, name, check))
        return tree_util.tree_unflatten(treedef, made)

    def _make_arrays(self, column: list[Any], path: str) -> None:
        """Converts numbers and replicated Arrays to ndarrays, in place."""
        for participant in range(len(column)):
            leaf = column[participant]
            if type(leaf) is np.ndarray or is_on_gpu(leaf):
                continue
            place = f"output{path} on {self.grid.device_names[participant]}"
            check_unmasked(self.operation, leaf, place)
            if isinstance(leaf, (np.ndarray, np.generic, bool, int, float, complex)) or (
                isinstance(leaf, Array) and leaf.is_fully_replicated
            ):
                column[participant] = as_ndarray(f"{self.operation}: {place}", leaf)
                continue
            foreign = None if isinstance(leaf, Array) else copy_of_foreign(leaf)
            if foreign is not None:
                column[participant] = foreign
                continue
            found = "an Array that is sharded over devices" if isinstance(leaf, Array) else safe_repr(leaf)
            fix = "np.asarray(x)" if isinstance(leaf, Array) else "arrays only"
            raise failure(
                TypeError,
                self.operation,
                f"{place} is of type {type(leaf).__name__}",
                expected="an ndarray or a number",
                got=found,
                fix=f"return {fix}",
            )

    def _array(self, spec: object, parts: list[NDArray[Any]], path: str, check: ResultCheck | None) -> Array:
        if not internal.x64_enabled():
            for i, part in enumerate(parts):
                parts[i] = internal.narrowed(part, self.operation, f"output{path}")
        first = parts[0]
        shape, dtype = first.shape, first.dtype
        likeness = internal.likeness(parts)
        if not likeness and any(part.shape != shape or part.dtype != dtype for part in parts):
            raise self._mismatch(parts, path)
        key = (spec, shape, dtype)
        output = self._global_outputs.get(key)
        if output is None:
            output = remember(self._global_outputs, key, self._global_output(spec, shape, dtype, path))
        if likeness != _SAME_NDARRAY:
            for group in output.replicas:
                self._check_equal(group, parts, path)
        if check is not None:
            check.add(path, spec, output.sharers, parts)
        chosen = parts if output.is_complete else [parts[participant] for participant in output.participants]
        if not likeness and any(map(is_on_gpu, chosen)):
            return array_of_parts(self.operation, output.shape, dtype, output.sharding, chosen)
        adopted = output.none_adopted
        if first.nbytes >= _ADOPTED_BYTES:
            del first
            parts.clear() if chosen is not parts else None
            adopted = [_is_unshared(chosen, i) for i in range(len(chosen))]
        return internal.adopt(output.shape, dtype, output.sharding, chosen, adopted, self.operation)

    def _global_output(self, spec: Any, shape: tuple[int, ...], dtype: DTypeLike, path: str) -> _GlobalOutput:
        grid = self.grid
        empty(f"{self.operation}: output{path}", (0,), dtype)
        if len(spec) > len(shape):
            hint = "return x[None] to stack numbers, or use P()" if not shape else "shorten the spec"
            raise failure(
                ValueError,
                self.operation,
                f"output{path} of {shape_text(shape, dtype)} has too few dimensions for its spec {spec!r}",
                expected=f"at least {len(spec)}",
                got=len(shape),
                fix=hint,
            )
        sizes = dict(zip(grid.manual, grid.sizes, strict=True))
        names = names_by_dimension(spec)
        counts = [math.prod(sizes[name] for name in axes) for axes in names]
        global_shape = tuple(size * count for size, count in zip_longest(shape, counts, fillvalue=1))
        sharding = NamedSharding(grid.mesh, spec)
        named = [name for axes in names for name in axes]
        groups = grid.replicas(named)
        process_map = grid.process_map
        leader = {participant: group[0] for group in groups for participant in group}
        buffers = tiling(sharding, global_shape, self.operation).positions
        participants = tuple(leader[grid.participant_of[position]] for position in buffers)
        return _GlobalOutput(
            global_shape,
            sharding,
            participants,
            participants == tuple(range(len(grid.positions))),
            [False] * len(participants),
            [group for group in groups if len(group) > 1] if self.checks_replicas else [],
            process_map.sharers(named, grid.manual) if process_map is not None and self.checks_replicas else None,
        )

    def _mismatch(self, parts: Sequence[NDArray[Any]], path: str) -> ValueError:
        names = self.grid.device_names
        first = parts[0]
        others = [
            f"{shape_text(part.shape, part.dtype)} on {names[i]}"
            for i, part in enumerate(parts)
            if (part.shape, part.dtype) != (first.shape, first.dtype)
        ]
        texts = shortened_list(others, 4)
        return failure(
            ValueError,
            self.operation,
            f"output{path} differs between devices",
            expected=f"{shape_text(first.shape, first.dtype)} as on {names[0]}",
            got=texts,
            fix="return equal shapes and dtypes",
        )

    def _check_equal(self, group: Sequence[int], parts: Sequence[NDArray[Any]], path: str) -> None:
        first = parts[group[0]]
        others = [i for i in group[1:] if parts[i] is not first]
        if not others:
            return
        differing: list[int] = []

        def compare(i: int) -> None:
            if not _same_bits(first, parts[i]):
                differing.append(i)

        run_all([functools.partial(compare, i) for i in others], first.nbytes * len(others))
        if differing:
            names = self.grid.device_names
            texts = shortened_list([names[i] for i in sorted(differing)], 8)
            raise failure(
                ValueError,
                self.operation,
                f"output{path} is replicated by its spec, but not the same everywhere",
                expected=f"the bits of {names[group[0]]}",
                got=f"others on {texts}",
                fix=(
                    "name the axis in out_specs, reduce the value (lax.pmean), or take the first device's with "
                    "check_vma=False"
                ),
            )


def _same_bits(a: NDArray[Any], b: NDArray[Any]) -> bool:
    if a.nbytes <= 1 << 14 or is_on_gpu(a):
        return a.tobytes() == b.tobytes()
    mine, its, step = bytes_of(a), bytes_of(b), _COMPARED_BYTES
    return all(np.array_equal(mine[i : i + step], its[i : i + step]) for i in range(0, mine.size, step))


def _references(parts: list[NDArray[Any]], i: int) -> int:
    return sys.getrefcount(parts[i])


# The count of _references for an ndarray that only the list refers to.
_UNSHARED = _references([np.empty(1)], 0)


def _is_unshared(parts: list[NDArray[Any]], i: int) -> bool:
    """Returns whether no other reference to a result exists, through which it could be written."""
    part = parts[i]
    if not (part.flags.owndata and part.flags.c_contiguous):
        return False
    del part
    return _references(parts, i) == _UNSHARED
