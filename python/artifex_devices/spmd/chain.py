# SPDX-License-Identifier: Apache-2.0
"""Big reductions between processes: sums go from process to process in pieces, in the order of the members, and back.

The order of the additions is that of one process, so the bits are. While one piece is added up in one process, the next
one is in the process before it, and finished ones are on their way back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices.spmd.span import CrossingPart, Span

if TYPE_CHECKING:
    from artifex_devices.distributed.transport import Request, Transport

__all__ = ["is_worth", "run"]

Leaves = list[NDArray[Any]]
_LEAST_BYTES = 1 << 17  # of a block; smaller ones go as they are: measured, 2 processes on a 2-core EPYC, MPICH 5
_PIECE_BYTES = 1 << 19  # measured there: 256 KiB takes 1.4 times as long for 16 MiB, 1 MiB up to 2.3 times
_AHEAD = 4  # pieces under way in each direction
_TAG_ON, _TAG_BACK = 3, 4


def is_worth(leaves: Leaves, span: Span) -> bool:
    """Whether blocks like these are reduced so; the same in all processes."""
    return span.in_runs and all(leaf.nbytes >= _LEAST_BYTES for leaf in leaves)


def run(
    me: int,
    parts: Sequence[CrossingPart],
    brought: dict[int, Leaves],
    reduction: str,
    carrier: Transport,
    text: str,
) -> list[Leaves]:
    """The result of each group, leaf by leaf."""
    totals: list[Leaves] = []
    for part in parts:
        owners = list(dict.fromkeys(part.owners))
        order = [*owners, *(process for process in part.processes if process not in owners)]
        mine = [brought[part.mine[i]] for i, owner in enumerate(part.owners) if owner == me]
        template = brought[next(iter(part.mine.values()))]
        totals.append(
            [
                _Link(me, order, [leaves[i] for leaves in mine], leaf, reduction, carrier, text).run()
                for i, leaf in enumerate(template)
            ]
        )
    return totals


class _Link:
    """This process's part in the chain of one array."""

    def __init__(
        self,
        me: int,
        order: Sequence[int],
        blocks: Leaves,
        template: NDArray[Any],
        reduction: str,
        carrier: Transport,
        text: str,
    ) -> None:
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
        self._blocks = [np.ascontiguousarray(block).reshape(-1) for block in blocks]
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
        """The result, writable, which nobody else has."""
        try:
            if self._after is not None:
                for number in range(len(self._pieces)):
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
        return self._out

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
        if self._before is None:
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
