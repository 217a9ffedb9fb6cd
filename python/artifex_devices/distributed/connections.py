# SPDX-License-Identifier: Apache-2.0
"""Connects each process with each, so that an end is noticed: by Unix sockets on one host, by TCP between hosts."""

from __future__ import annotations

import fcntl
import hmac
import secrets
import socket
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any

from artifex_devices._base.caller import warn_user
from artifex_devices.distributed.peers import Peer, Peers

__all__ = ["Door", "connect_all"]

_HELLO = struct.Struct("!I32s32s")  # number of who calls, its token, the token of who is called
_IFADDR = 0x8915  # SIOCGIFADDR
_TRY_S = 3.0  # seconds for one address


class Door:
    """Where this process can be reached while the job begins. Who knocks must know its token.

    Attributes:
        card: What the others must know, of plain values.
    """

    def __init__(self, host: str, beyond_host: bool) -> None:
        """Opens a Unix socket, and a TCP port where other hosts take part."""
        self.token = secrets.token_bytes(32)
        name = f"\0artifex_devices-{secrets.token_hex(16)}"
        self.listeners = [socket.socket(socket.AF_UNIX)]
        self.listeners[0].bind(name)
        port = 0
        if beyond_host:
            self.listeners.append(socket.socket(socket.AF_INET))
            self.listeners[1].bind(("", 0))
            port = self.listeners[1].getsockname()[1]
        for listener in self.listeners:
            listener.listen(4096)
            listener.setblocking(False)
        addresses = interface_addresses() if beyond_host else []
        self.card: dict[str, Any] = {
            "host": host,
            "name": name,
            "port": port,
            "addresses": addresses,
            "token": self.token.hex(),
        }

    def close(self) -> None:
        """Nobody else is let in."""
        for listener in self.listeners:
            listener.close()


def interface_addresses() -> list[str]:
    """IPv4 addresses of this host's network interfaces, loopback left out."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(probe.fileno(), _IFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:
                continue  # no IPv4 address
            address = socket.inet_ntoa(answer[20:24])
            if not address.startswith("127."):
                found.append(address)
    return found


def connect_all(
    door: Door,
    me: int,
    names: Sequence[str],
    cards: Sequence[dict[str, Any]],
    exchange: Callable[[list[int]], list[list[int]]],
    silence: float,
) -> Peers:
    """Makes the connections: each process calls those with lower numbers, then lets in those that have called it.

    Args:
        door: Of this process; closed afterwards.
        me: Its number.
        names: Of all processes, for messages.
        cards: Of all processes.
        exchange: Hands every process the lists of all; waits for all.
        silence: Seconds without an answer from another host after which the connection to it counts as ended.

    Returns:
        The peers; those that cannot be reached (a firewall between hosts) have no connection, which is warned of.
    """
    connections: dict[int, socket.socket] = {}
    silent_hosts: set[str] = set()
    for number in range(me):
        if cards[number]["host"] not in silent_hosts:
            connection = _call(door, me, cards[number], cards[me]["host"])
            if connection is not None:
                connections[number] = connection
            else:
                silent_hosts.add(cards[number]["host"])
    called = exchange(sorted(connections))
    missing = {number for number in range(me + 1, len(cards)) if me in called[number]}
    deadline = time.monotonic() + _TRY_S
    while missing and time.monotonic() < deadline:
        for listener in door.listeners:
            found = _let_in(listener, door.token, cards)
            if found is not None:
                missing.discard(found[0])
                connections[found[0]] = found[1]
    door.close()
    for number in [n for n in connections if n < me]:
        connections[number].settimeout(_TRY_S)
        try:
            welcome = connections[number].recv(1)
        except OSError:
            welcome = b""
        if not welcome:  # somebody else's door
            connections.pop(number).close()
    for connection in connections.values():
        if connection.family == socket.AF_INET:
            _end_after_silence(connection, silence)
    unreachable = [names[n] for n in range(len(cards)) if n != me and n not in connections]
    if unreachable:
        warn_user(
            f"distributed.initialize: no connection to {', '.join(unreachable)}; expected TCP between the hosts; their "
            "end will be noticed by the deadline only; allow TCP between the hosts",
            RuntimeWarning,
        )
    return Peers([Peer(n, names[n], connections.get(n)) for n in range(len(cards)) if n != me])


def _end_after_silence(connection: socket.socket, seconds: float) -> None:
    """A host without power or cable closes nothing: the kernel asks whether it is there."""
    step = max(1, min(int(seconds / 4), 32767))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, step)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, step)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(min(seconds, 1e6) * 1000))


def _call(door: Door, me: int, card: dict[str, Any], host: str) -> socket.socket | None:
    ways: list[tuple[int, Any]] = [(socket.AF_UNIX, card["name"])] if card["host"] == host else []
    ways += [(socket.AF_INET, (address, card["port"])) for address in card["addresses"] if card["port"]]
    for family, address in ways:
        connection = socket.socket(family)
        connection.settimeout(_TRY_S)
        try:
            connection.connect(address)
            connection.sendall(_HELLO.pack(me, door.token, bytes.fromhex(card["token"])))
        except OSError:
            connection.close()
            continue
        return connection
    return None


def _let_in(listener: socket.socket, token: bytes, cards: Sequence[dict[str, Any]]) -> tuple[int, socket.socket] | None:
    try:
        connection, _ = listener.accept()
    except BlockingIOError:
        time.sleep(0.0005)
        return None
    connection.settimeout(_TRY_S)
    try:
        number, theirs, ours = _HELLO.unpack(connection.recv(_HELLO.size, socket.MSG_WAITALL))
        known = number < len(cards) and hmac.compare_digest(theirs, bytes.fromhex(cards[number]["token"]))
        if known and hmac.compare_digest(ours, token):
            connection.sendall(b"+")
            return number, connection
    except (OSError, struct.error):
        pass
    connection.close()  # a stranger
    return None
