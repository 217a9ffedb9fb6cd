# SPDX-License-Identifier: Apache-2.0
"""in_specs, out_specs, in_axes and out_axes: prefixes of trees, checked and broadcast to all leaves."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

from numpy.typing import DTypeLike

from artifex_devices import tree_util
from artifex_devices._base.checks import failure
from artifex_devices._base.clearable_cache import WorldCache
from artifex_devices._base.leaf_types import Tree
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import AxisType, Mesh, NamedSharding, PartitionSpec, internal
from artifex_devices._placement.mesh_context import names_of_entry
from artifex_devices._spmd.process_groups import ProcessMap
from artifex_devices._tree.prefix import broadcast_prefix, prefix_values
from artifex_devices.errors import DuplicateSpecError

Names = tuple[Hashable, ...]

# A PartitionSpec, or a tree of PartitionSpecs that is a prefix of arguments or results.
SpecTree: TypeAlias = PartitionSpec | Tree


class ParticipantGrid:
    """The participants of a mapped call: one for each combination of the manual axes of a mesh."""

    __slots__ = (
        "device_names",
        "groups",
        "manual",
        "mesh",
        "participant_of",
        "positions",
        "process_map",
        "sizes",
        "world",
    )

    def __init__(self, mesh: Mesh, manual: Names) -> None:
        """`manual` are the axes over which bodies see shards, in mesh order."""
        self.mesh = mesh
        self.manual = manual
        self.sizes: tuple[int, ...] = tuple(mesh.shape[name] for name in manual)
        devices = mesh.devices.reshape(-1)
        client = devices[0].client
        self.world: int = client._uid
        me = client.process_index()
        count = math.prod(self.sizes)
        indices = NamedSharding(mesh, PartitionSpec(manual)).devices_indices_map((count,))
        participants = [rows.start or 0 for (rows,) in indices.values()]  # of each device, row-major
        holders: list[set[int]] = [set() for _ in range(count)]
        first: dict[int, int] = {}  # of each participant that runs here: its first device here
        for position, (device, participant) in enumerate(zip(devices, participants, strict=True)):
            holders[participant].add(device.process_index)
            if device.process_index == me:
                first.setdefault(participant, position)
        processes = sorted(set().union(*holders))
        if not first:
            raise failure(
                ValueError,
                "shard_map",
                f"the mesh has no device of this process, {me}",
                expected="at least one",
                fix=f"call it only in the processes {processes}, whose devices the mesh has",
            )
        # It is None where the mesh has no devices of other processes.
        self.process_map: ProcessMap | None = None
        if processes != [me]:
            self.process_map = ProcessMap(client, self.sizes, [tuple(sorted(each)) for each in holders])
        here = sorted(first)
        slot_of = {participant: slot for slot, participant in enumerate(here)}
        # Of each device of the mesh, row-major: the slot of its participant, -1 for devices of other processes.
        self.participant_of = [slot_of.get(participant, -1) for participant in participants]
        self.positions: tuple[int, ...] = tuple(first[participant] for participant in here)
        self.device_names = [str(devices[position]) for position in self.positions]
        self.groups: dict[Any, Any] = {}  # cache of axes.py: groups of collectives over these axes

    def within(self, other: ParticipantGrid) -> ParticipantGrid:
        """Returns this mesh of local devices as a part of a cross-process mesh: its participants there."""
        made = copy.copy(self)
        made.sizes, made.process_map, made.groups = other.sizes, other.process_map, other.groups
        return made

    def replicas(self, named: Sequence[Hashable]) -> list[list[int]]:
        """Groups the participants here that hold the same part of a value sharded over `named`; each group in order."""
        unnamed = [axis for axis, name in enumerate(self.manual) if name not in named]
        groups = internal.axis_groups(self.sizes, unnamed)
        slots: Any = range(len(self.positions)) if self.process_map is None else self.process_map.slot_of
        return [here for group in groups if (here := [slots[i] for i in group if i in slots])]


_grids: WorldCache[ParticipantGrid] = WorldCache()


def grid_of(mesh: Mesh, manual: Names) -> ParticipantGrid:
    """Returns the ParticipantGrid of a mesh, cached."""
    key = (mesh, manual)
    found = _grids.get(key)
    if found is None:
        made = ParticipantGrid(mesh, manual)
        found = _grids.remember(made.world, key, made)
    return found


def names_by_dimension(spec: PartitionSpec) -> tuple[Names, ...]:
    """Returns the axes over which each dimension is sharded, major to minor."""
    return tuple(map(names_of_entry, spec))


def shape_text(shape: Sequence[int], dtype: DTypeLike) -> str:
    """Formats shape and dtype: "float32(8, 4)"."""
    return f"{dtype}{tuple(shape)}"


def _is_spec(node: object) -> bool:
    return node is None or isinstance(node, PartitionSpec)


def check_specs(operation: str, argument: str, specs: object, manual: Names | None) -> None:
    """Raises TypeError unless `specs` is a tree of PartitionSpecs, ValueError for axes not in `manual` or repeated."""
    leaves = tree_util.tree_leaves_with_path(specs, _is_spec)
    wrong = [(path, leaf) for path, leaf in leaves if not _is_spec(leaf)]
    if wrong:
        found = ", ".join(
            f"{argument}{tree_util.keystr(path)} is {safe_repr(leaf)} ({type(leaf).__name__})" for path, leaf in wrong
        )
        raise failure(
            TypeError,
            operation,
            f"{argument} is not a tree of PartitionSpecs: {found}",
            expected="a PartitionSpec for each array",
            fix="write P('x') for sharded over x, P() for replicated",
        )
    unbound, twice = [], []
    for path, spec in leaves:
        names = [name for entry in names_by_dimension(spec) for name in entry] if spec is not None else []
        place = f"{argument}{tree_util.keystr(path)} = {spec!r}"
        if manual is not None:
            unbound += [f"{place} names {safe_repr(name)}" for name in names if name not in manual]
        twice += [place for name in set(names) if names.count(name) > 1]
    if unbound:
        raise failure(
            ValueError,
            operation,
            "; ".join(unbound),
            expected=f"axes that this call binds, {', '.join(map(repr, manual or ())) or 'none'}",
            fix="check the spelling, mesh= and axis_names=",
        )
    if twice:
        raise failure(
            DuplicateSpecError,
            operation,
            f"{'; '.join(twice)} names an axis twice",
            expected="each mesh axis in at most one dimension",
            fix="drop one",
        )


def spread_prefix(
    operation: str,
    argument: str,
    prefix: object,
    tree: object,
    tree_name: str,
    is_leaf: Callable[[Any], bool] = _is_spec,
) -> list[Any]:
    """Spreads a prefix to one value for each leaf of the tree; ValueError names all places where it is not one."""
    try:
        return broadcast_prefix(prefix, tree, is_leaf)
    except ValueError:
        if repair := _repair_of_outermost(argument, prefix, tree):
            raise ValueError(f"{operation}: {repair}") from None
    advice = (
        f"expected one value for all of {tree_name}, or a tree with its outer structure; a tuple stands for a tuple "
        "and a list for a list"
    )
    return prefix_values(operation, argument, prefix, tree, is_leaf, lambda: advice)


def _repair_of_outermost(argument: str, prefix: Any, tree: Any) -> str:
    """Suggests a repair where the outermost sequence of a prefix differs from the tree in type or length; else ""."""
    is_input = argument.startswith("in_")
    is_leaf = type(tree) not in (tuple, list) and tree_util.all_leaves([tree])
    if type(prefix) not in (tuple, list) or (is_leaf and not prefix) or not (is_leaf or type(tree) in (tuple, list)):
        return ""
    count, needed = len(prefix), 1 if is_leaf else len(tree)
    if count == needed and type(prefix) is type(tree):
        return ""
    missing = max(0, needed - count)
    if all(each is None or isinstance(each, (int, PartitionSpec)) for each in prefix):
        filler = prefix[-1] if prefix and not is_input else PartitionSpec() if "specs" in argument else None
        entries = type(tree)((*prefix[:needed], *(filler,) * missing)) if not is_leaf else prefix[:1]
        text = repr(entries[0] if is_leaf else entries)
    elif is_leaf:
        text = f"{argument}[0]"
    else:  # the text of a sharding is not code
        text = f"{type(tree).__name__}({argument}[:{needed}])"
        text = f"(*{argument}{', None' * missing})" if missing and type(tree) is tuple else text
    has, unit = ("the call has", "positional argument") if is_input else ("the function returns", "value")
    return (
        f"{argument} has {count} {'entry' if count == 1 else 'entries'}{' in a list' if type(prefix) is list else ''}, "
        f"and {has} {needed} {unit}{'' if needed == 1 else 's'}; "
        f"{f'pass {count} arguments, or ' if is_input and count > needed else ''}write {argument}={text}"
    )


def held_names(x: object, mesh: Mesh) -> tuple[Names, ...]:
    """Returns the axes over which each dimension of an argument is sharded; () where it is not placed on this mesh."""
    sharding = getattr(x, "sharding", None)
    if isinstance(sharding, NamedSharding) and sharding.mesh == mesh:
        return names_by_dimension(sharding.spec)
    return ()


def explicit_names(mesh: Mesh) -> Names:
    """Returns the Explicit axes of a mesh."""
    return tuple(name for name, kind in zip(mesh.axis_names, mesh.axis_types, strict=True) if kind == AxisType.Explicit)


def spec_of(names: Sequence[Names]) -> PartitionSpec:
    """Returns the spec that shards dimensions over these axes, without trailing None entries."""
    entries: list[Any] = [axes if len(axes) > 1 else axes[0] if axes else None for axes in names]
    while entries and entries[-1] is None:
        entries.pop()
    return PartitionSpec(*entries)
