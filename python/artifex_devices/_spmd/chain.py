# SPDX-License-Identifier: Apache-2.0
"""Big reductions between processes: sums go from process to process in pieces, in the order of the members, and back.

The order of the additions is that of one process, so the bits are. While one piece is added up in one process, the next
one is in the process before it, and finished ones are on their way back. Between processes that share memory the core
does all of it (`_core._Chain`); else the pieces are messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._spmd.process_groups import CrossingPart, Span

if TYPE_CHECKING:
    from artifex_devices.distributed.local_peers import Neighbours
    from artifex_devices.distributed.transport import Request, Transport

__all__ = ["is_worth", "run"]

Leaves = list[NDArray[Any]]
_LEAST_SHARED_BYTES = 1 << 13  # of a block, where memory is shared; smaller ones fit into the meeting
_ADVANCE_S = 200e-6  # how long the core waits for others before it lets Python look after them
_LEAST_BYTES = 1 << 17  # of a block; smaller ones go as they are: measured, 2 processes on a 2-core EPYC, MPICH 5
_PIECE_BYTES = 1 << 19  # measured there: 256 KiB takes 1.4 times as long for 16 MiB, 1 MiB up to 2.3 times
_AHEAD = 4  # pieces under way in each direction
_TAG_ON, _TAG_BACK = 3, 4


def is_worth(leaves: Leaves, span: Span, carrier: Transport) -> bool:
    """Whether blocks like these are reduced so; the same in all processes."""
    least = _LEAST_BYTES if carrier.neighbours(span.processes) is None else _LEAST_SHARED_BYTES
    return span.in_runs and all(leaf.nbytes >= least for leaf in leaves)


def has_rows(part: CrossingPart) -> bool:
    """Whether each process of a group runs the members whose blocks count, and no others."""
    return all(len(part.held[process]) == part.owners.count(process) for process in part.processes)


def run(
    me: int,
    parts: Sequence[CrossingPart],
    brought: dict[int, Leaves],
    reduction: str,
    carrier: Transport,
    text: str,
    by_rows: bool = False,
) -> list[Leaves]:
    """The result of each group, leaf by leaf.

    Args:
        me: Number of this process.
        parts: The groups.
        brought: Blocks by slot.
        reduction: "sum", "prod", "max" or "min".
        carrier: Takes the bytes.
        text: The operation, for messages.
        by_rows: Where a group `has_rows`, give each process only the part of the leading dimension that its members
            have when each gets as much.
    """
    totals: list[Leaves] = []
    for part in parts:
        owners = list(dict.fromkeys(part.owners))
        order = [*owners, *(process for process in part.processes if process not in owners)]
        mine = [brought[part.mine[i]] for i, owner in enumerate(part.owners) if owner == me]
        template = brought[next(iter(part.mine.values()))]
        neighbours = carrier.neighbours(part.processes)
        made = []
        for i, leaf in enumerate(template):
            share = _share_of(part, me, leaf, by_rows and has_rows(part))
            blocks = [np.ascontiguousarray(leaves[i]).reshape(-1) for leaves in mine]
            if neighbours is not None:
                made.append(_shared(neighbours, me, order, blocks, share, leaf.dtype, reduction, carrier, text))
            else:
                made.append(_Link(me, order, blocks, share, leaf, reduction, carrier, text).run())
        totals.append(made)
    return totals


class _Share(NamedTuple):
    """What a process wants of a result, in elements."""

    begin: int
    end: int
    handed_on: int  # what lies below it goes on to the processes before this one
    shape: tuple[int, ...]


def _share_of(part: CrossingPart, me: int, template: NDArray[Any], is_row: bool) -> _Share:
    if not is_row:
        return _Share(0, template.size, template.size, template.shape)
    each = template.size // len(part.members)
    begin, count = part.owners.index(me), part.owners.count(me)
    rows = template.shape[0] // len(part.members) * count
    return _Share(begin * each, (begin + count) * each, begin * each, (rows, *template.shape[1:]))


def _shared(
    neighbours: Neighbours,
    me: int,
    order: Sequence[int],
    blocks: Leaves,
    share: _Share,
    dtype: np.dtype[Any],
    reduction: str,
    carrier: Transport,
    text: str,
) -> NDArray[Any]:
    """One array's result, by memory that the processes share."""
    place = order.index(me)
    before = neighbours.places[order[place - 1]] if place > 0 else -1
    after = neighbours.places[order[place + 1]] if place + 1 < len(order) else -1
    try:
        out: NDArray[Any] = _core._host_empty(share.shape, dtype)
        chain = neighbours.lanes.chain(before, after, reduction, blocks, out.reshape(-1), share.begin, share.handed_on)
    except BaseException as error:  # the others are in theirs, and would wait
        carrier.fail(f"{type(error).__name__} in {text}: {error}")
        raise
    carrier.wait_until(lambda: chain.advance(_ADVANCE_S), text, out.nbytes)
    return out


class _Link:
    """This process's part in the chain of one array."""

    def __init__(
        self,
        me: int,
        order: Sequence[int],
        blocks: Leaves,
        share: _Share,
        template: NDArray[Any],
        reduction: str,
        carrier: Transport,
        text: str,
    ) -> None:
        self._share = share
        place = order.index(me)
        self._before = order[place - 1] if place > 0 else None
        self._after = order[place + 1] if place + 1 < len(order) else None
        self._reduction = reduction
        self._carrier = carrier
        self._text = text
        dtype = template.dtype
        # Half precision is added up in float32 and rounded once, at the end.
        is_half = dtype.itemsize == 2 and dtype.kind not in "iu" and reduction in ("sum", "prod")
        self._carried = np.dtype(np.float32) if is_half else dtype
        self._blocks = blocks
        self._out: NDArray[Any] = _core._host_empty(template.shape, dtype)
        self._result = self._out.reshape(-1)
        step = max(1, _PIECE_BYTES // self._carried.itemsize)
        self._pieces = [slice(start, start + step) for start in range(0, self._result.size, step)]
        self._free: list[NDArray[Any]] = []
        self._step = step
        self._requests: list[Request] = []
        self._kinds: list[tuple[str, int, Any]] = []  # of each request: what it is, the piece, its memory
        self._asked = 0  # pieces asked of the process before
        self._made = 0  # pieces added up here
        self._waiting: dict[int, NDArray[Any]] = {}  # came from before, not yet added up
        self._back: set[int] = set()  # finished, not yet handed back
        self._handed = 0  # pieces handed back, in their order
        self._sends = 0  # under way to the process after

    def run(self) -> NDArray[Any]:
        """This process's share of the result, which nobody else has."""
        wanted = max(self._share.end, self._share.handed_on)
        try:
            if self._after is not None:
                for number in range(sum(piece.start < wanted for piece in self._pieces)):
                    self._begin("back", number, self._bytes(number), receive=self._after, tag=_TAG_BACK)
            while self._made < len(self._pieces) or self._requests:
                self._ask()
                if not self._make() and self._requests:
                    done = set(self._carrier.wait_some(self._requests, self._text))
                    finished = [kind for place, kind in enumerate(self._kinds) if place in done]
                    self._requests = [request for place, request in enumerate(self._requests) if place not in done]
                    self._kinds = [kind for place, kind in enumerate(self._kinds) if place not in done]
                    for kind in finished:
                        self._finish(*kind)
        except BaseException:
            self._carrier.cancel(self._requests)
            raise
        if self._share.shape == self._out.shape:
            return self._out
        mine: NDArray[Any] = self._result[self._share.begin : self._share.end].reshape(self._share.shape)
        for each in (self._out, self._result, mine):
            each.flags.writeable = False
        return mine

    def _bytes(self, number: int) -> NDArray[np.uint8]:
        view: NDArray[np.uint8] = self._result[self._pieces[number]].view(np.uint8)
        return view

    def _begin(
        self, kind: str, number: int, data: Any, *, receive: int | None = None, send: int | None = None, tag: int
    ) -> None:
        if receive is not None:
            self._requests.append(self._carrier.irecv(data.view(np.uint8), receive, tag))
        elif send is not None:
            self._requests.append(self._carrier.isend(data.view(np.uint8), send, tag))
        self._kinds.append((kind, number, data))

    def _ask(self) -> None:
        while self._before is not None and self._asked < min(len(self._pieces), self._made + _AHEAD):
            memory = self._memory(self._asked)
            self._begin("on", self._asked, memory, receive=self._before, tag=_TAG_ON)
            self._asked += 1

    def _make(self) -> bool:
        """Adds up the next piece, where it may be; whether it did."""
        if self._made == len(self._pieces) or self._sends >= _AHEAD:
            return False
        carried = None
        if self._before is not None:
            carried = self._waiting.pop(self._made, None)
            if carried is None:
                return False
        number, self._made = self._made, self._made + 1
        piece = self._pieces[number]
        inputs = [block[piece] for block in self._blocks]
        if self._carried != self._out.dtype:
            inputs = [block.astype(self._carried) for block in inputs]
        if carried is not None:
            inputs.insert(0, carried)
        if self._after is not None:
            memory = self._memory(number)
            _core._all_reduce(self._reduction, inputs, memory)
            self._begin("sent on", number, memory, send=self._after, tag=_TAG_ON)
            self._sends += 1
        else:
            target = self._result[piece]
            if self._carried == self._out.dtype:
                _core._all_reduce(self._reduction, inputs, target)
            else:
                memory = self._memory(number)
                _core._all_reduce(self._reduction, inputs, memory)
                target[...] = memory.astype(self._out.dtype)
                self._free.append(memory)
            self._hand_back(number)
        if carried is not None:
            self._free.append(carried)
        return True

    def _finish(self, kind: str, number: int, data: Any) -> None:
        if kind == "on":
            self._waiting[number] = data
        elif kind == "sent on":
            self._sends -= 1
            self._free.append(data)
        elif kind == "back":
            self._hand_back(number)

    def _hand_back(self, number: int) -> None:
        if self._before is None or self._pieces[number].start >= self._share.handed_on:
            return
        self._back.add(number)
        while self._handed in self._back:  # messages of a pair come in the order in which they went
            self._back.remove(self._handed)
            self._begin("handed back", self._handed, self._bytes(self._handed), send=self._before, tag=_TAG_BACK)
            self._handed += 1

    def _memory(self, number: int) -> NDArray[Any]:
        size = len(range(*self._pieces[number].indices(self._result.size)))
        for place, memory in enumerate(self._free):
            if memory.size == size:
                return self._free.pop(place)
        made: NDArray[Any] = _core._host_empty((size,), self._carried)
        return made
