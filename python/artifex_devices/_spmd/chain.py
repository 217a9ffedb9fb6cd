# SPDX-License-Identifier: Apache-2.0
"""Big reductions between processes: sums pass along a chain of processes in pieces, in the order of the members.

The additions have the same order as in one process, and so every bit of the result is the same. While one process adds
a piece, the process before it adds the next one, and finished pieces travel back. The core does all of it. Between
processes that share memory it passes the pieces on itself (`internal.Chain`); otherwise they are messages
(`internal.MessageChain`).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices._base.raised_exceptions import context_manager
from artifex_devices._core import internal
from artifex_devices._spmd.process_groups import CrossProcessGroup, CrossProcessGroups
from artifex_devices.distributed.tags import Tag
from artifex_devices.distributed.transport import Exchange

if TYPE_CHECKING:
    from artifex_devices.distributed.local_peers import LocalPeers
    from artifex_devices.distributed.transport import Transport

Leaves = list[NDArray[Any]]
_MIN_SHARED_BYTES = 1 << 13  # of a block, where memory is shared; smaller ones fit into the meeting
_ADVANCE_S = 200e-6  # how long the core waits for others before it returns to Python, which checks the peers
_MIN_BYTES = 1 << 17  # of a block; smaller ones are sent whole: measured, 2 processes on a 2-core EPYC, MPICH 5
_PIECE_BYTES = 1 << 19  # measured there: 256 KiB takes 1.4 times as long for 16 MiB, 1 MiB up to 2.3 times
_AHEAD = 4  # pieces in flight in each direction


def is_worth(leaves: Leaves, across: CrossProcessGroups, transport: Transport) -> bool:
    """Returns whether blocks like these are reduced along a chain; the same in all processes."""
    minimum = _MIN_BYTES if transport.local_peers(across.processes) is None else _MIN_SHARED_BYTES
    return across.in_runs and all(leaf.nbytes >= minimum for leaf in leaves)


def has_rows(group: CrossProcessGroup) -> bool:
    """Returns whether each process runs the members whose blocks count, and no others."""
    return all(len(group.held[process]) == group.owners.count(process) for process in group.processes)


def run(
    me: int,
    groups: Sequence[CrossProcessGroup],
    blocks_of: dict[int, Leaves],
    reduction: str,
    transport: Transport,
    text: str,
    by_rows: bool = False,
) -> list[Leaves]:
    """Computes the result of each group, leaf by leaf, from the blocks of each slot.

    With `by_rows`, where a group `has_rows`, each process gets only the rows of the leading dimension that its members
    have when they share them equally.
    """
    totals: list[Leaves] = []
    for group in groups:
        owners = list(dict.fromkeys(group.owners))
        order = [*owners, *(process for process in group.processes if process not in owners)]
        mine = [blocks_of[group.here[i]] for i, owner in enumerate(group.owners) if owner == me]
        template = blocks_of[next(iter(group.here.values()))]
        local_peers = transport.local_peers(group.processes)
        place = order.index(me)
        before = order[place - 1] if place > 0 else None
        after = order[place + 1] if place + 1 < len(order) else None
        made = []
        for i, leaf in enumerate(template):
            blocks = [np.ascontiguousarray(leaves[i]).reshape(-1) for leaves in mine]
            begin, passed_on, shape = _share_of(group, me, leaf, by_rows and has_rows(group))
            with _reported(transport, text):
                out: NDArray[Any] = internal.host_empty(shape, leaf.dtype)
            part = (reduction, blocks, out.reshape(-1), begin, passed_on)
            if local_peers is not None:
                _run_shared(before, after, local_peers, part, transport, text)
            else:
                piece_bytes = min(_PIECE_BYTES, leaf.size * max(4, leaf.itemsize))  # half precision travels as float32
                _run_by_messages(before, after, piece_bytes, part, transport, text)
            made.append(out)
        totals.append(made)
    return totals


def _share_of(
    group: CrossProcessGroup, me: int, template: NDArray[Any], is_row: bool
) -> tuple[int, int, tuple[int, ...]]:
    """Returns the first element of a process's part, the end of the parts of processes before it, and the shape."""
    if not is_row:
        return 0, template.size, template.shape
    begin = template.size // len(group.members) * group.owners.index(me)
    rows = template.shape[0] // len(group.members) * group.owners.count(me)
    return begin, begin, (rows, *template.shape[1:])


@context_manager
def _reported(transport: Transport, text: str) -> Generator[None, None, None]:
    """Reports an error to the other processes, which have begun their parts, and would wait."""
    try:
        yield
    except BaseException as error:
        transport.fail(f"{type(error).__name__} in {text}: {error}")
        raise


def _run_shared(
    before: int | None,
    after: int | None,
    local_peers: LocalPeers,
    part: tuple[Any, ...],
    transport: Transport,
    text: str,
) -> None:
    """Computes this process's part, by memory that the processes share."""
    with _reported(transport, text):
        places = [-1 if process is None else local_peers.places[process] for process in (before, after)]
        chain = local_peers.channels.chain(places[0], places[1], *part)
    transport.wait_until(lambda: chain.advance(_ADVANCE_S), text, part[2].nbytes)


def _run_by_messages(
    before: int | None, after: int | None, piece_bytes: int, part: tuple[Any, ...], transport: Transport, text: str
) -> None:
    """Computes this process's part, by messages."""
    channels = [
        (Exchange.receive, before, Tag.CHAIN_ON),
        (Exchange.send, after, Tag.CHAIN_ON),
        (Exchange.receive, after, Tag.CHAIN_BACK),
        (Exchange.send, before, Tag.CHAIN_BACK),
    ]
    with _reported(transport, text):
        memory = [
            None if peer is None else internal.host_empty((_AHEAD, piece_bytes), "uint8") for _, peer, _ in channels
        ]
        chain = internal.MessageChain(memory, *part)
    with transport.exchange(text) as messages:
        while True:
            is_done = chain.advance()
            for channel, number, size in chain.begin_messages():
                start, peer, tag = channels[channel]
                start(messages, memory[channel][number % _AHEAD, :size], peer, tag, (channel, number))
            if is_done and not messages:
                return
            for channel, number in messages.wait_some():
                chain.ended(channel, number)
