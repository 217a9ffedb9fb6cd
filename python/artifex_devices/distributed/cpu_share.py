# SPDX-License-Identifier: Apache-2.0
"""Which cores each process of a machine has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from artifex_devices._base.text import cpu_list

__all__ = ["Place", "Share", "plan_shares"]


class Place(NamedTuple):
    """Where a process was started: its machine, and the CPUs that its affinity mask allows, ascending."""

    machine: str
    cpus: tuple[int, ...]


class Share(NamedTuple):
    """What a process takes of its affinity mask: part `part` of `parts`; the processes `together` split it."""

    part: int
    parts: int
    together: tuple[int, ...]


def plan_shares(places: Sequence[Place], bind_flag: str) -> list[Share]:
    """Says for each process which part of its CPUs is its own.

    Processes with the same mask split it, in order of their numbers. Those that the launcher has bound apart keep what
    they have.

    Args:
        places: Where each process is, by number.
        bind_flag: The launcher's flag that binds processes, for the message.

    Returns:
        A Share for each process.

    Raises:
        ValueError: Masks overlap without being equal; all such pairs are named.

    Example:
        >>> from artifex_devices.distributed.cpu_share import Place, plan_shares
        >>> plan_shares([Place("a", (0, 1)), Place("a", (0, 1)), Place("b", (0, 1))], "-bind-to core")[1]
        Share(part=1, parts=2, together=(0, 1))
    """
    groups: dict[Place, list[int]] = {}
    for process, place in enumerate(places):
        groups.setdefault(place, []).append(process)
    overlaps = []
    known = list(groups)
    for i, one in enumerate(known):
        for other in known[i + 1 :]:
            if one.machine == other.machine and not set(one.cpus).isdisjoint(other.cpus):
                overlaps.append(
                    f"{_processes(groups[one])} on CPUs {cpu_list(one.cpus)}, "
                    f"{_processes(groups[other])} on CPUs {cpu_list(other.cpus)}"
                )
    if overlaps:
        raise ValueError(
            "distributed.initialize: processes of one machine were bound to CPUs that overlap; expected equal sets, "
            f"which are then split, or sets apart, got {'; '.join(overlaps)}; start them with {bind_flag}, or unbound"
        )
    shares = {}
    for members in groups.values():
        for part, process in enumerate(members):
            shares[process] = Share(part, len(members), tuple(members))
    return [shares[process] for process in range(len(places))]


def _processes(numbers: Sequence[int]) -> str:
    return ("process " if len(numbers) == 1 else "processes ") + cpu_list(numbers)
