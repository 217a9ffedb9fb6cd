# SPDX-License-Identifier: Apache-2.0
"""Whether the other processes live, and what they say when something goes wrong. No thread: looked at while we wait."""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from collections.abc import Mapping
from typing import Any

__all__ = ["Peer", "Peers"]

_LENGTH = struct.Struct("!I")
_MOST = 1 << 16  # bytes of one message
_TEXT = 8000  # characters of one text in it
_TEXT_BYTES = 30_000  # and its bytes, so that two texts fit


class Peer:
    """Another process, as far as it is known.

    Attributes:
        number: Its process index.
        name: "process 1 (pid 4711 on node7)".
        state: "here", "left" (its program or its part in the job has ended), "failed" or "lost" (gone without a word).
        reason: What it said of its failure.
        is_echo: Whether it failed only because another process has.
        position: Where it waits, if it told.
    """

    def __init__(self, number: int, name: str, connection: socket.socket | None) -> None:
        """A process that is here; without a connection nothing will be heard of it."""
        self.number = number
        self.name = name
        self.connection = connection
        self.state = "here"
        self.reason = ""
        self.is_echo = False
        self.position = ""
        self.buffer = bytearray()  # heard in part
        self.unsent = bytearray()  # what did not fit into the connection yet


class Peers:
    """The connections of this process to all others of the job.

    A connection ends when its process does, however it does: the kernel sees to it. Farewells come before.
    """

    def __init__(self, peers: list[Peer]) -> None:
        """Takes the connections over."""
        self.by_number = {peer.number: peer for peer in peers}
        self.stuck_reason = ""  # why another process asks where all of them are
        self._poll: select.epoll | None = select.epoll()
        self._by_file: dict[int, Peer] = {}
        for peer in peers:
            if peer.connection is not None:
                peer.connection.setblocking(False)
                self._by_file[peer.connection.fileno()] = peer
                self._poll.register(peer.connection.fileno(), select.EPOLLIN | select.EPOLLRDHUP)
        self._poll_fits_select = self._poll.fileno() < 1024

    def look(self) -> bool:
        """Reads what has come, without waiting; whether anything has."""
        if self._poll is None:
            return False
        for peer in self._by_file.values():
            if peer.unsent:
                self._send(peer)
        events = self._poll.poll(0)
        for file, _ in events:
            if file in self._by_file:
                self._read(self._by_file[file])
        return bool(events)

    def sleep(self, seconds: float) -> None:
        """Sleeps until the time is over or a peer has something to say."""
        if self._poll is None or not self._poll_fits_select:
            time.sleep(seconds)
        else:
            select.select([self._poll], [], [], seconds)  # epoll itself counts in milliseconds

    def tell(self, message: Mapping[str, Any]) -> None:
        """Says something to all that are here. Never waits: what does not fit now goes with a later look."""
        data = json.dumps(message).encode()
        if len(data) > _MOST:
            return
        for peer in self.by_number.values():
            if peer.connection is not None and len(peer.unsent) < _MOST:
                peer.unsent += _LENGTH.pack(len(data)) + data
                self._send(peer)

    def say_failed(self, reason: str, is_echo: bool = False) -> None:
        """Tells the others that this process cannot go on, and why; an echo repeats what it heard of another."""
        self.tell({"kind": "failed", "reason": _short(reason), "is_echo": is_echo})

    def say_left(self) -> None:
        """Tells the others that this process takes no further part."""
        self.tell({"kind": "left"})

    def say_stuck(self, reason: str, position: str) -> None:
        """Tells the others that something does not fit, and where this process is; they answer likewise."""
        self.tell({"kind": "stuck", "reason": _short(reason), "position": _short(position)})

    def broken(self) -> Peer | None:
        """One that has failed or is lost; those that failed by themselves before the others."""
        found = [peer for peer in self.by_number.values() if peer.state in ("failed", "lost")]
        return min(found, key=lambda peer: (peer.is_echo, peer.state == "lost"), default=None)

    def close(self) -> None:
        """Closes all connections; the peers see this process end."""
        if self._poll is None:
            return
        self._poll.close()
        self._poll = None
        for peer in self.by_number.values():
            self._drop(peer)

    def _send(self, peer: Peer) -> None:
        assert peer.connection is not None
        try:
            del peer.unsent[: peer.connection.send(peer.unsent)]
        except BlockingIOError:
            pass
        except OSError:  # closed: reading will tell
            peer.unsent.clear()

    def _read(self, peer: Peer) -> None:
        assert peer.connection is not None
        ended = False
        while True:
            try:
                data = peer.connection.recv(1 << 16)
            except BlockingIOError:
                break
            except OSError:  # reset: as good as closed
                data = b""
            if not data:
                ended = True
                break
            peer.buffer += data
        while len(peer.buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(peer.buffer)
            if length > _MOST:
                ended = True
                break
            if len(peer.buffer) < _LENGTH.size + length:
                break
            text = bytes(peer.buffer[_LENGTH.size : _LENGTH.size + length])
            del peer.buffer[: _LENGTH.size + length]
            self._hear(peer, text)
        if ended:
            if peer.state == "here":
                peer.state = "lost"
            if self._poll is not None:
                self._poll.unregister(peer.connection.fileno())
            self._drop(peer)

    def _hear(self, peer: Peer, text: bytes) -> None:
        try:
            message = json.loads(text)
            kind = message["kind"]
        except (ValueError, KeyError, TypeError):
            return
        if kind == "failed":
            peer.state = "failed"
            peer.reason = str(message.get("reason", ""))
            peer.is_echo = bool(message.get("is_echo"))
        elif kind == "left" and peer.state == "here":
            peer.state = "left"
        elif kind == "stuck":
            peer.position = str(message.get("position", ""))
            self.stuck_reason = self.stuck_reason or str(message.get("reason", ""))

    def _drop(self, peer: Peer) -> None:
        if peer.connection is not None:
            self._by_file.pop(peer.connection.fileno(), None)
            peer.connection.close()
            peer.connection = None


def _short(text: str) -> str:
    """The beginning of a text. JSON needs up to 12 bytes for a character."""
    text = text[:_TEXT]
    while len(json.dumps(text)) > _TEXT_BYTES:
        text = text[: len(text) // 2]
    return text
