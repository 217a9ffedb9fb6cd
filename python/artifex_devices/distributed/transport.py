# SPDX-License-Identifier: Apache-2.0
"""The transport of each client, which carries bytes between processes, and the messages of one operation."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from artifex_devices._base.checks import failure
from artifex_devices._core import Client, internal
from artifex_devices.distributed.failure_notice import error_text

if TYPE_CHECKING:
    from artifex_devices.distributed.flight_records import FlightRecords
    from artifex_devices.distributed.local_peers import LocalPeers


class Message(abc.ABC):
    """A message in flight."""

    buffer: memoryview  # the bytes that are sent, or the memory that they are received in

    @abc.abstractmethod
    def is_done(self) -> bool:
        """Returns whether the buffer may be used again: it has been sent or filled. Advances the message."""


class Transport(abc.ABC):
    """Sends bytes between the processes of one job. All processes call the same operations in the same order.

    Messages of one sender, one receiver and one tag arrive in the order in which they were sent. Waits end when the
    deadline is over (`config.collective_timeout_s`), a peer has died or Ctrl-C was pressed, with an error that names
    the operation and the processes. Only one thread of a process may use it at a time.

    After a mismatch, a dead process, a missed deadline or Ctrl-C no process knows what other processes do next: then
    the transport is broken, and every later call raises the cause.
    """

    process_index: int
    process_count: int
    broken: str  # why every further call fails, or ""
    flight: FlightRecords | None = None  # where operations are recorded
    # Of all processes, by number, where they are in one interpreter: what each leaves for others without a message.
    left_for_others: dict[int, list[Any]] | None = None
    traced_meetings: Mapping[int, int] = MappingProxyType({})  # numbers in open traces of the last ones, by thread

    @abc.abstractmethod
    def agree(self, operation: str, digest: bytes, processes: Sequence[int], payload: bytes = b"") -> list[bytes]:
        """Waits until all of `processes`, including this process, call the same operation with the same digest.

        Args:
            operation: The operation in words, for messages: "device_put of float32[8,4] to ...".
            digest: At most 32 bytes that are equal where the operations are.
            processes: Process numbers, ascending.
            payload: Data for the other processes; at most `max_payload(processes)` bytes.

        Returns:
            The payload of each of `processes`.

        Raises:
            CollectiveError: A process called `agree` with another digest, refused, has ended, or did not call it in
                time. Every process raises it, with the operation of each.
        """

    @abc.abstractmethod
    def max_payload(self, processes: Sequence[int]) -> int:
        """Returns the bytes that `agree` of these processes carries; at least 64, the same in each of them."""

    @abc.abstractmethod
    def local_peers(self, processes: Sequence[int]) -> LocalPeers | None:
        """Returns the shared memory of these processes, including this one, or None in all of them without it."""

    def exclusive(self, operation: str) -> contextlib.AbstractContextManager[None]:
        """Makes a `with` block of an operation with other processes (`agree`, then messages) for one thread at a time.

        CollectiveError, in all processes, where another thread of this process is in an operation.
        """
        return contextlib.nullcontext()

    def exchange(self, operation: str) -> Exchange:
        """Makes a `with` block that sends and receives the messages of an operation."""
        return Exchange(self, operation)

    @abc.abstractmethod
    def refuse(self, operation: str, reason: str, processes: Sequence[int]) -> None:
        """Reports to the `processes` that wait in `agree` that this process will not call it, and why. Never waits."""

    @abc.abstractmethod
    def isend(self, buffer: object, peer: int, tag: int) -> Message:
        """Begins to send contiguous bytes; the caller must not change them until the message is done."""

    @abc.abstractmethod
    def irecv(self, buffer: object, peer: int, tag: int) -> Message:
        """Begins to receive exactly as many bytes as `buffer`, contiguous and writable, has."""

    @abc.abstractmethod
    def wait_some(self, messages: Sequence[Message], operation: str) -> list[int]:
        """Waits until at least one message is done; returns the indexes of all done ones."""

    @abc.abstractmethod
    def wait_until(self, done: Callable[[], bool], operation: str, nbytes: int) -> None:
        """Waits until `done()`, which drives the operation, returns true; `nbytes` of data scale how long it polls."""

    @abc.abstractmethod
    def cancel(self, messages: Sequence[Message], reason: str) -> None:
        """Gives up messages because of an error; afterwards the caller may use their buffers again."""

    @abc.abstractmethod
    def fail(self, reason: str) -> None:
        """Reports to all other processes that this process cannot continue, which ends their waits. Never waits."""


class Exchange:
    """The messages of one operation that are not done; an exception in its `with` block gives them up."""

    def __init__(self, transport: Transport, operation: str) -> None:
        self._transport = transport
        self._operation = operation
        self._messages: list[Message] = []
        self._items: list[Any] = []
        self._nbytes = 0
        self._number = 0  # of the event in the flight record
        self._begin_ns = 0  # in open traces

    def __len__(self) -> int:
        return len(self._messages)

    def send(self, memory: object, peer: int, tag: int, item: object = None) -> None:
        """Begins to send contiguous bytes, unchanged until it is done; then `wait_some` returns `item`."""
        self._add(self._transport.isend(memory, peer, tag), item)

    def receive(self, memory: object, peer: int, tag: int, item: object = None) -> None:
        """Begins to receive exactly as many bytes as contiguous memory has; `wait_some` returns `item` after it."""
        self._add(self._transport.irecv(memory, peer, tag), item)

    def _add(self, message: Message, item: object) -> None:
        flight = self._transport.flight
        if flight:
            self._number = self._number or flight.recorder.exchange(self._operation, False)
        self._begin_ns = self._begin_ns or internal.trace_begin()
        if flight or self._begin_ns:
            self._nbytes += len(message.buffer)
        self._messages.append(message)
        self._items.append(item)

    def wait_some(self) -> list[Any]:
        """Waits until at least one message is done; removes all done ones and returns their items."""
        done = self._transport.wait_some(self._messages, self._operation)
        items = [self._items[place] for place in done]
        for place in sorted(done, reverse=True):
            del self._messages[place], self._items[place]
        return items

    def wait_all(self) -> None:
        """Waits until all messages are done."""
        while self._messages:
            self.wait_some()

    def finish(self) -> None:
        """Records that the exchange has ended."""
        self._record_end(is_complete=True)

    def give_up(self, reason: str) -> None:
        """Gives up the messages that are not done, because of an error."""
        self._record_end(is_complete=False)
        self._transport.cancel(self._messages, reason)

    def _record_end(self, *, is_complete: bool) -> None:
        flight = self._transport.flight
        if flight and self._number:
            end = flight.recorder.end if is_complete else flight.recorder.fail
            end(self._number, self._nbytes)
        if self._begin_ns:
            process = self._transport.process_index
            internal.trace_event("exchange", self._operation, "messages", self._begin_ns, process, self._nbytes)

    def __enter__(self) -> Exchange:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.finish()
        else:
            self.give_up(error_text(error))


installed: dict[int, Transport] = {}  # by the uid of their client


def install(client: Client, transport: Transport) -> None:
    """Sets the transport of a client, which is of the same process."""
    installed[client._uid] = transport


def remove(client: Client) -> None:
    """Removes the transport of a client."""
    installed.pop(client._uid, None)


def is_installed(client: Client) -> bool:
    """Returns whether a client has a transport to the other processes."""
    return client._uid in installed


def of_client(client: Client, operation: str) -> Transport:
    """Returns the transport of a client; RuntimeError outside of `distributed.initialize` to `distributed.shutdown`."""
    found = installed.get(client._uid)
    if found is None:
        raise failure(
            RuntimeError,
            operation,
            "data would go to another process, but no transport is installed",
            expected="that of distributed.initialize() or testing.run_processes()",
            fix="call it first, and distributed.shutdown() only at the end",
        )
    return found
