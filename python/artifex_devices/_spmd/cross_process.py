# SPDX-License-Identifier: Apache-2.0
"""Collectives between processes: whoever arrives last in this process meets the other processes for all of them.

Results are those of one process, bit for bit: blocks go as they are and are combined where they are needed, or sums
are handed on from process to process in the order of the members (`chain`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._spmd.block_exchange import exchange
from artifex_devices._spmd.process_groups import CrossingPart, Span, Spread
from artifex_devices._spmd.small_blocks import Key, SmallBlocks, fit

if TYPE_CHECKING:
    from artifex_devices._spmd.participant import Meeting
    from artifex_devices._spmd.program import Program
    from artifex_devices.distributed.transport import Transport

__all__ = ["Crossing", "carrier_of", "complete", "digest_of"]

Leaves = list[NDArray[Any]]


class Crossing(NamedTuple):
    """What a member of a collective needs of the others, where they are in other processes.

    Attributes:
        sources: sources(index, size): the members whose blocks it needs, in the order in which `finish` gets them; None
            for all.
        pick: pick(block, index, size): what it needs of each; None for whole blocks.
        finish: finish(index, blocks): its result; None for what makes the results of a group in one process.
        reduction: "sum", "prod", "max" or "min", where all blocks are combined to one,
        share: share(total, size): what each member gets of that, which is the caller's own.
        by_rows: Whether `share` cuts the leading dimension into equal parts, and may be called for some members with
            what these get.
        is_shared: Whether all members get the same.
    """

    sources: Callable[[int, int], Sequence[int]] | None = None
    pick: Callable[[NDArray[Any], int, int], NDArray[Any]] | None = None
    finish: Callable[[int, list[Leaves]], Leaves] | None = None
    reduction: str = ""
    share: Callable[[Leaves, int], Sequence[Leaves]] = lambda total, size: [total] * size
    by_rows: bool = False
    is_shared: bool = False


_PLAIN = Crossing()
_of_client: Any = None  # of the transport's module, which programs of one process never load


def complete(program: Program, meeting: Meeting, position: int, payloads: list[Any]) -> list[Leaves]:
    """The results of all participants of this process that meet others.

    Args:
        program: Theirs.
        meeting: The collective.
        position: Slot of the participant that came last.
        payloads: What they brought, in the order of their slots.

    Raises:
        CollectiveError: The processes do not come to the same collective, one has failed or is gone, or the deadline
            is over.
    """
    spread, span = program.spread, meeting.groups.span
    assert spread is not None
    assert span is not None
    brought = {
        slot: payload if type(payload) is list else [payload]
        for slot, payload in zip(span.slots, payloads, strict=True)
    }
    text, digest, small = _described(program, meeting, position, span, brought[span.slots[0]])
    carrier = carrier_of(spread, text)
    payload = b"" if small is None else small.packed(brought)
    program.lost = span.processes
    told = carrier.agree(text, digest, span.processes, payload)
    program.lost = None
    if small is not None:
        made = _from_meeting(span, meeting, brought, small.unpacked(told))
    else:
        made = _completed(spread, span, meeting, brought, carrier, text)
    is_shared = (meeting.crossing or _PLAIN).is_shared
    for part in span.parts:
        first, *others = [made[slot] for slot in part.mine.values()]
        if is_shared and all(other is first for other in others):
            program.keep_common(first, part.members)
    return [made[slot] for slot in span.slots]


def _described(
    program: Program, meeting: Meeting, position: int, span: Span, leaves: Leaves
) -> tuple[str, bytes, SmallBlocks | None]:
    """What this collective is called, what is equal in other processes, and how blocks go with the meeting's words.

    TypeError for leaves of dtypes that have no bytes to send.
    """
    me = program.participants[position]
    code, instruction = me.call
    key = (program.operation, meeting.signature, id(code), instruction)
    known = span.routes.get(key)
    if known is None:
        if len(span.routes) >= 256:
            span.routes.clear()
        what = program.text_of(meeting)
        for leaf in leaves:
            try:
                _core._host_empty((0,), leaf.dtype)
            except TypeError as error:
                raise TypeError(f"{what.split()[0]}: {str(error).removeprefix('host_empty: ')}") from None
        digest = digest_of(f"{program.operation} {what} {meeting.groups.identity}")
        way = meeting.crossing or _PLAIN
        text = f"{program.operation}: {what} at {me.site}"
        assert program.spread is not None
        most = carrier_of(program.spread, text).most_payload(span.processes)
        goes_along = way.sources is None and way.pick is None and fit(span, leaves, most)
        small = SmallBlocks(span, program.spread.me, leaves) if goes_along else None
        known = span.routes[key] = (text, digest, small, code)
    text, digest, small, _ = known
    return text, digest, small


def carrier_of(spread: Spread, text: str) -> Transport:
    """What takes bytes to other processes; RuntimeError where there is nothing."""
    global _of_client
    if _of_client is None:
        from artifex_devices.distributed.transport import of_client as _of_client
    found: Transport = _of_client(spread.client, text)
    return found


def digest_of(identity: str) -> bytes:
    """Equal for equal operations, else not."""
    return hashlib.blake2b(identity.encode(), digest_size=32).digest()


def _from_meeting(
    span: Span, meeting: Meeting, brought: dict[int, Leaves], blocks: list[dict[Key, Leaves]]
) -> dict[int, Leaves]:
    """The result of each slot, where the meeting has brought the blocks of all others."""
    way = meeting.crossing or _PLAIN
    results: dict[int, Leaves] = {}
    for part, there in zip(span.parts, blocks, strict=True):
        here = {index: brought[slot] for index, slot in part.mine.items()}
        results.update(_finished(way, meeting, part, here, there))
    return results


def _completed(
    spread: Spread,
    span: Span,
    meeting: Meeting,
    brought: dict[int, Leaves],
    carrier: Transport,
    text: str,
) -> dict[int, Leaves]:
    """The result of each slot."""
    parts = span.parts
    way = meeting.crossing or _PLAIN
    template = next(iter(brought.values()))
    if way.reduction:
        from artifex_devices._spmd import chain

        if chain.is_worth(template, span, carrier):
            totals = chain.run(spread.me, parts, brought, way.reduction, carrier, text, way.by_rows)
            results: dict[int, Leaves] = {}
            for part, total in zip(parts, totals, strict=True):
                if way.by_rows and chain.has_rows(part):
                    results.update(zip(part.mine.values(), way.share(total, len(part.mine)), strict=True))
                    continue
                made = way.share(total, len(part.members))
                results.update((slot, made[index]) for index, slot in part.mine.items())
            return results
    route = _route(way, span, spread.me)
    own = [{index: brought[slot] for index, slot in part.mine.items()} for part in parts]
    sizes = [len(part.members) for part in parts]
    sends = {
        peer: [leaf for n, (member, index) in keys for leaf in _picked(way, own[n][member], index, sizes[n])]
        for peer, keys in route.sends.items()
    }
    kinds = {
        peer: [(leaf.shape, leaf.dtype) for n, (_, index) in keys for leaf in _picked(way, template, index, sizes[n])]
        for peer, keys in route.receives.items()
    }
    arrived = exchange(carrier, text, sends, kinds)
    count = len(template)
    blocks: list[dict[Key, Leaves]] = [{} for _ in parts]
    for peer, keys in route.receives.items():
        for i, (number, key) in enumerate(keys):
            blocks[number][key] = arrived[peer][i * count : (i + 1) * count]
    results = {}
    for part, here, there in zip(parts, own, blocks, strict=True):
        results.update(_finished(way, meeting, part, here, there))
    return results


class _Route(NamedTuple):
    """What goes to and comes from each process: numbers of groups, and keys of blocks."""

    sends: dict[int, list[tuple[int, Key]]]
    receives: dict[int, list[tuple[int, Key]]]


def _route(way: Crossing, span: Span, me: int) -> _Route:
    plain = way.sources is None and way.pick is None  # whole blocks to all: the same at each call
    if plain and "all" in span.routes:
        known: _Route = span.routes["all"]
        return known
    made = _Route({}, {})
    for number, part in enumerate(span.parts):
        for peer in part.processes:
            if peer == me:
                continue
            for found, sender, receiver in ((made.sends, me, peer), (made.receives, peer, me)):
                keys = [(number, key) for key in _keys(way, part, sender, receiver)]
                if keys:
                    found.setdefault(peer, []).extend(keys)
    if plain:
        span.routes["all"] = made
    return made


def _keys(way: Crossing, part: CrossingPart, sender: int, receiver: int) -> list[Key]:
    """What goes from one process to another, in an order that both know."""
    found: dict[Key, None] = {}
    held = part.held[receiver]
    size = len(part.members)
    for index in held:
        for member in range(size) if way.sources is None else way.sources(index, size):
            if part.owners[member] == sender and member not in held:
                found[member, index if way.pick is not None else -1] = None
    return list(found)


def _picked(way: Crossing, leaves: Leaves, index: int, size: int) -> Leaves:
    return leaves if way.pick is None else [way.pick(leaf, index, size) for leaf in leaves]


def _finished(
    way: Crossing, meeting: Meeting, part: CrossingPart, here: dict[int, Leaves], there: dict[Key, Leaves]
) -> dict[int, Leaves]:
    size = len(part.members)
    if way.finish is None:
        made = meeting.complete([here[i] if i in here else there[i, -1] for i in range(size)])
        return {slot: made[index] for index, slot in part.mine.items()}
    results = {}
    for index, slot in part.mine.items():
        members = range(size) if way.sources is None else way.sources(index, size)
        blocks = [
            _picked(way, here[member], index, size)
            if member in here
            else there[member, index if way.pick is not None else -1]
            for member in members
        ]
        results[slot] = way.finish(index, blocks)
    return results
