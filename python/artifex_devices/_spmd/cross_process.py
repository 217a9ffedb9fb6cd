# SPDX-License-Identifier: Apache-2.0
"""Collectives between processes: the last participant to arrive in this process exchanges blocks for all of them.

Results equal the results in one process, bit for bit: blocks are sent unchanged and combined where they are needed, or
sums pass from process to process in the order of the members (`chain`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from threading import get_ident
from typing import TYPE_CHECKING, Any

from artifex_devices._base.clearable_cache import remember
from artifex_devices._base.digest import digest_of
from artifex_devices._core import internal
from artifex_devices._spmd.arguments import empty
from artifex_devices._spmd.block_exchange import Key, Leaves, PayloadBlocks, exchange, payload_blocks
from artifex_devices._spmd.collective import Collective
from artifex_devices._spmd.cross_process_op import CrossProcessOp
from artifex_devices._spmd.process_groups import CrossProcessGroup, CrossProcessGroups, ProcessMap
from artifex_devices._spmd.session import Participant
from artifex_devices.config import config

if TYPE_CHECKING:
    from artifex_devices.distributed.transport import Transport


_PLAIN = CrossProcessOp()
_Blocks = dict[int, list[tuple[int, Key]]]  # by process: numbers of groups, and keys of blocks


class CrossProcess:
    """State that the participants of one session share with participants in other processes."""

    def __init__(self, process_map: ProcessMap, operation: str) -> None:
        self.process_map = process_map
        self.operation = operation
        self.unmet: tuple[int, ...] | None = None  # processes with which the last exchange failed
        self._traced_meeting = 0  # number in open traces of the last meeting with other processes
        self._common: dict[int, tuple[Any, tuple[int, ...]]] = {}

    def begin_meeting(self, processes: tuple[int, ...]) -> None:
        """Records that an exchange with other processes begins; they count as unmet until `end_meeting`."""
        self.unmet = processes

    def end_meeting(self) -> None:
        """Records that the other processes have come."""
        self.unmet = None

    def take_traced_meeting(self) -> int:
        """Returns the number in open traces of the last meeting, once; 0 for none."""
        number, self._traced_meeting = self._traced_meeting, 0
        return number

    def forget_common(self) -> None:
        """Drops the records of results that are equal in several processes, which hold arrays."""
        self._common.clear()

    def is_common(self, array: object, members: tuple[int, ...]) -> bool:
        """Returns whether these participants, of several processes, got the bits of an array from one collective."""
        return self._common.get(id(array), (None, ()))[1] == members

    def complete(self, me: Participant, collective: Collective, payloads: list[Any]) -> list[Leaves]:
        """Computes the results of all of this process's participants in a cross-process collective.

        `payloads` are their blocks in the order of the slots; `me` came last. Raises CollectiveError if the processes
        call different collectives, if a process has failed or ended, or if the deadline has passed.
        """
        across = collective.groups.across
        assert across is not None
        text, digest, small = self._described(me, collective, across, payloads[0])
        transport = transport_of(self.process_map, text)
        self.begin_meeting(across.processes)
        if small is not None:
            received = transport.agree(text, digest, across.processes, small.packed(payloads))
            self._met(transport)
            results = small.completed(collective.complete, payloads, received)
        else:
            with transport.exclusive(text):
                transport.agree(text, digest, across.processes)
                self._met(transport)
                results = _exchanged(self.process_map, across, collective, payloads, transport, text)
        if collective.op is not None and collective.op.is_shared:
            for group, positions in zip(across.groups, across.positions, strict=True):
                first = results[positions[0]]
                for i in positions:
                    if results[i] is not first:
                        break
                else:
                    for array in first:
                        self._common[id(array)] = (array, group.members)
        return results

    def _met(self, transport: Transport) -> None:
        self.end_meeting()
        if internal.is_tracing():
            self._traced_meeting = transport.traced_meetings.get(get_ident(), 0)

    def _described(
        self, me: Participant, collective: Collective, across: CrossProcessGroups, block: Any
    ) -> tuple[str, bytes, PayloadBlocks | None]:
        """Returns text and digest of this collective of such blocks, and their places in a payload if they fit.

        TypeError for leaves of dtypes that cannot be sent.
        """
        code = me.code
        key = (self.operation, collective.signature, id(code), me.instruction)
        known = across.routes.get(key)
        if known is None:
            what = collective.text
            leaves = block if type(block) is list else [block]
            for leaf in leaves:
                empty(what.split()[0], (0,), leaf.dtype)
            digest = digest_of(f"{self.operation} {what} {collective.groups.identity}")
            text = f"{self.operation}: {what} at {me.site}"
            max_payload = transport_of(self.process_map, text).max_payload(across.processes)
            is_plain = (collective.op or _PLAIN).is_plain
            small = payload_blocks(across, self.process_map.me, leaves, max_payload) if is_plain else None
            known = (text, digest, small, code)  # the code stays alive, and its id unique
            remember(across.routes, key, known)
        text, digest, small, _ = known
        return text, digest, small

    def abandon(self, error: BaseException) -> None:
        """Reports to the other processes that this process will not reach the operation that they may be waiting in."""
        try:
            transport = transport_of(self.process_map, self.operation)
        except RuntimeError:  # without a transport no process waits
            return
        if not isinstance(error, Exception):  # Ctrl-C: a thread may still wait in the transport, and all have to stop
            transport.fail(f"{type(error).__name__} in {self.operation}")
            return
        reason = f"{type(error).__name__}: {error}"
        for processes in self.process_map.meeting_sets():
            if processes != self.unmet and (processes != self.process_map.processes or config.distributed_checks):
                transport.refuse(self.operation, reason, processes)


def transport_of(process_map: ProcessMap, operation: str) -> Transport:
    """Returns the transport to the other processes; raises RuntimeError without a transport."""
    return _installed().get(process_map.client_uid) or _of_client()(process_map.client, operation)


@functools.cache
def _installed() -> Mapping[int, Transport]:
    from artifex_devices.distributed.transport import installed  # late: programs of one process do not need it

    return installed


@functools.cache
def _of_client() -> Callable[..., Transport]:
    from artifex_devices.distributed.transport import of_client

    return of_client


def _exchanged(
    process_map: ProcessMap,
    across: CrossProcessGroups,
    collective: Collective,
    payloads: list[Any],
    transport: Transport,
    text: str,
) -> list[Leaves]:
    """Exchanges blocks and returns the result of each slot, by messages."""
    op = collective.op or _PLAIN
    blocks = {
        slot: payload if type(payload) is list else [payload]
        for slot, payload in zip(across.slots, payloads, strict=True)
    }
    made = _completed(process_map, across, op, collective, blocks, transport, text)
    return [made[slot] for slot in across.slots]


def _completed(
    process_map: ProcessMap,
    across: CrossProcessGroups,
    op: CrossProcessOp,
    collective: Collective,
    blocks: dict[int, Leaves],
    transport: Transport,
    text: str,
) -> dict[int, Leaves]:
    """Computes the result of each slot, by messages."""
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
    return _results(op, collective, across, blocks, received)


def _route(op: CrossProcessOp, across: CrossProcessGroups, me: int) -> tuple[_Blocks, _Blocks]:
    """Returns the blocks that this process sends to and receives from each process."""
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


def _keys(op: CrossProcessOp, group: CrossProcessGroup, sender: int, receiver: int) -> list[Key]:
    """Returns the keys of the blocks that one process sends to another, in an order that both know."""
    found: dict[Key, None] = {}
    held = group.held[receiver]
    for index in held:
        for member in op.members_for(index, len(group.members)):
            if group.owners[member] == sender and member not in held:
                found[op.key(member, index)] = None
    return list(found)


def _results(
    op: CrossProcessOp,
    collective: Collective,
    across: CrossProcessGroups,
    blocks: dict[int, Leaves],
    received: list[dict[Key, Leaves]],
) -> dict[int, Leaves]:
    """Computes the result of each slot, from the blocks of this process by slot and the received ones of each group."""
    results: dict[int, Leaves] = {}
    for group, there in zip(across.groups, received, strict=True):
        here = {index: blocks[slot] for index, slot in group.here.items()}
        size = len(group.members)
        if op.finish is None:
            made = collective.complete([here[i] if i in here else there[i, -1] for i in range(size)])
            results.update((slot, made[index]) for index, slot in group.here.items())
            continue
        for index, slot in group.here.items():
            needed = [
                op.picked(here[member], index, size) if member in here else there[op.key(member, index)]
                for member in op.members_for(index, size)
            ]
            results[slot] = op.finish(index, needed)
    return results
