# SPDX-License-Identifier: Apache-2.0
"""Divides the participants of a collective into groups, with the place of each participant in its group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from artifex_devices._spmd.process_groups import ProcessMap


class AxisGroups:
    """The disjoint groups of participants that a collective over some axes brings together."""

    __slots__ = ("across", "cross_part", "identity", "is_whole", "of", "parts")

    def __init__(self, groups: list[tuple[int, ...]], participants: int, process_map: ProcessMap | None = None) -> None:
        """`groups` are of participants of all processes, `participants` is how many run here."""
        self.across = None if process_map is None else process_map.cross_groups(groups)
        self.of: list[Membership] = [Membership(self, (), 0, 0, 0)] * participants
        self.parts: list[tuple[int, ...]] = []  # groups of participants within this process
        self.cross_part = -1  # the part whose members all exchange with other processes, in one operation
        cross_groups = () if self.across is None else self.across.groups
        cross_members = {group.members for group in cross_groups}
        slot_of: Any = range(participants) if process_map is None else process_map.slot_of
        for members in groups:
            slots = tuple(slot_of[i] for i in members if i in slot_of)
            if slots and members not in cross_members:
                for index, slot in enumerate(slots):
                    self.of[slot] = Membership(self, slots, len(self.parts), index, len(members))
                self.parts.append(slots)
        if self.across is not None:
            self.cross_part = len(self.parts)
            for group in cross_groups:
                for index, slot in group.here.items():
                    self.of[slot] = Membership(self, self.across.slots, self.cross_part, index, len(group.members))
            self.parts.append(self.across.slots)
        self.identity = "" if self.across is None else repr(groups)  # the same in all processes
        self.is_whole = self.parts == [tuple(range(participants))]  # all are one group, in their order


@dataclass(frozen=True, slots=True, eq=False)
class Membership:
    """The group of one participant in one collective."""

    groups: AxisGroups
    members: tuple[int, ...]  # of this process
    part: int  # its number among the parts of `groups`
    index: int  # of the participant in the group
    size: int  # members in all processes
