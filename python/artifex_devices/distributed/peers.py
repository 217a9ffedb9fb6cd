# SPDX-License-Identifier: Apache-2.0
"""The state of the other processes, and messages that report failures. Polled during waits, without a thread."""

from __future__ import annotations

import json
import select
import socket
import struct
import threading
import time
from collections.abc import Iterable, Mapping

_LENGTH = struct.Struct("!I")
_MAX_MESSAGE = 1 << 16  # bytes
_MAX_TEXT = 8000  # characters of one text in it
_MAX_TEXT_BYTES = 30_000  # of one text; a message holds two


class Peer:
    """State of another process, by the messages that it has sent."""

    def __init__(self, number: int, name: str, connection: socket.socket | None) -> None:
        self.number = number  # its process index
        self.name = name  # "process 1 (pid 4711 on node7)"
        self.connection = connection  # without one nothing is received from it
        self.state = "here"  # "left" (its program or its part in the job has ended), "failed", "lost" (without notice)
        self.reason = ""  # of its failure
        self.is_echo = False  # whether it failed only because another process has
        self.position = ""  # the operation where it waits, or "" if unknown
        self.has_reported = False  # whether it has sent its position
        self.received = bytearray()  # the beginning of the next message
        self.unsent = bytearray()  # bytes that the connection has not taken yet


class PeerStates:
    """The states of all other processes of the job; subclasses carry the messages that change them."""

    def __init__(self, peers: Iterable[Peer]) -> None:
        self.by_number = {peer.number: peer for peer in peers}
        self.stuck_reason = ""  # why another process asks for everybody's position

    def poll(self) -> bool:
        """Reads what has arrived, without waiting; returns whether anything has."""
        raise NotImplementedError

    def sleep(self, seconds: float) -> None:
        """Sleeps until the time is over or a message arrives."""
        raise NotImplementedError

    def send_failed(self, reason: str, is_echo: bool = False) -> None:
        """Reports that this process has failed, and why; an echo repeats the failure of another process."""
        self._broadcast({"kind": "failed", "reason": _short(reason), "is_echo": is_echo})

    def send_left(self) -> None:
        """Reports that this process takes no further part."""
        self._broadcast({"kind": "left"})

    def send_stuck(self, reason: str, position: str) -> None:
        """Reports a mismatch and the position of this process; other processes answer with their positions."""
        self._broadcast({"kind": "stuck", "reason": _short(reason), "position": _short(position)})

    def broken(self) -> Peer | None:
        """Returns a peer that has failed or is lost; prefers a peer that failed by itself."""
        found = [peer for peer in self.by_number.values() if peer.state in ("failed", "lost")]
        return min(found, key=lambda peer: (peer.is_echo, peer.state == "lost"), default=None)

    def handle(self, peer: Peer, message: Mapping[str, object]) -> None:
        """Records a peer's report."""
        kind = message.get("kind")
        if kind == "failed":
            peer.state = "failed"
            peer.reason = str(message.get("reason", ""))
            peer.is_echo = bool(message.get("is_echo"))
        elif kind == "left" and peer.state == "here":
            peer.state = "left"
        elif kind == "stuck":
            peer.position = str(message.get("position", ""))
            peer.has_reported = True
            self.stuck_reason = self.stuck_reason or str(message.get("reason", ""))

    def _broadcast(self, message: Mapping[str, object]) -> None:
        """Sends a message to all peers. Never waits."""
        raise NotImplementedError


class Peers(PeerStates):
    """The connections of this process to all others of the job.

    The kernel closes a connection when its process ends, however it ends; notices arrive before that. One thread waits
    here while others may report failures.
    """

    def __init__(self, peers: list[Peer]) -> None:
        """Owns the connections of these peers from now on."""
        super().__init__(peers)
        self._lock = threading.RLock()  # of the connections and their bytes
        self._poll: select.epoll | None = select.epoll()
        self._by_file: dict[int, Peer] = {}
        for peer in peers:
            if peer.connection is not None:
                peer.connection.setblocking(False)
                self._by_file[peer.connection.fileno()] = peer
                self._poll.register(peer.connection.fileno(), select.EPOLLIN | select.EPOLLRDHUP)
        self._poll_fits_select = self._poll.fileno() < 1024

    def poll(self) -> bool:
        """Implements PeerStates.poll."""
        with self._lock:
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
        """Implements PeerStates.sleep."""
        if self._poll is None or not self._poll_fits_select:
            time.sleep(seconds)
        else:
            select.select([self._poll], [], [], seconds)  # epoll itself counts in milliseconds

    def close(self) -> None:
        """Closes all connections; peers see this as the end of this process.

        It takes no lock, because in a forked child a lock may stay held forever.
        """
        if self._poll is None:
            return
        self._poll.close()
        self._poll = None
        for peer in self.by_number.values():
            self._drop(peer)

    def _broadcast(self, message: Mapping[str, object]) -> None:
        """Sends without waiting: a later poll sends the bytes that the connections do not accept now."""
        data = json.dumps(message).encode()
        if len(data) > _MAX_MESSAGE:
            return
        with self._lock:
            for peer in self.by_number.values():
                if peer.connection is not None and len(peer.unsent) < _MAX_MESSAGE:
                    peer.unsent += _LENGTH.pack(len(data)) + data
                    self._send(peer)

    def _send(self, peer: Peer) -> None:
        assert peer.connection is not None
        try:
            del peer.unsent[: peer.connection.send(peer.unsent)]
        except BlockingIOError:
            pass
        except OSError:  # closed, which reading will notice
            peer.unsent.clear()

    def _read(self, peer: Peer) -> None:
        assert peer.connection is not None
        ended = False
        while not ended:
            try:
                data = peer.connection.recv(1 << 16)
            except BlockingIOError:
                break
            except OSError:  # reset: the same as closed
                data = b""
            ended = not data
            peer.received += data
        while len(peer.received) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(peer.received)
            if length > _MAX_MESSAGE:
                ended = True
                break
            if len(peer.received) < _LENGTH.size + length:
                break
            text = bytes(peer.received[_LENGTH.size : _LENGTH.size + length])
            del peer.received[: _LENGTH.size + length]
            self._handle_text(peer, text)
        if ended:
            if peer.state == "here":
                peer.state = "lost"
            if self._poll is not None:
                self._poll.unregister(peer.connection.fileno())
            self._drop(peer)

    def _handle_text(self, peer: Peer, text: bytes) -> None:
        try:
            message = json.loads(text)
        except ValueError:
            return
        if isinstance(message, dict):
            self.handle(peer, message)

    def _drop(self, peer: Peer) -> None:
        if peer.connection is not None:
            self._by_file.pop(peer.connection.fileno(), None)
            peer.connection.close()
            peer.connection = None


def _short(text: str) -> str:
    """Returns the beginning of a text. JSON needs up to 12 bytes for a character."""
    text = text[:_MAX_TEXT]
    while len(json.dumps(text)) > _MAX_TEXT_BYTES:
        text = text[: len(text) // 2]
    return text
