# SPDX-License-Identifier: Apache-2.0
"""What in_specs, out_specs, in_axes and out_axes say: prefixes of trees, checked and spread over all leaves."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from artifex_devices._base.clearable_cache import forgettable
from artifex_devices._base.safe_repr import shown
from artifex_devices._core import AxisType, Mesh, NamedSharding, PartitionSpec
from artifex_devices._spmd.process_groups import Spread
from artifex_devices.errors import DuplicateSpecError

__all__ = [
    "Infer",
    "Layout",
    "check_specs",
    "layout_of",
    "names_by_dimension",
    "shape_text",
    "spread",
]

Names = tuple[Hashable, ...]


class _Infer:
    def __repr__(self) -> str:
        return "Infer"


# Stands for in_specs that are taken from the arguments' own shardings.
Infer: Any = _Infer()


class Layout:
    """The participants of a mapped call: one for each combination of the manual axes of a mesh."""

    __slots__ = (
        "device_names",
        "groups",
        "is_partial",
        "manual",
        "mesh",
        "participant_of",
        "positions",
        "sizes",
        "spread",
    )

    def __init__(self, mesh: Mesh, manual: Names) -> None:
        """`manual` are the axes that bodies see cut, in mesh order; along the others everybody's data is whole."""
        self.mesh = mesh
        self.manual = manual
        sizes: dict[Hashable, int] = dict(mesh.shape)
        self.sizes: tuple[int, ...] = tuple(sizes[name] for name in manual)
        self.is_partial = len(manual) < len(mesh.axis_names)
        # Of each device of the mesh, row-major: the number of who runs for it, among those that run in this process.
        self.participant_of: list[int] = []
        strides = {name: math.prod(self.sizes[i + 1 :]) for i, name in enumerate(manual)}
        for position in range(math.prod(sizes.values())):
            rest, participant = position, 0
            for name in reversed(mesh.axis_names):
                rest, coordinate = divmod(rest, sizes[name])
                participant += coordinate * strides.get(name, 0)
            self.participant_of.append(participant)
        devices = mesh.devices.reshape(-1)
        self.spread = self._spread(devices)
        first: dict[int, int] = {}
        for position, participant in enumerate(self.participant_of):
            if self.spread is None or devices[position].process_index == self.spread.me:
                first.setdefault(participant, position)
        # Of each participant that runs here: its first device here.
        self.positions: tuple[int, ...] = tuple(first[participant] for participant in sorted(first))
        self.device_names = [str(devices[position]) for position in self.positions]
        self.groups: dict[Any, Any] = {}  # of collectives over these axes, filled by axes.py
        if self.spread is not None:
            slots = self.spread.slot_of
            self.participant_of = [slots.get(participant, -1) for participant in self.participant_of]

    def _spread(self, devices: Sequence[Any]) -> Spread | None:
        """Who runs what, where the mesh has devices of other processes."""
        client = devices[0].client
        if client.process_count() == 1:
            return None
        holders: list[set[int]] = [set() for _ in range(math.prod(self.sizes))]
        for position, participant in enumerate(self.participant_of):
            holders[participant].add(devices[position].process_index)
        if all(each == {client.process_index()} for each in holders):
            return None
        if not any(client.process_index() in each for each in holders):
            raise ValueError(
                f"shard_map: the mesh has no device of this process, {client.process_index()}; expected one at least; "
                f"call it only in the processes {sorted(set().union(*holders))}, whose devices the mesh has"
            )
        return Spread(client, self.sizes, [tuple(sorted(each)) for each in holders])

    def within(self, whole: Layout) -> Layout:
        """The participants of this mesh of own devices as some of those of a mesh over several processes."""
        made = copy.copy(self)
        made.sizes, made.spread, made.groups = whole.sizes, whole.spread, whole.groups
        return made

    def replicas(self, named: Sequence[Hashable]) -> list[list[int]]:
        """Participants here that hold the same part of a value cut over `named`, grouped; each group in order."""
        unnamed = [i for i, name in enumerate(self.manual) if name not in named]
        groups: dict[tuple[int, ...], list[int]] = {}
        numbers = range(len(self.positions)) if self.spread is None else self.spread.here
        for slot, participant in enumerate(numbers):
            rest, coordinates = participant, [0] * len(self.sizes)
            for i in reversed(range(len(self.sizes))):
                rest, coordinates[i] = divmod(rest, self.sizes[i])
            for i in unnamed:
                coordinates[i] = 0
            groups.setdefault(tuple(coordinates), []).append(slot)
        return list(groups.values())


_layouts: dict[tuple[Mesh, Names], Layout] = forgettable({})


def layout_of(mesh: Mesh, manual: Names) -> Layout:
    """The Layout of a mesh, made once."""
    key = (mesh, manual)
    layout = _layouts.get(key)
    if layout is None:
        if len(_layouts) >= 256:
            _layouts.clear()
        layout = _layouts[key] = Layout(mesh, manual)
    return layout


def names_by_dimension(spec: PartitionSpec) -> tuple[Names, ...]:
    """The axes that cut each dimension, major to minor."""
    return tuple(() if entry is None else entry if isinstance(entry, tuple) else (entry,) for entry in tuple(spec))


def shape_text(shape: Sequence[int], dtype: Any) -> str:
    """Say "float32(8, 4)"."""
    return f"{dtype}{tuple(shape)}"


def _is_spec(node: Any) -> bool:
    return node is None or isinstance(node, PartitionSpec)


def check_specs(operation: str, argument: str, specs: Any, manual: Names | None) -> None:
    """Refuses what is no tree of PartitionSpecs, or names an axis that is not manual.

    Raises:
        TypeError: A leaf is no PartitionSpec.
        ValueError: A spec names an axis that the call does not bind, or one twice (DuplicateSpecError).
    """
    from artifex_devices import tree_util

    leaves = tree_util.tree_leaves_with_path(specs, _is_spec)
    wrong = [(path, leaf) for path, leaf in leaves if not _is_spec(leaf)]
    if wrong:
        told = ", ".join(
            f"{argument}{tree_util.keystr(path)} is {shown(leaf)} ({type(leaf).__name__})" for path, leaf in wrong
        )
        raise TypeError(
            f"{operation}: {argument} is no tree of PartitionSpecs: {told}; expected a PartitionSpec for each array; "
            "write P('x') for cut over x, P() for whole"
        )
    unbound, twice = [], []
    for path, spec in leaves:
        names = [name for entry in names_by_dimension(spec) for name in entry] if spec is not None else []
        place = f"{argument}{tree_util.keystr(path)} = {spec!r}"
        if manual is not None:
            unbound += [f"{place} names {shown(name)}" for name in names if name not in manual]
        twice += [place for name in set(names) if names.count(name) > 1]
    if unbound:
        raise ValueError(
            f"{operation}: {'; '.join(unbound)}; expected axes that this call binds, "
            f"{', '.join(map(repr, manual or ())) or 'none'}; check the spelling, mesh= and axis_names="
        )
    if twice:
        raise DuplicateSpecError(
            f"{operation}: {'; '.join(twice)} names an axis twice; expected each mesh axis in at most one dimension; "
            "drop one"
        )


def spread(
    operation: str,
    argument: str,
    prefix: Any,
    tree: Any,
    tree_name: str,
    is_leaf: Callable[[Any], bool] = _is_spec,
) -> list[Any]:
    """One value of the prefix for each leaf of the tree.

    Raises:
        ValueError: It is not a prefix of the tree; every place where it differs is named.
    """
    from artifex_devices import tree_util

    try:
        return tree_util.broadcast_prefix(prefix, tree, is_leaf)
    except ValueError:
        told = "; ".join(str(error(argument)) for error in tree_util.prefix_errors(prefix, tree, is_leaf))
        if not told:
            raise
        raise ValueError(
            f"{operation}: {told}; expected one value for all of {tree_name}, or a tree with its outer structure; "
            "note that a tuple stands for a tuple and a list for a list"
        ) from None


def held_names(x: Any, mesh: Mesh) -> tuple[Names, ...]:
    """The axes of this mesh that cut an argument, by dimension; () where it does not lie on the mesh."""
    sharding = getattr(x, "sharding", None)
    if isinstance(sharding, NamedSharding) and sharding.mesh == mesh:
        return names_by_dimension(sharding.spec)
    return ()


def explicit_names(mesh: Mesh) -> Names:
    """The Explicit axes of a mesh."""
    return tuple(name for name, kind in zip(mesh.axis_names, mesh.axis_types, strict=True) if kind == AxisType.Explicit)


def spec_of(names: Sequence[Names]) -> PartitionSpec:
    """The spec that cuts dimensions so; trailing whole dimensions unnamed."""
    entries: list[Any] = [axes if len(axes) > 1 else axes[0] if axes else None for axes in names]
    while entries and entries[-1] is None:
        entries.pop()
    return PartitionSpec(*entries)
