# SPDX-License-Identifier: Apache-2.0
"""Axis names in a body: which participants they bring together, in which order."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from artifex_devices._base.safe_repr import shown
from artifex_devices._spmd.participant import Participant, _current
from artifex_devices._spmd.process_groups import Spread, members_of_axes
from artifex_devices._spmd.whole_numbers import numbers_in

__all__ = ["Group", "Groups", "group_of", "names_of", "require"]


class Groups:
    """How a collective divides the participants: parts that do not meet, and each participant's place."""

    __slots__ = ("crossing", "identity", "is_whole", "of", "parts", "span")

    def __init__(self, parts: list[tuple[int, ...]], participants: int, spread: Spread | None = None) -> None:
        """Each part has participants in the order of the collective; together all, each once.

        Args:
            parts: The groups, of participants of all processes.
            participants: How many run here.
            spread: Who runs where, unless all run here.
        """
        self.span = None if spread is None else spread.span_of(parts)
        self.of: list[Group] = [Group(self, (), 0, 0, 0)] * participants
        self.parts: list[tuple[int, ...]] = []  # who meets whom in this process
        self.crossing = -1  # the part whose members meet those of other processes, in one go
        crossing = () if self.span is None else self.span.parts
        beyond = {part.members for part in crossing}
        for members in parts:
            slots = members if spread is None else tuple(spread.slot_of[i] for i in members if i in spread.slot_of)
            if slots and members not in beyond:
                for index, slot in enumerate(slots):
                    self.of[slot] = Group(self, slots, len(self.parts), index, len(members))
                self.parts.append(slots)
        if self.span is not None:
            self.crossing = len(self.parts)
            for part in crossing:
                for index, slot in part.mine.items():
                    self.of[slot] = Group(self, self.span.slots, self.crossing, index, len(part.members))
            self.parts.append(self.span.slots)
        self.identity = "" if self.span is None else repr(parts)  # the same in all processes
        self.is_whole = self.parts == [tuple(range(participants))]  # all meet, in their order


class Group:
    """One collective for one participant: whom it meets, and who it is there."""

    __slots__ = ("groups", "index", "members", "part", "size")

    def __init__(self, groups: Groups, members: tuple[int, ...], part: int, index: int, size: int) -> None:
        """Who meets in this process, the number of this part, and which of how many members this participant is."""
        self.groups = groups
        self.members = members
        self.part = part
        self.index = index
        self.size = size


def names_of(axis_name: Any) -> tuple[Hashable, ...]:
    """The names as a tuple: one name, or several in a tuple or list."""
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def require(operation: str, axis_name: Any) -> Participant:
    """The participant of the calling body.

    Raises:
        NameError: There is none, as outside shard_map and pmap no axis is bound.
    """
    me = _current.get()
    if me is None:
        raise NameError(
            f"{operation}: unbound axis name {shown(axis_name)}; expected a call inside the body of shard_map or pmap, "
            "which bind axis names; none is running"
        )
    return me


def group_of(operation: str, me: Participant, axis_name: Any, index_groups: Any = None) -> Group:
    """Who takes part in a collective over these axes.

    Members are numbered row-major over the axes in the order in which they are named.

    Raises:
        NameError: A name is not bound in the body.
        ValueError: A name comes twice; axis_index_groups do not hold each member once.
    """
    if type(axis_name) is list:
        axis_name = tuple(axis_name)
    # Names are never _Split, so that keys with and without groups are told apart.
    split = None if index_groups is None else _as_groups(operation, index_groups)
    key = axis_name if split is None else _Split((axis_name, split))
    groups: dict[Any, Groups] = me.program.groups
    made = groups.get(key)
    if made is None:
        made = groups[key] = _all_groups(operation, me, names_of(axis_name), split)
    return made.of[me.position]


def _as_groups(operation: str, index_groups: Any) -> tuple[tuple[int, ...], ...]:
    if isinstance(index_groups, str) or not isinstance(index_groups, Iterable):
        raise TypeError(
            f"{operation}: axis_index_groups is of type {type(index_groups).__name__}; expected lists of ints, got "
            f"{shown(index_groups)}; write [[0, 1], [2, 3]]"
        )
    return tuple(
        tuple(numbers_in(operation, f"axis_index_groups[{place}]", group)) for place, group in enumerate(index_groups)
    )


class _Split(tuple[Any, ...]):
    """Key of a collective over groups of an axis."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is _Split and tuple.__eq__(self, other)

    def __hash__(self) -> int:
        return tuple.__hash__(self)


def _all_groups(
    operation: str, me: Participant, names: tuple[Hashable, ...], index_groups: tuple[tuple[int, ...], ...] | None
) -> Groups:
    program = me.program
    if program.any_name and len(names) == 1 and names[0] not in program.axis_names:
        names = program.axis_names
    unbound = [name for name in names if name not in program.axis_names]
    if unbound:
        bound = ", ".join(repr(name) for name in program.axis_names)
        raise NameError(
            f"{operation}: unbound axis name {shown(unbound[0])}; expected one of the axes bound by "
            f"{program.operation}: {bound or 'none'}; check its spelling and axis_names="
        )
    if len(set(names)) != len(names):
        raise ValueError(f"{operation}: an axis name comes twice; expected each once, got {names}; drop one")
    parts = [
        part
        for members in members_of_axes(names, program.axis_names, program.axis_sizes)
        for part in _split(operation, members, index_groups)
    ]
    return Groups(parts, len(program.device_names), program.spread)


def _split(
    operation: str, members: tuple[int, ...], index_groups: Sequence[Sequence[int]] | None
) -> list[tuple[int, ...]]:
    if index_groups is None:
        return [members]
    if sorted(itertools.chain(*index_groups)) != list(range(len(members))):
        raise ValueError(
            f"{operation}: axis_index_groups do not cover the axis; expected each of 0 to {len(members) - 1} in one "
            f"group, got {[list(group) for group in index_groups]}; list every index once"
        )
    if len({len(group) for group in index_groups}) > 1:
        raise ValueError(
            f"{operation}: axis_index_groups differ in size; expected groups of one size, got "
            f"{[list(group) for group in index_groups]}; make them equal"
        )
    return [tuple(members[i] for i in group) for group in index_groups]
