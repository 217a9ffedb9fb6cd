# SPDX-License-Identifier: Apache-2.0
"""Which process runs which participants of a mesh, and which processes a collective brings together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from artifex_devices._core import internal

Groups = Sequence[tuple[int, ...]]


class CrossProcessGroup(NamedTuple):
    """One group of a collective with members in this process and in others."""

    members: tuple[int, ...]  # participants, in the order of the collective
    owners: tuple[int, ...]  # of each member: the process whose block counts
    here: dict[int, int]  # members of this process: index in the group -> slot
    processes: tuple[int, ...]  # all that run a member
    held: dict[int, tuple[int, ...]]  # of each of them: the indexes of the members that it runs


class CrossProcessGroups(NamedTuple):
    """The processes with which this process runs one kind of collective."""

    processes: tuple[int, ...]  # ascending; linked by groups, so all exchange in one operation
    groups: tuple[CrossProcessGroup, ...]  # groups with members in this process
    slots: tuple[int, ...]  # all that this process runs of these groups
    positions: tuple[tuple[int, ...], ...]  # of each group: where the slots of its `here` are among these
    is_even: bool  # each of these processes runs a member of each group that reaches them
    in_runs: bool  # the members of each process follow each other in every group, in all processes
    routes: dict[Any, Any]  # cache of cross_process.py: which blocks go where


def _from_core(fields: Any) -> CrossProcessGroups | None:
    if fields is None:
        return None
    processes, rows, slots, is_even, in_runs = fields
    groups = tuple(CrossProcessGroup(*row) for row in rows)
    positions = tuple(tuple(map(slots.index, group.here.values())) for group in groups)
    return CrossProcessGroups(processes, groups, slots, positions, is_even, in_runs, {})


class ProcessMap(internal.ProcessMap):
    """Which processes run the participants of a mesh.

    A slot is the number of a participant among the participants of this process.

    Example: two processes with two devices each, one axis of four: in process 1 `here` is (2, 3).
    """

    def __init__(self, client: Any, sizes: Sequence[int], holders: Groups) -> None:
        """`holders`: the processes that run each participant, ascending; the block of the first one counts."""
        self.client = client
        self.client_uid: int = client._uid
        self.me: int = client.process_index()
        super().__init__(self.me, sizes, holders)
        self.slot_of = {participant: slot for slot, participant in enumerate(self.here)}
        self.results: dict[Any, tuple[str, bytes]] = {}  # cache of result_check.py: descriptions of what calls return
        self._known_parts: dict[tuple[Hashable, ...], CrossProcessGroups | None] = {}

    def cross_groups(self, groups: Groups) -> CrossProcessGroups | None:
        """Returns the groups that span several processes, or None where all groups of this process are within it."""
        return _from_core(self.groups_across(groups))

    def sharers(self, named: Sequence[Hashable], axis_names: Sequence[Hashable]) -> CrossProcessGroups | None:
        """Returns the processes that hold the same parts of a value sharded over `named`.

        The result is None where no other process holds any, or where the processes hold different mixtures of parts.
        """
        key = tuple(named)
        if key not in self._known_parts:
            unnamed = [axis for axis, name in enumerate(axis_names) if name not in key]
            self._known_parts[key] = _from_core(self.same_parts(unnamed))
        return self._known_parts[key]
