# SPDX-License-Identifier: Apache-2.0
"""Big reductions between processes: sums pass along a chain of processes in pieces, in the order of the members.

The order of the additions, and so every bit, is that of one process. While one process adds a piece, the process before
it adds the next one, and finished pieces travel back. Between processes that share memory the core does all of it
(`_core._Chain`); otherwise the pieces are messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._spmd.process_groups import CrossGroup, ProcessGroups
from artifex_devices.distributed.transport import InFlight

if TYPE_CHECKING:
    from artifex_devices.distributed.local_peers import LocalPeers
    from artifex_devices.distributed.mpi_transport import MpiTransport

Leaves = list[NDArray[Any]]
_MIN_SHARED_BYTES = 1 << 13  # of a block, where memory is shared; smaller ones fit into the meeting
_ADVANCE_S = 200e-6  # how long the core waits for others before it returns to Python, which checks the peers
_MIN_BYTES = 1 << 17  # of a block; smaller ones are sent whole: measured, 2 processes on a 2-core EPYC, MPICH 5
_PIECE_BYTES = 1 << 19  # measured there: 256 KiB takes 1.4 times as long for 16 MiB, 1 MiB up to 2.3 times
_AHEAD = 4  # pieces in flight in each direction
_TAG_ON, _TAG_BACK = 3, 4


def is_worth(leaves: Leaves, across: ProcessGroups, transport: MpiTransport) -> bool:
    """Whether blocks like these are reduced along a chain; the same in all processes."""
    minimum = _MIN_BYTES if transport.local_peers(across.processes) is None else _MIN_SHARED_BYTES
    return across.in_runs and all(leaf.nbytes >= minimum for leaf in leaves)


def has_rows(group: CrossGroup) -> bool:
    """Whether each process runs the members whose blocks count, and no others."""
    return all(len(group.held[process]) == group.owners.count(process) for process in group.processes)


def run(
    me: int,
    groups: Sequence[CrossGroup],
    blocks_of: dict[int, Leaves],
    reduction: str,
    transport: MpiTransport,
    text: str,
    by_rows: bool = False,
) -> list[Leaves]:
    """The result of each group, leaf by leaf, from the blocks of each slot.

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
            share = _share_of(group, me, leaf, by_rows and has_rows(group))
            blocks = [np.ascontiguousarray(leaves[i]).reshape(-1) for leaves in mine]
            link = _Link(before, after, blocks, share, leaf, reduction, transport, text)
            made.append(link.run() if local_peers is None else link.run_shared(local_peers))
        totals.append(made)
    return totals


class _Share(NamedTuple):
    """The part of a result that a process needs, in elements."""

    begin: int
    end: int
    passed_on: int  # the elements below it travel on to the processes before this one
    shape: tuple[int, ...]


def _share_of(group: CrossGroup, me: int, template: NDArray[Any], is_row: bool) -> _Share:
    if not is_row:
        return _Share(0, template.size, template.size, template.shape)
    each = template.size // len(group.members)
    begin, count = group.owners.index(me), group.owners.count(me)
    rows = template.shape[0] // len(group.members) * count
    return _Share(begin * each, (begin + count) * each, begin * each, (rows, *template.shape[1:]))


@dataclass
class _Link:
    """This process's part in the chain of one array."""

    before: int | None  # the processes next to this one
    after: int | None
    blocks: Leaves  # of the members of this process
    share: _Share
    template: NDArray[Any]
    reduction: str
    transport: MpiTransport
    text: str

    def run_shared(self, local_peers: LocalPeers) -> NDArray[Any]:
        """This process's share of the result, by memory that the processes share."""
        before = -1 if self.before is None else local_peers.places[self.before]
        after = -1 if self.after is None else local_peers.places[self.after]
        share, text = self.share, self.text
        try:
            out: NDArray[Any] = _core._host_empty(share.shape, self.template.dtype)
            chain = local_peers.lanes.chain(
                before, after, self.reduction, self.blocks, out.reshape(-1), share.begin, share.passed_on
            )
        except BaseException as error:  # the other processes have begun theirs, and would wait
            self.transport.fail(f"{type(error).__name__} in {text}: {error}")
            raise
        self.transport.wait_until(lambda: chain.advance(_ADVANCE_S), text, out.nbytes)
        return out

    def _prepare(self) -> None:
        dtype = self.template.dtype
        # Half precision is added in float32 and rounded once, at the end.
        is_half = dtype.itemsize == 2 and dtype.kind not in "iu" and self.reduction in ("sum", "prod")
        self._carried = np.dtype(np.float32) if is_half else dtype
        self._out: NDArray[Any] = _core._host_empty(self.template.shape, dtype)
        self._result = self._out.reshape(-1)
        step = max(1, _PIECE_BYTES // self._carried.itemsize)
        self._pieces = [slice(start, start + step) for start in range(0, self._result.size, step)]
        self._free: list[NDArray[Any]] = []
        self._in_flight = InFlight(self.transport, self.text)  # with what it is, the piece, its memory
        self._requested = 0  # pieces requested of the process before
        self._added = 0  # pieces added here
        self._waiting: dict[int, NDArray[Any]] = {}  # arrived from the process before, not added yet
        self._finished: set[int] = set()  # not returned yet
        self._returned = 0  # pieces returned to the process before, in their order
        self._sends = 0  # in flight to the process after

    def run(self) -> NDArray[Any]:
        """This process's share of the result, by messages."""
        self._prepare()
        wanted = max(self.share.end, self.share.passed_on)
        with self._in_flight:
            if self.after is not None:
                for number in range(sum(piece.start < wanted for piece in self._pieces)):
                    self._begin("result", number, self._bytes(number), self.transport.irecv, self.after, _TAG_BACK)
            while self._added < len(self._pieces) or self._in_flight:
                self._request()
                if not self._add() and self._in_flight:
                    for kind, number, data in self._in_flight.wait_some():
                        self._finish(kind, number, data)
        if self.share.shape == self._out.shape:
            return self._out
        mine: NDArray[Any] = self._result[self.share.begin : self.share.end].reshape(self.share.shape)
        for each in (self._out, self._result, mine):
            each.flags.writeable = False
        return mine

    def _bytes(self, number: int) -> NDArray[np.uint8]:
        view: NDArray[np.uint8] = self._result[self._pieces[number]].view(np.uint8)
        return view

    def _begin(self, kind: str, number: int, data: Any, start: Any, peer: int, tag: int) -> None:
        self._in_flight.add(start(data.view(np.uint8), peer, tag), (kind, number, data))

    def _request(self) -> None:
        while self.before is not None and self._requested < min(len(self._pieces), self._added + _AHEAD):
            memory = self._memory(self._requested)
            self._begin("sum", self._requested, memory, self.transport.irecv, self.before, _TAG_ON)
            self._requested += 1

    def _add(self) -> bool:
        """Adds the next piece, if it can; returns whether it did."""
        if self._added == len(self._pieces) or self._sends >= _AHEAD:
            return False
        carried = None
        if self.before is not None:
            carried = self._waiting.pop(self._added, None)
            if carried is None:
                return False
        number, self._added = self._added, self._added + 1
        piece = self._pieces[number]
        inputs = [block[piece] for block in self.blocks]
        if self._carried != self._out.dtype:
            inputs = [block.astype(self._carried) for block in inputs]
        if carried is not None:
            inputs.insert(0, carried)
        if self.after is not None:
            memory = self._memory(number)
            _core._all_reduce(self.reduction, inputs, memory)
            self._begin("sent", number, memory, self.transport.isend, self.after, _TAG_ON)
            self._sends += 1
        else:
            target = self._result[piece]
            if self._carried == self._out.dtype:
                _core._all_reduce(self.reduction, inputs, target)
            else:
                memory = self._memory(number)
                _core._all_reduce(self.reduction, inputs, memory)
                target[...] = memory.astype(self._out.dtype)
                self._free.append(memory)
            self._return(number)
        if carried is not None:
            self._free.append(carried)
        return True

    def _finish(self, kind: str, number: int, data: Any) -> None:
        if kind == "sum":
            self._waiting[number] = data
        elif kind == "sent":
            self._sends -= 1
            self._free.append(data)
        elif kind == "result":
            self._return(number)

    def _return(self, number: int) -> None:
        if self.before is None or self._pieces[number].start >= self.share.passed_on:
            return
        self._finished.add(number)
        while self._returned in self._finished:  # messages of a pair arrive in the order in which they were sent
            self._finished.remove(self._returned)
            data = self._bytes(self._returned)
            self._begin("returned", self._returned, data, self.transport.isend, self.before, _TAG_BACK)
            self._returned += 1

    def _memory(self, number: int) -> NDArray[Any]:
        size = len(range(*self._pieces[number].indices(self._result.size)))
        for place, memory in enumerate(self._free):
            if memory.size == size:
                return self._free.pop(place)
        made: NDArray[Any] = _core._host_empty((size,), self._carried)
        return made
