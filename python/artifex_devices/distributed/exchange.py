# SPDX-License-Identifier: Apache-2.0
"""Functions that the core calls to reach other processes, and the bytes that reshards have sent."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from artifex_devices._base.digest import digest_of
from artifex_devices._core import Client, internal
from artifex_devices.distributed import transport as transports
from artifex_devices.distributed.tags import Tag


@dataclass(frozen=True)
class Traffic:
    """Bytes that reshards have sent and received so far in this process. Source: counted."""

    sent: Counter[int] = field(default_factory=Counter)  # by the number of the receiving process
    received: Counter[int] = field(default_factory=Counter)  # by the number of the sending process


_traffic: dict[int, Traffic] = {}


def traffic(client: Client | None = None) -> Traffic:
    """Returns the bytes that reshards of a client, or of the current world, have sent and received in this process."""
    uid = (internal.current_client() if client is None else client)._uid
    return _traffic.setdefault(uid, Traffic())


def forget(client: Client) -> None:
    """Drops the counters of a client."""
    _traffic.pop(client._uid, None)


def agree(client: Client, operation: str, processes: list[int], identity: str, payload: bytes = b"") -> list[bytes]:
    """Waits until these processes call the same operation with the same identity; returns the payload of each."""
    return transports.of_client(client, operation).agree(operation, digest_of(identity), processes, payload)


def refuse(client: Client, operation: str, processes: list[int], reason: str) -> None:
    """Reports to these processes, which wait in the operation, that this process will not come, and why."""
    transports.of_client(client, operation).refuse(operation, reason, processes)


class ReshardExchange:
    """The messages of one reshard: `Exchange` of the core (transfer/transport.h)."""

    def __init__(self, client: Client, operation: str, processes: list[int]) -> None:
        self._operation = operation
        self._processes = processes
        self._transport = transports.of_client(client, operation)
        self._traffic = traffic(client)
        self._messages = self._transport.exchange(operation)
        self._turn = contextlib.ExitStack()
        self._begun = 0

    def begin(self, identity: str) -> None:
        """Meets the other processes; no other operation comes in between until the end."""
        self._turn.enter_context(self._transport.exclusive(self._operation))
        self._transport.agree(self._operation, digest_of(identity), self._processes)

    def send(self, memory: NDArray[Any], peer: int) -> None:
        """Begins to send bytes."""
        self._messages.send(memory, peer, Tag.RESHARD, self._item(memory, peer, self._traffic.sent))

    def receive(self, memory: NDArray[Any], peer: int) -> None:
        """Begins to receive bytes."""
        self._messages.receive(memory, peer, Tag.RESHARD, self._item(memory, peer, self._traffic.received))

    def _item(self, memory: NDArray[Any], peer: int, counted: Counter[int]) -> tuple[int, int, int, Counter[int]]:
        self._begun += 1
        return self._begun - 1, peer, memory.nbytes, counted

    def wait_some(self) -> list[int]:
        """Waits until at least one message is done; the numbers of all that are, from 0 in the order of begin."""
        done = self._messages.wait_some()
        for _, peer, size, counted in done:
            counted[peer] += size
        return [number for number, *_ in done]

    def finish(self) -> None:
        """Ends the operation after all its messages are done."""
        with self._turn:
            self._messages.finish()

    def give_up(self, reason: str) -> None:
        """Ends the operation by an error."""
        with self._turn:
            self._messages.give_up(reason)


def gather_sizes(client: Client, operation: str, processes: list[int], size: int) -> dict[int, int]:
    """Returns the sizes that these processes, ascending, pass; all of them call it, else it raises CollectiveError."""
    found = agree(client, operation, processes, f"sizes|{operation}", size.to_bytes(8, "little"))
    return {process: int.from_bytes(each, "little") for process, each in zip(processes, found, strict=True)}
