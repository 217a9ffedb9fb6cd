# SPDX-License-Identifier: Apache-2.0
"""Messages of reshards between processes, and the comparison of a value that all processes should have."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from artifex_devices import _core
from artifex_devices._core import Array, Client, _CrossReshard
from artifex_devices.config import config
from artifex_devices.distributed import transport as transports
from artifex_devices.distributed.transport import InFlight, Message, Transport

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


def forget(client: Client) -> None:
    """Drops the counters of a client."""
    _traffic.pop(client._uid, None)


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
    with transport.exclusive(text):
        transport.agree(text, digest, cross.processes)
        _exchange(cross, transport, text)
    return cross.finish()


@dataclass
class _Direction:
    """The messages that a reshard sends, or those that it receives: in the same order in all processes."""

    messages: list[tuple[int, int]]  # the other process, and the bytes
    in_place: Callable[[int], Any]  # the memory of a message that needs no buffer, or None
    start: Callable[[Any, int, int], Message]
    counted: Counter[int]  # bytes, by process
    begun: int = 0
    in_flight: int = 0
    buffered: int = 0  # bytes of buffers in use

    def begin(self, cross: _CrossReshard, budget: int, in_flight: InFlight, *, packs: bool) -> None:
        """Begins at least one message, and those whose buffers fit into the budget."""
        while self.begun < len(self.messages):
            i = self.begun
            peer, size = self.messages[i]
            memory, buffer = self.in_place(i), None
            if memory is None:
                if self.in_flight and self.buffered + size > budget:
                    return
                memory = buffer = _core._host_empty((size,), "uint8")
                self.buffered += size
                if packs:
                    cross.pack(i, buffer)
            elif self.in_flight >= _MAX_IN_FLIGHT:
                return
            in_flight.add(self.start(memory, peer, _TAG), (self, i, buffer))
            self.in_flight += 1
            self.begun += 1


def _exchange(cross: _CrossReshard, transport: Transport, text: str) -> None:
    """Sends and receives everything, in bounded memory."""
    counted = traffic(cross.client)
    receives = _Direction(cross.receives, cross.receive_in_place, transport.irecv, counted.received)
    sends = _Direction(cross.sends, cross.send_in_place, transport.isend, counted.sent)
    budget = config.distributed_buffer_bytes // 2
    with InFlight(transport, text) as in_flight:
        while True:
            receives.begin(cross, budget, in_flight, packs=False)
            sends.begin(cross, budget, in_flight, packs=True)
            if not in_flight:
                return
            for direction, i, buffer in in_flight.wait_some():
                peer, size = direction.messages[i]
                direction.in_flight -= 1
                direction.counted[peer] += size
                if buffer is not None:
                    direction.buffered -= size
                    if direction is receives:
                        cross.unpack(i, buffer)
                del buffer  # the next one takes its memory


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


def refuse_same_value(client: Client, operation: str, reason: str) -> None:
    """Reports to the processes that come to check_same_value that this one has no value, and why."""
    transports.of_client(client, operation).refuse(operation, reason, range(client.process_count()))


def gather_sizes(client: Client, operation: str, processes: list[int], size: int) -> dict[int, int]:
    """The sizes that these processes, ascending, pass; all of them call it. CollectiveError where one does not."""
    transport = transports.of_client(client, operation)
    digest = hashlib.blake2b(f"sizes|{operation}".encode(), digest_size=32).digest()
    found = transport.agree(operation, digest, processes, size.to_bytes(8, "little"))
    return {process: int.from_bytes(each, "little") for process, each in zip(processes, found, strict=True)}
