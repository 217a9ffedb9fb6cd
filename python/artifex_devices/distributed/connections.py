# SPDX-License-Identifier: Apache-2.0
"""Connects every two processes to notice when one ends: by Unix sockets on one host, by TCP between hosts."""

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

_HELLO = struct.Struct("!I32s32s")  # number of the connecting process, its token, the token of the other process
_IFADDR = 0x8915  # SIOCGIFADDR
_TRY_S = 3.0  # seconds for one address


class Listener:
    """The addresses where this process accepts connections while the job starts; callers must know its token."""

    def __init__(self, host: str, beyond_host: bool) -> None:
        """Opens a Unix socket, and a TCP port where processes of other hosts take part."""
        self.token = secrets.token_bytes(32)
        name = f"\0artifex_devices-{secrets.token_hex(16)}"
        self.sockets = [socket.socket(socket.AF_UNIX)]
        self.sockets[0].bind(name)
        port = 0
        if beyond_host:
            self.sockets.append(socket.socket(socket.AF_INET))
            self.sockets[1].bind(("", 0))
            port = self.sockets[1].getsockname()[1]
        for each in self.sockets:
            each.listen(4096)
            each.setblocking(False)
        addresses = interface_addresses() if beyond_host else []
        self.contact: dict[str, Any] = {"host": host, "name": name, "port": port, "addresses": addresses}
        self.contact["token"] = self.token.hex()

    def close(self) -> None:
        """Accepts no further connections."""
        for each in self.sockets:
            each.close()


def interface_addresses() -> list[str]:
    """Returns IPv4 addresses of this host's network interfaces, without loopback."""
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
    listener: Listener,
    me: int,
    names: Sequence[str],
    contacts: Sequence[dict[str, Any]],
    exchange: Callable[[list[int]], list[list[int]]],
    silence_s: float,
) -> Peers:
    """Connects this process, number `me`, to processes with lower numbers, then accepts connections from higher ones.

    `names` and `contacts` have an entry for each process; `exchange` gives every process the values of all processes. A
    connection to another host counts as ended after `silence_s` without an answer. Warns of processes that cannot be
    reached (a firewall between hosts); they have no connection. Closes the listener.
    """
    connections: dict[int, socket.socket] = {}
    silent_hosts: set[str] = set()
    for number in range(me):
        if contacts[number]["host"] not in silent_hosts:
            connection = _connect(listener, me, contacts[number], contacts[me]["host"])
            if connection is not None:
                connections[number] = connection
            else:
                silent_hosts.add(contacts[number]["host"])
    connected = exchange(sorted(connections))
    missing = {number for number in range(me + 1, len(contacts)) if me in connected[number]}
    deadline = time.monotonic() + _TRY_S
    while missing and time.monotonic() < deadline:
        for each in listener.sockets:
            accepted = _accept(each, listener.token, contacts)
            if accepted is not None:
                missing.discard(accepted[0])
                connections[accepted[0]] = accepted[1]
    listener.close()
    for number in [n for n in connections if n < me]:
        connections[number].settimeout(_TRY_S)
        try:
            welcome = connections[number].recv(1)
        except OSError:
            welcome = b""
        if not welcome:  # another program listens at that address
            connections.pop(number).close()
    for connection in connections.values():
        if connection.family == socket.AF_INET:
            _end_after_silence(connection, silence_s)
    unreachable = [names[n] for n in range(len(contacts)) if n != me and n not in connections]
    if unreachable:
        warn_user(
            f"distributed.initialize: no connection to {', '.join(unreachable)}; expected TCP between the hosts; only "
            "the deadline will notice their end; allow TCP between the hosts",
            RuntimeWarning,
        )
    return Peers([Peer(n, names[n], connections.get(n)) for n in range(len(contacts)) if n != me])


def _end_after_silence(connection: socket.socket, seconds: float) -> None:
    """Lets the kernel poll whether the host still answers: one without power or cable closes nothing."""
    step = max(1, min(int(seconds / 4), 32767))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, step)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, step)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(min(seconds, 1e6) * 1000))


def _connect(listener: Listener, me: int, contact: dict[str, Any], host: str) -> socket.socket | None:
    routes: list[tuple[int, Any]] = [(socket.AF_UNIX, contact["name"])] if contact["host"] == host else []
    routes += [(socket.AF_INET, (address, contact["port"])) for address in contact["addresses"] if contact["port"]]
    for family, address in routes:
        connection = socket.socket(family)
        connection.settimeout(_TRY_S)
        try:
            connection.connect(address)
            connection.sendall(_HELLO.pack(me, listener.token, bytes.fromhex(contact["token"])))
        except OSError:
            connection.close()
            continue
        return connection
    return None


def _accept(
    listening: socket.socket, token: bytes, contacts: Sequence[dict[str, Any]]
) -> tuple[int, socket.socket] | None:
    try:
        connection, _ = listening.accept()
    except BlockingIOError:
        time.sleep(0.0005)
        return None
    connection.settimeout(_TRY_S)
    try:
        number, theirs, ours = _HELLO.unpack(connection.recv(_HELLO.size, socket.MSG_WAITALL))
        known = number < len(contacts) and hmac.compare_digest(theirs, bytes.fromhex(contacts[number]["token"]))
        if known and hmac.compare_digest(ours, token):
            connection.sendall(b"+")
            return number, connection
    except (OSError, struct.error):
        pass
    connection.close()  # not a process of this job
    return None
