# SPDX-License-Identifier: Apache-2.0
"""Which process runs which participants of a mesh, and which processes a collective brings together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

__all__ = ["CrossingPart", "Span", "Spread", "coordinates_of", "members_of_axes"]


def coordinates_of(sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Where each participant lies, row-major."""
    return tuple(itertools.product(*(range(size) for size in sizes)))


def members_of_axes(
    names: Sequence[Hashable], axis_names: Sequence[Hashable], sizes: Sequence[int]
) -> list[tuple[int, ...]]:
    """The groups of participants that differ along these axes only, each row-major over them as they are named."""
    where = [axis_names.index(name) for name in names]
    strides = [math.prod(sizes[d + 1 :]) for d in range(len(sizes))]
    parts = []
    for first, coordinates in enumerate(coordinates_of(sizes)):
        if any(coordinates[d] for d in where):
            continue
        offsets = itertools.product(*(range(sizes[d]) for d in where))
        parts.append(tuple(first + sum(c * strides[d] for c, d in zip(o, where, strict=True)) for o in offsets))
    return parts


class CrossingPart(NamedTuple):
    """One group of a collective that has members in several processes, some of them in this one."""

    members: tuple[int, ...]  # participants, in the order of the collective
    owners: tuple[int, ...]  # the process whose block of each member counts
    mine: dict[int, int]  # what this process runs: index in the group -> slot
    processes: tuple[int, ...]  # all that run a member
    held: dict[int, tuple[int, ...]]  # by these: which members they run


class Span(NamedTuple):
    """The processes that one kind of collective brings together with this one, and what they have in common."""

    processes: tuple[int, ...]  # ascending; linked by groups, so that all of them meet at once
    parts: tuple[CrossingPart, ...]  # with members in this process
    slots: tuple[int, ...]  # all that this process runs of these groups
    is_even: bool  # whether each of these processes runs a member of each of these groups, so that all know all of them
    in_runs: bool  # whether the members of each process follow each other in every group, here and elsewhere
    routes: dict[Any, Any]  # what goes where, by what is needed; kept by across.py


class Spread:
    """The participants of a mesh over processes.

    A slot is the number of a participant among those that this process runs.

    Example: two processes with two devices each, one axis of four: in process 1 `here` is (2, 3).
    """

    __slots__ = ("_compared", "client", "coordinates", "endings", "here", "holders", "me", "processes", "slot_of")

    def __init__(self, client: Any, sizes: Sequence[int], holders: Sequence[tuple[int, ...]]) -> None:
        """`holders`: the processes that run each participant, ascending; the first one's block counts."""
        self.client = client
        self.me: int = client.process_index()
        self.holders = tuple(holders)
        self.processes = tuple(sorted({process for each in holders for process in each}))
        self.here = tuple(i for i, each in enumerate(holders) if self.me in each)
        self.slot_of = {participant: slot for slot, participant in enumerate(self.here)}
        everybody = coordinates_of(sizes)
        self.coordinates = tuple(everybody[i] for i in self.here)
        self.endings: dict[Any, tuple[str, bytes]] = {}  # what calls return, by what it is; kept by ending.py
        self._compared: dict[tuple[Hashable, ...], Span | None] = {}

    def span_of(self, parts: Sequence[tuple[int, ...]]) -> Span | None:
        """What of these groups goes beyond this process; None where all of ours are within it."""
        linked: dict[int, set[int]] = {}
        reach = [tuple(sorted({process for i in part for process in self.holders[i]})) for part in parts]
        for processes in reach:
            if len(processes) > 1:
                whole = set(processes).union(*(linked.get(process, ()) for process in processes))
                for process in whole:
                    linked[process] = whole
        if self.me not in linked:
            return None
        crossing = [
            CrossingPart(
                part,
                tuple(self.holders[i][0] for i in part),
                {index: self.slot_of[i] for index, i in enumerate(part) if i in self.slot_of},
                processes,
                {p: tuple(index for index, i in enumerate(part) if p in self.holders[i]) for p in processes},
            )
            for part, processes in zip(parts, reach, strict=True)
            if len(processes) > 1 and self.me in processes
        ]
        slots = sorted(slot for part in crossing for slot in part.mine.values())
        owners = [[self.holders[i][0] for i in part] for part in parts]
        in_runs = all(len(list(itertools.groupby(each))) == len(set(each)) for each in owners)
        is_even = all(set(each) == linked[self.me] for each in reach if len(each) > 1 and each[0] in linked[self.me])
        return Span(tuple(sorted(linked[self.me])), tuple(crossing), tuple(slots), is_even, in_runs, {})

    def compared(self, named: Sequence[Hashable], axis_names: Sequence[Hashable], sizes: Sequence[int]) -> Span | None:
        """The processes that have the same parts of a value cut over `named`.

        None where no other process has any, or where each has a mixture of its own: then only what is here is compared.
        """
        key = tuple(named)
        if key not in self._compared:
            unnamed = [name for name in axis_names if name not in key]
            groups = members_of_axes(unnamed, axis_names, sizes) if unnamed else []
            span = self.span_of(groups)
            if span is not None:
                holders = [{p for i in part for p in self.holders[i]} for part in groups]
                if len({frozenset(n for n, held in enumerate(holders) if p in held) for p in span.processes}) > 1:
                    span = None
            self._compared[key] = span
        return self._compared[key]

    def circles(self, axis_names: Sequence[Hashable], sizes: Sequence[int]) -> list[tuple[int, ...]]:
        """Every set of processes that collectives over axes of this mesh bring together with this one."""
        found = {self.processes: None}
        for count in range(1, len(axis_names) + 1):
            for names in itertools.combinations(axis_names, count):
                span = self.span_of(members_of_axes(names, axis_names, sizes))
                if span is not None:
                    found.setdefault(span.processes)
        return list(found)
