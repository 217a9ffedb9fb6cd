# SPDX-License-Identifier: Apache-2.0
"""Messages of reshards between processes, and the comparison of a value that all processes should have."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from artifex_devices import _core
from artifex_devices._core import Array, Client, _CrossReshard
from artifex_devices.config import config
from artifex_devices.distributed import transport as transports
from artifex_devices.distributed.mpi_transport import MpiTransport
from artifex_devices.distributed.transport import InFlight

_TAG = 1  # of reshards; messages of one pair arrive in order, so that one tag is enough
_MAX_IN_FLIGHT = 32  # messages in each direction that need no memory of their own


@dataclass(frozen=True)
class Traffic:
    """Bytes that reshards have sent and received so far in this process. Source: counted."""

    sent: Counter[int] = field(default_factory=Counter)  # by the number of the receiving process
    received: Counter[int] = field(default_factory=Counter)  # by the number of the sending process


_traffic: dict[int, Traffic] = {}


def traffic(client: Client | None = None) -> Traffic:
    """The bytes that reshards of a client, or of the current world, have sent and received in this process."""
    uid = (_core._current_client() if client is None else client)._uid
    return _traffic.setdefault(uid, Traffic())


def run(cross: _CrossReshard) -> Array:
    """Does this process's part of a reshard that has not begun.

    RuntimeError where the processes do not make the same reshard or one has ended; ResourceExhaustedError out of
    memory, which the other processes learn.
    """
    own = cross.client.process_index()
    if own not in cross.processes:
        cross.begin()
        return cross.finish()
    text = cross.text
    transport = transports.of_client(cross.client, text)
    digest = hashlib.blake2b(cross.identity.encode(), digest_size=32).digest()
    try:
        cross.begin()
    except BaseException as error:
        transport.refuse(text, f"{type(error).__name__}: {error}", cross.processes)
        raise
    transport.agree(text, digest, cross.processes)
    _Exchange(cross, transport, text).run()
    return cross.finish()


class _Exchange:
    """The messages of one reshard: in the same order in all processes, in bounded memory."""

    def __init__(self, cross: _CrossReshard, transport: MpiTransport, text: str) -> None:
        self._cross = cross
        self._transport = transport
        self._traffic = traffic(cross.client)
        self._sends = cross.sends
        self._receives = cross.receives
        self._next = {"send": 0, "receive": 0}
        self._packed = {"send": 0, "receive": 0}  # bytes of buffers in use
        self._count = {"send": 0, "receive": 0}  # messages in flight
        self._budget = config.distributed_buffer_bytes // 2  # of each direction
        self._free: dict[int, list[Any]] = {}  # unused buffers, by size
        self._allocated = 0  # bytes of all buffers
        self._in_flight = InFlight(transport, text)  # with kind, number, and buffer or None

    def run(self) -> None:
        """Sends and receives everything."""
        with self._in_flight:
            while self._fill() or self._in_flight:
                self._finish_some()

    def _fill(self) -> bool:
        """Begins what fits into the budget, at least one message in each direction; returns whether any began."""
        began = self._begin("receive", self._receives)
        return self._begin("send", self._sends) or began

    def _begin(self, kind: str, messages: list[tuple[int, int]]) -> bool:
        began = False
        while self._next[kind] < len(messages):
            i = self._next[kind]
            peer, size = messages[i]
            memory = self._cross.send_in_place(i) if kind == "send" else self._cross.receive_in_place(i)
            buffer = None
            if memory is None:
                if self._count[kind] and self._packed[kind] + size > self._budget:
                    break
                memory = buffer = self._buffer(size)
                self._packed[kind] += size
                if kind == "send":
                    self._cross.pack(i, buffer)
            elif self._count[kind] >= _MAX_IN_FLIGHT:
                break
            begin = self._transport.isend if kind == "send" else self._transport.irecv
            self._in_flight.add(begin(memory, peer, _TAG), (kind, i, buffer))
            self._count[kind] += 1
            self._next[kind] += 1
            began = True
        return began

    def _finish_some(self) -> None:
        for kind, i, buffer in self._in_flight.wait_some():
            peer, size = (self._sends if kind == "send" else self._receives)[i]
            self._count[kind] -= 1
            (self._traffic.sent if kind == "send" else self._traffic.received)[peer] += size
            if buffer is None:
                continue
            if kind == "receive":
                self._cross.unpack(i, buffer)
            self._packed[kind] -= size
            self._free.setdefault(size, []).append(buffer)

    def _buffer(self, size: int) -> Any:
        free = self._free.get(size)
        if free:
            return free.pop()
        if self._allocated + size > 2 * self._budget:
            self._free.clear()
            self._allocated = sum(self._packed.values())
        self._allocated += size
        return _core._host_empty((size,), "uint8")


def check_same_value(client: Client, operation: str, digest: bytes) -> None:
    """Compares the digests, of at most 64 bytes, of a value that all processes of a client should have.

    ValueError in all processes where one has another value; the text names the processes. RuntimeError where the
    processes do not come to the same operation.
    """
    transport = transports.of_client(client, operation)
    processes = range(client.process_count())
    kind = hashlib.blake2b(b"same value", digest_size=32).digest()
    digests = transport.agree(operation, kind, processes, digest)
    (common, _), *others = Counter(digests).most_common()
    if others:
        different = [process for process, each in zip(processes, digests, strict=True) if each != common]
        raise ValueError(
            f"{operation}: the processes do not have the same value; expected equal shapes, dtypes and bits, got "
            f"another value in process {', '.join(map(str, different))} than in most; give each process's own part to "
            "make_array_from_process_local_data"
        )
