# SPDX-License-Identifier: Apache-2.0
"""Axis names in a body: which participants they bring together, in which order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from typing import Any

from artifex_devices.spmd.participant import Participant, _current

__all__ = ["Group", "Groups", "group_of", "names_of", "require"]


class Groups:
    """How a collective divides the participants: parts that do not meet, and each participant's place."""

    __slots__ = ("of", "parts")

    def __init__(self, parts: list[tuple[int, ...]], participants: int) -> None:
        """Each part has positions in the order of the collective; together all participants, each once."""
        self.parts = parts
        self.of: list[Group] = [Group(self, (), 0, 0)] * participants
        for number, members in enumerate(parts):
            for index, member in enumerate(members):
                self.of[member] = Group(self, members, number, index)


class Group:
    """The members of one collective for one participant."""

    __slots__ = ("groups", "index", "members", "part")

    def __init__(self, groups: Groups, members: tuple[int, ...], part: int, index: int) -> None:
        """Positions in the order of the collective, the number of this part, and which member this participant is."""
        self.groups = groups
        self.members = members
        self.part = part
        self.index = index


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
            f"{operation}: unbound axis name {axis_name!r}; expected a call inside the body of shard_map or pmap, "
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
    split = None if index_groups is None else tuple(tuple(group) for group in index_groups)
    key = axis_name if split is None else _Split((axis_name, split))
    groups: dict[Any, Groups] = me.program.groups
    made = groups.get(key)
    if made is None:
        made = groups[key] = _all_groups(operation, me, names_of(axis_name), split)
    return made.of[me.position]


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
            f"{operation}: unbound axis name {unbound[0]!r}; expected one of the axes bound by {program.operation}: "
            f"{bound or 'none'}; check its spelling and axis_names="
        )
    if len(set(names)) != len(names):
        raise ValueError(f"{operation}: an axis name comes twice; expected each once, got {names}; drop one")
    where = [program.axis_names.index(name) for name in names]
    sizes = [program.axis_sizes[d] for d in where]
    strides = [math.prod(program.axis_sizes[d + 1 :]) for d in range(len(program.axis_sizes))]
    parts: list[tuple[int, ...]] = []
    for position, coordinates in enumerate(program.coordinates):
        if any(coordinates[d] for d in where):
            continue  # not the first member of its group
        offsets = itertools.product(*(range(size) for size in sizes))
        members = tuple(
            position + sum(c * strides[d] for c, d in zip(offset, where, strict=True)) for offset in offsets
        )
        parts += _split(operation, members, index_groups)
    return Groups(parts, len(program.participants))


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
