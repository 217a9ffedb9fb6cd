# SPDX-License-Identifier: Apache-2.0
"""Axis names in a body: the participants that they bring together, and their order."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from artifex_devices import _core
from artifex_devices._base.checks import check_sequence, check_sequence_of_ints
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._spmd.participant import Participant, _current
from artifex_devices._spmd.process_groups import ProcessMap

IndexGroups = tuple[tuple[int, ...], ...]
_SPLIT = object()  # in the key of a collective over groups of an axis; not a name, so that it differs from other keys


class Groups:
    """How a collective divides the participants into disjoint groups, and the place of each participant."""

    __slots__ = ("across", "cross_part", "identity", "is_whole", "of", "parts")

    def __init__(self, groups: list[tuple[int, ...]], participants: int, process_map: ProcessMap | None = None) -> None:
        """`groups` are of participants of all processes, `participants` is how many run here."""
        self.across = None if process_map is None else process_map.cross_groups(groups)
        self.of: list[Group] = [Group(self, (), 0, 0, 0)] * participants
        self.parts: list[tuple[int, ...]] = []  # participants that meet in this process
        self.cross_part = -1  # the part whose members all meet those of other processes, at once
        cross_groups = () if self.across is None else self.across.groups
        cross_members = {group.members for group in cross_groups}
        slot_of: Any = range(participants) if process_map is None else process_map.slot_of
        for members in groups:
            slots = tuple(slot_of[i] for i in members if i in slot_of)
            if slots and members not in cross_members:
                for index, slot in enumerate(slots):
                    self.of[slot] = Group(self, slots, len(self.parts), index, len(members))
                self.parts.append(slots)
        if self.across is not None:
            self.cross_part = len(self.parts)
            for group in cross_groups:
                for index, slot in group.here.items():
                    self.of[slot] = Group(self, self.across.slots, self.cross_part, index, len(group.members))
            self.parts.append(self.across.slots)
        self.identity = "" if self.across is None else repr(groups)  # the same in all processes
        self.is_whole = self.parts == [tuple(range(participants))]  # all meet, in their order


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The group of one participant in one collective."""

    groups: Groups
    members: tuple[int, ...]  # of this process
    part: int  # its number among the parts of `groups`
    index: int  # of the participant in the group
    size: int  # members in all processes


def names_of(axis_name: Any) -> tuple[Hashable, ...]:
    """The names as a tuple: one name, or several in a tuple or list."""
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def require(operation: str, axis_name: Any) -> Participant:
    """The participant of the calling body; NameError outside shard_map and pmap, where no axis is bound."""
    me = _current.get()
    if me is None:
        raise NameError(
            f"{operation}: unbound axis name {safe_repr(axis_name)}; expected a call inside the body of shard_map or "
            "pmap, which bind axis names; none is running"
        )
    return me


def group_of(operation: str, axis_name: Any, index_groups: Any = None) -> Group:
    """The calling body's group in a collective over these axes, whose members are row-major over the axes as named.

    NameError as `require`, and for a name that the body does not bind; ValueError for a repeated name, or
    axis_index_groups that do not hold each member once.
    """
    me = require(operation, axis_name)
    if type(axis_name) is list:
        axis_name = tuple(axis_name)
    split = None
    key = axis_name
    if index_groups is not None:
        listed = check_sequence(operation, "axis_index_groups", index_groups, "lists of ints", "write [[0, 1], [2, 3]]")
        split = tuple(
            check_sequence_of_ints(operation, f"axis_index_groups[{i}]", each, "write [0, 1]")
            for i, each in enumerate(listed)
        )
        key = (_SPLIT, axis_name, split)
    groups: dict[Any, Groups] = me.program.groups
    made = groups.get(key)
    if made is None:
        made = groups[key] = _all_groups(operation, me, names_of(axis_name), split)
    return made.of[me.position]


def _all_groups(
    operation: str, me: Participant, names: tuple[Hashable, ...], index_groups: IndexGroups | None
) -> Groups:
    program = me.program
    if program.any_name and len(names) == 1 and names[0] not in program.axis_names:
        names = program.axis_names
    unbound = [name for name in names if name not in program.axis_names]
    if unbound:
        bound = ", ".join(repr(name) for name in program.axis_names)
        raise NameError(
            f"{operation}: unbound axis name {safe_repr(unbound[0])}; expected one of the axes bound by "
            f"{program.operation}: {bound or 'none'}; check its spelling and axis_names="
        )
    if len(set(names)) != len(names):
        raise ValueError(f"{operation}: an axis name is repeated; expected each once, got {names}; drop one")
    axes = [program.axis_names.index(name) for name in names]
    groups = list(_core._axis_groups(program.axis_sizes, axes))
    if index_groups is not None:
        groups = [part for members in groups for part in _split(operation, members, index_groups)]
    return Groups(groups, len(program.device_names), program.process_map)


def _split(operation: str, members: Sequence[int], index_groups: IndexGroups) -> list[tuple[int, ...]]:
    groups = [list(group) for group in index_groups]
    if sorted(itertools.chain(*index_groups)) != list(range(len(members))):
        raise ValueError(
            f"{operation}: axis_index_groups do not cover the axis; expected each of 0 to {len(members) - 1} in one "
            f"group, got {groups}; list every index once"
        )
    if len({len(group) for group in index_groups}) > 1:
        raise ValueError(
            f"{operation}: axis_index_groups differ in size; expected groups of one size, got {groups}; make them equal"
        )
    return [tuple(members[i] for i in group) for group in index_groups]
