# SPDX-License-Identifier: Apache-2.0
"""Collectives between processes: the last participant to arrive in this process exchanges blocks for all of them.

Results are those of one process, bit for bit: blocks are sent unchanged and combined where they are needed, or sums
pass from process to process in the order of the members (`chain`).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._base.clearable_cache import remember
from artifex_devices._spmd.arguments import empty
from artifex_devices._spmd.block_exchange import Key, PayloadBlocks, exchange, payload_blocks
from artifex_devices._spmd.process_groups import CrossGroup, ProcessGroups, ProcessMap

if TYPE_CHECKING:
    from artifex_devices._spmd.participant import Meeting
    from artifex_devices._spmd.program import Program
    from artifex_devices.distributed.transport import Transport

Leaves = list[NDArray[Any]]


class CrossProcessOp(NamedTuple):
    """The blocks that a member of a collective needs of members in other processes, and its result."""

    # sources(index, size): the members whose blocks it needs, in the order in which `finish` gets them; None for all.
    sources: Callable[[int, int], Sequence[int]] | None = None
    # pick(block, index, size): the piece that it needs of each block; None for entire blocks.
    pick: Callable[[NDArray[Any], int, int], NDArray[Any]] | None = None
    # finish(index, blocks): its result; None for the function that computes a group in one process.
    finish: Callable[[int, list[Leaves]], Leaves] | None = None
    reduction: str = ""  # "sum", "prod", "max" or "min", where all blocks are combined into one
    # share(total, size): what each member gets of that one, which the caller owns.
    share: Callable[[Leaves, int], Sequence[Leaves]] = lambda total, size: [total] * size
    by_rows: bool = False  # `share` divides the leading dimension equally, also the rows of some members
    is_shared: bool = False  # all members get the same arrays

    @property
    def is_plain(self) -> bool:
        """Whether all members need all entire blocks."""
        return self.sources is None and self.pick is None

    def members_for(self, index: int, size: int) -> Sequence[int]:
        """The members whose blocks a member needs."""
        return range(size) if self.sources is None else self.sources(index, size)

    def key(self, member: int, index: int) -> Key:
        """Key of what member `index` needs of another member."""
        return member, index if self.pick is not None else -1

    def picked(self, leaves: Leaves, index: int, size: int) -> Leaves:
        """What a member needs of a block."""
        return leaves if self.pick is None else [self.pick(leaf, index, size) for leaf in leaves]


_PLAIN = CrossProcessOp()
_Blocks = dict[int, list[tuple[int, Key]]]  # by process: numbers of groups, and keys of blocks


def complete(program: Program, meeting: Meeting, position: int, payloads: list[Any]) -> list[Leaves]:
    """The results of all participants of this process that meet others, from their blocks in the order of the slots.

    `position` is the slot of the participant that came last. CollectiveError where the processes do not come to the
    same collective, one has failed or is gone, or the deadline is over.
    """
    process_map, across = program.process_map, meeting.groups.across
    assert process_map is not None
    assert across is not None
    text, digest, small = _described(program, meeting, position, across, payloads[0])
    transport = transport_of(process_map, text)
    program.unmet = across.processes
    if small is not None:
        received = transport.agree(text, digest, across.processes, small.packed(payloads))
        _met(program, transport)
        results = small.completed(meeting.complete, payloads, received)
    else:
        with transport.exclusive(text):
            transport.agree(text, digest, across.processes)
            _met(program, transport)
            results = _exchanged(process_map, across, meeting, payloads, transport, text)
    if meeting.op is not None and meeting.op.is_shared:
        for group, positions in zip(across.groups, across.positions, strict=True):
            first = results[positions[0]]
            for i in positions:
                if results[i] is not first:
                    break
            else:
                program.keep_common(first, group.members)
    return results


def _met(program: Program, transport: Transport) -> None:
    """Notes that the other processes have come."""
    program.unmet = None
    if _core._is_tracing():
        program.traced_meeting = transport.traced_meetings.get(get_ident(), 0)


def _described(
    program: Program, meeting: Meeting, position: int, across: ProcessGroups, block: Any
) -> tuple[str, bytes, PayloadBlocks | None]:
    """Text and digest of this collective of blocks like this one, and their places in the payload where they fit.

    TypeError for leaves of dtypes that cannot be sent.
    """
    me = program.participants[position]
    code = me._code
    key = (program.operation, meeting.signature, id(code), me._instruction)
    known = across.routes.get(key)
    if known is None:
        what = program.text_of(meeting)
        leaves = block if type(block) is list else [block]
        for leaf in leaves:
            empty(what.split()[0], (0,), leaf.dtype)
        digest = digest_of(f"{program.operation} {what} {meeting.groups.identity}")
        text = f"{program.operation}: {what} at {me.site}"
        assert program.process_map is not None
        max_payload = transport_of(program.process_map, text).max_payload(across.processes)
        is_plain = (meeting.op or _PLAIN).is_plain
        small = payload_blocks(across, program.process_map.me, leaves, max_payload) if is_plain else None
        known = remember(across.routes, key, (text, digest, small, code))  # the code stays alive, and its id unique
    text, digest, small, _ = known
    return text, digest, small


def transport_of(process_map: ProcessMap, operation: str) -> Transport:
    """The transport to the other processes; RuntimeError where there is none."""
    return _installed().get(process_map.client_uid) or _of_client()(process_map.client, operation)


@functools.cache
def _installed() -> Mapping[int, Transport]:
    from artifex_devices.distributed.transport import installed  # late: programs of one process do not need it

    return installed


@functools.cache
def _of_client() -> Callable[..., Transport]:
    from artifex_devices.distributed.transport import of_client

    return of_client


def digest_of(identity: str) -> bytes:
    """A digest of 32 bytes."""
    return hashlib.blake2b(identity.encode(), digest_size=32).digest()


def _exchanged(
    process_map: ProcessMap,
    across: ProcessGroups,
    meeting: Meeting,
    payloads: list[Any],
    transport: Transport,
    text: str,
) -> list[Leaves]:
    """The result of each slot, by messages."""
    op = meeting.op or _PLAIN
    blocks = {
        slot: payload if type(payload) is list else [payload]
        for slot, payload in zip(across.slots, payloads, strict=True)
    }
    made = _completed(process_map, across, op, meeting, blocks, transport, text)
    return [made[slot] for slot in across.slots]


def _completed(
    process_map: ProcessMap,
    across: ProcessGroups,
    op: CrossProcessOp,
    meeting: Meeting,
    blocks: dict[int, Leaves],
    transport: Transport,
    text: str,
) -> dict[int, Leaves]:
    """The result of each slot, by messages."""
    groups = across.groups
    template = next(iter(blocks.values()))
    if op.reduction:
        from artifex_devices._spmd import chain

        if chain.is_worth(template, across, transport):
            totals = chain.run(process_map.me, groups, blocks, op.reduction, transport, text, op.by_rows)
            results: dict[int, Leaves] = {}
            for group, total in zip(groups, totals, strict=True):
                if op.by_rows and chain.has_rows(group):
                    results.update(zip(group.here.values(), op.share(total, len(group.here)), strict=True))
                    continue
                made = op.share(total, len(group.members))
                results.update((slot, made[index]) for index, slot in group.here.items())
            return results
    sends, receives = _route(op, across, process_map.me)

    def picked(leaves: Leaves, number: int, index: int) -> Leaves:
        return op.picked(leaves, index, len(groups[number].members))

    sent = {
        peer: [leaf for n, (member, index) in keys for leaf in picked(blocks[groups[n].here[member]], n, index)]
        for peer, keys in sends.items()
    }
    kinds = {
        peer: [(leaf.shape, leaf.dtype) for n, (_, index) in keys for leaf in picked(template, n, index)]
        for peer, keys in receives.items()
    }
    arrived = exchange(transport, text, sent, kinds)
    count = len(template)
    received: list[dict[Key, Leaves]] = [{} for _ in groups]
    for peer, keys in receives.items():
        for i, (number, key) in enumerate(keys):
            received[number][key] = arrived[peer][i * count : (i + 1) * count]
    return _results(op, meeting, across, blocks, received)


def _route(op: CrossProcessOp, across: ProcessGroups, me: int) -> tuple[_Blocks, _Blocks]:
    """What this process sends to and receives from each process."""
    if op.is_plain and "all" in across.routes:  # the same at each call
        known: tuple[_Blocks, _Blocks] = across.routes["all"]
        return known
    sends: _Blocks = {}
    receives: _Blocks = {}
    for number, group in enumerate(across.groups):
        for peer in group.processes:
            if peer == me:
                continue
            for found, sender, receiver in ((sends, me, peer), (receives, peer, me)):
                keys = [(number, key) for key in _keys(op, group, sender, receiver)]
                if keys:
                    found.setdefault(peer, []).extend(keys)
    if op.is_plain:
        across.routes["all"] = sends, receives
    return sends, receives


def _keys(op: CrossProcessOp, group: CrossGroup, sender: int, receiver: int) -> list[Key]:
    """What one process sends to another, in an order that both know."""
    found: dict[Key, None] = {}
    held = group.held[receiver]
    for index in held:
        for member in op.members_for(index, len(group.members)):
            if group.owners[member] == sender and member not in held:
                found[op.key(member, index)] = None
    return list(found)


def _results(
    op: CrossProcessOp,
    meeting: Meeting,
    across: ProcessGroups,
    blocks: dict[int, Leaves],
    received: list[dict[Key, Leaves]],
) -> dict[int, Leaves]:
    """The result of each slot, from the blocks of this process by slot and the received ones of each group."""
    results: dict[int, Leaves] = {}
    for group, there in zip(across.groups, received, strict=True):
        here = {index: blocks[slot] for index, slot in group.here.items()}
        size = len(group.members)
        if op.finish is None:
            made = meeting.complete([here[i] if i in here else there[i, -1] for i in range(size)])
            results.update((slot, made[index]) for index, slot in group.here.items())
            continue
        for index, slot in group.here.items():
            needed = [
                op.picked(here[member], index, size) if member in here else there[op.key(member, index)]
                for member in op.members_for(index, size)
            ]
            results[slot] = op.finish(index, needed)
    return results
