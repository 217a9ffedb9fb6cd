# SPDX-License-Identifier: Apache-2.0
"""The interface of transports, which carry bytes between processes, and the transport of each client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from artifex_devices._core import Client

if TYPE_CHECKING:
    from artifex_devices.distributed.local_peers import LocalPeers

# A message in flight; only the transport that created it looks inside.
Request = Any


class Transport(Protocol):
    """Sends bytes between the processes of one job. All processes call the same operations in the same order.

    Messages of one sender, one receiver and one tag arrive in the order in which they were sent. Waits end when the
    deadline is over (`config.collective_timeout_s`), a peer has died or Ctrl-C was pressed, with an error that names
    the operation and the processes.
    """

    process_index: int  # number of this process
    process_count: int

    def agree(self, operation: str, digest: bytes, processes: Sequence[int], payload: bytes = b"") -> list[bytes]:
        """Waits until all of `processes`, which include this one, come to the same operation with the same digest.

        Args:
            operation: The operation in words, for messages: "device_put of float32[8,4] to ...".
            digest: At most 32 bytes that are equal where the operations are.
            processes: Process numbers, ascending.
            payload: Data for the others; at most `max_payload(processes)` bytes.

        Returns:
            The payload of each of `processes`.

        Raises:
            CollectiveError: A process came with another digest, refused, has ended, or did not come in time. Every
                process raises it, with the operation of each.
        """
        ...

    def max_payload(self, processes: Sequence[int]) -> int:
        """Bytes that `agree` of these processes carries; at least 64, the same in each of them."""
        ...

    def local_peers(self, processes: Sequence[int]) -> LocalPeers | None:
        """The shared memory of these processes, which include this one; None, in all of them, where there is none."""
        ...

    def wait_until(self, done: Callable[[], bool], operation: str, nbytes: int) -> None:
        """Waits until `done()`, which drives the operation, returns true; `nbytes` of data scale how long it polls."""
        ...

    def refuse(self, operation: str, reason: str, processes: Sequence[int]) -> None:
        """Reports to those of `processes` that wait in `agree` that this one does not come, and why. Never waits."""
        ...

    def fail(self, reason: str) -> None:
        """Reports to all other processes that this one cannot go on, which ends their waits. Never waits."""
        ...

    def isend(self, buffer: Any, peer: int, tag: int) -> Request:
        """Begins to send contiguous bytes, which must not change until the request is done."""
        ...

    def irecv(self, buffer: Any, peer: int, tag: int) -> Request:
        """Begins to receive exactly as many bytes as `buffer`, contiguous and writable, has."""
        ...

    def wait_some(self, requests: Sequence[Request], operation: str) -> list[int]:
        """Waits until at least one request is done; returns the indexes of all done ones."""
        ...

    def cancel(self, requests: Sequence[Request]) -> None:
        """Gives up requests after an error; afterwards the caller may use their buffers again."""
        ...


def wait_all(transport: Transport, requests: list[Request], operation: str) -> None:
    """Waits for all requests; removes those that are done."""
    while requests:
        for place in sorted(transport.wait_some(requests, operation), reverse=True):
            requests.pop(place)


_transports: dict[int, Transport] = {}


def install(client: Client, transport: Transport) -> None:
    """Sets the transport of a client; ValueError where process index or count differ from the client's."""
    if (transport.process_index, transport.process_count) != (client.process_index(), client.process_count()):
        raise ValueError(
            f"install: the transport is of process {transport.process_index} of {transport.process_count}; expected "
            f"{client.process_index()} of {client.process_count()}, as the client is; make both for the same job"
        )
    _transports[client._uid] = transport


def remove(client: Client) -> None:
    """Removes a client's transport, if it has one."""
    _transports.pop(client._uid, None)


def of_client(client: Client, operation: str) -> Transport:
    """The transport of a client; RuntimeError before `distributed.initialize` and after `distributed.shutdown`."""
    found = _transports.get(client._uid)
    if found is None:
        raise RuntimeError(
            f"{operation}: data would go to another process, but no transport is installed; expected that of "
            "distributed.initialize(); call it first, and distributed.shutdown() only at the end"
        )
    return found
