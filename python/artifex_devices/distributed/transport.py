# SPDX-License-Identifier: Apache-2.0
"""The transport of each client, which carries bytes between processes, and the messages of one operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from artifex_devices._core import Client

if TYPE_CHECKING:
    from artifex_devices.distributed.mpi_transport import Message, MpiTransport


class InFlight:
    """The messages of one operation that are not done; an exception in its `with` block gives them up."""

    def __init__(self, transport: MpiTransport, operation: str) -> None:
        self._transport = transport
        self._operation = operation
        self._requests: list[Message] = []
        self._items: list[Any] = []
        self._nbytes = 0
        self._number = 0  # of the event in the flight record

    def __len__(self) -> int:
        return len(self._requests)

    def add(self, request: Message, item: Any = None) -> None:
        """Adds a message that has begun, and what `wait_some` returns for it; `item` keeps memory alive too."""
        if not self._nbytes:
            self._number = self._transport.exchange_begins(self._operation)
        self._nbytes += len(request.buffer)
        self._requests.append(request)
        self._items.append(item)

    def wait_some(self) -> list[Any]:
        """Waits until at least one message is done; removes all done ones and returns their items."""
        done = self._transport.wait_some(self._requests, self._operation)
        items = [self._items[place] for place in done]
        for place in sorted(done, reverse=True):
            del self._requests[place], self._items[place]
        return items

    def wait_all(self) -> None:
        """Waits until all messages are done."""
        while self._requests:
            self.wait_some()

    def __enter__(self) -> InFlight:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if self._nbytes:
            self._transport.exchange_ends(self._number, self._nbytes, failed=kind is not None)
        if kind is not None:
            self._transport.cancel(self._requests)


_transports: dict[int, MpiTransport] = {}


def install(client: Client, transport: MpiTransport) -> None:
    """Sets the transport of a client, which is of the same process."""
    _transports[client._uid] = transport


def of_client(client: Client, operation: str) -> MpiTransport:
    """The transport of a client; RuntimeError before `distributed.initialize` and after `distributed.shutdown`."""
    found = _transports.get(client._uid)
    if found is None:
        raise RuntimeError(
            f"{operation}: data would go to another process, but no transport is installed; expected that of "
            "distributed.initialize(); call it first, and distributed.shutdown() only at the end"
        )
    return found
