# SPDX-License-Identifier: Apache-2.0
"""How bytes go from process to process: what a transport must do, and which one a client has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from artifex_devices._core import Client

if TYPE_CHECKING:
    from artifex_devices.distributed.local_peers import Neighbours

__all__ = ["Request", "Transport", "install", "of_client", "remove"]

# A message under way; only the transport that made it looks inside.
Request = Any


class Transport(Protocol):
    """Sends bytes between the processes of one job. All processes call the same operations in the same order.

    Messages of one sender, one receiver and one tag arrive in the order in which they were sent. Waits end when the
    deadline is over (`config.collective_timeout_s`), a peer has died or Ctrl-C was pressed, with an error that names
    the operation and the processes.
    """

    @property
    def process_index(self) -> int:
        """Number of this process."""
        ...

    @property
    def process_count(self) -> int:
        """How many processes there are."""
        ...

    def agree(self, operation: str, digest: bytes, processes: Sequence[int], payload: bytes = b"") -> list[bytes]:
        """Waits until all of `processes`, of which this is one, come to the same operation with the same digest.

        Args:
            operation: What is done, in words, for messages: "device_put of float32[8,4] to ...".
            digest: At most 32 bytes that are equal where the operations are.
            processes: Ascending.
            payload: For the others; at most `most_payload(processes)` bytes.

        Returns:
            The payload of each of `processes`.

        Raises:
            RuntimeError: A process came with another digest, refused, has ended, or did not come in time; every process
                gets it, with the operation of each.
        """
        ...

    def most_payload(self, processes: Sequence[int]) -> int:
        """Bytes that `agree` of these processes carries; at least 64, the same in each of them."""
        ...

    def neighbours(self, processes: Sequence[int]) -> Neighbours | None:
        """What these processes, of which this is one, share memory by; None, in all of them, where they do not."""
        ...

    def wait_until(self, done: Callable[[], bool], operation: str, nbytes: int) -> None:
        """Waits until `done()`, which moves the operation on; `nbytes` says for how long it may take."""
        ...

    def refuse(self, operation: str, reason: str, processes: Sequence[int]) -> None:
        """Tells those of `processes` that wait in `agree` that this process does not come, and why. Never waits."""
        ...

    def fail(self, reason: str) -> None:
        """Tells all other processes that this one cannot go on, which ends their waits. Never waits."""
        ...

    def isend(self, buffer: Any, peer: int, tag: int) -> Request:
        """Begins to send contiguous bytes, which stay as they are until the request is done."""
        ...

    def irecv(self, buffer: Any, peer: int, tag: int) -> Request:
        """Begins to receive exactly as many bytes as `buffer`, contiguous and writable, has."""
        ...

    def wait_some(self, requests: Sequence[Request], operation: str) -> list[int]:
        """Waits until at least one request is done; the places of all that are, in `requests`."""
        ...

    def cancel(self, requests: Sequence[Request]) -> None:
        """Gives up requests after an error; their buffers are the caller's again when it returns."""
        ...


_transports: dict[int, Transport] = {}


def install(client: Client, transport: Transport) -> None:
    """Makes a transport that of a global client.

    Raises:
        ValueError: The transport is of another process, or of another number of them, than the client.
    """
    if (transport.process_index, transport.process_count) != (client.process_index(), client.process_count()):
        raise ValueError(
            f"install: the transport is of process {transport.process_index} of {transport.process_count}; expected "
            f"{client.process_index()} of {client.process_count()}, as the client is; make both for the same job"
        )
    _transports[client._uid] = transport


def remove(client: Client) -> None:
    """Takes a client's transport away; nothing where it has none."""
    _transports.pop(client._uid, None)


def of_client(client: Client, operation: str) -> Transport:
    """The transport of a client.

    Raises:
        RuntimeError: It has none: `distributed.initialize` was not called, or `distributed.shutdown` was.
    """
    found = _transports.get(client._uid)
    if found is None:
        raise RuntimeError(
            f"{operation}: data would go to another process, but there is no transport; expected one, of "
            "distributed.initialize(); call it first, and distributed.shutdown() only at the end"
        )
    return found
