# SPDX-License-Identifier: Apache-2.0
"""Processes of one host share memory: records and big sums go through it instead of MPI."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from typing import Any

from artifex_devices._base.caller import warn_user
from artifex_devices._core import internal
from artifex_devices._core.internal import FlightGroup
from artifex_devices.config import config
from artifex_devices.distributed.consistency import CAME, REFUSED, MeetingPoint
from artifex_devices.distributed.peers import Peers

_MAX_TEXT = 500  # bytes of a record
_POLL_S = 30e-6  # how long one poll waits for records


class LocalPeers:
    """All processes of this host, including the current process."""

    # Bytes that one record carries.
    max_payload = internal.SharedChannels.max_message_bytes - internal.MEETING_HEAD_BYTES - _MAX_TEXT

    def __init__(self, channels: internal.SharedChannels, processes: Sequence[int]) -> None:
        self.channels = channels  # the memory between them
        self.places = {process: place for place, process in enumerate(processes)}  # numbers in this host

    def have(self, processes: Sequence[int]) -> bool:
        """Returns whether all of these processes are on this host."""
        return all(process in self.places for process in processes)


class LocalMeetingPoint(MeetingPoint):
    """Exchanges records through shared memory; a record may carry a few KiB."""

    max_text = _MAX_TEXT

    def __init__(self, local_peers: LocalPeers, me: int, members: tuple[int, ...]) -> None:
        super().__init__(me, members)
        self._channels = local_peers.channels
        self._others = [local_peers.places[number] for number in members if number != me]
        self._shared = internal.SharedMeetingPoint(self._channels, self._others, self._mine, self._group, self.max_text)
        self._is_open = False  # records are still to come

    def meet(self, digest: bytes, payload: bytes, text: str, flight: FlightGroup | None = None) -> list[bytes] | None:
        """Implements MeetingPoint.meet."""
        payloads = self._shared.meet(CAME, digest, payload, text, flight)
        self._is_open = payloads is None
        return payloads

    def start(self, kind: int, digest: bytes, payload: bytes, text: str) -> None:
        """Implements MeetingPoint.start."""
        self._shared.start(kind, digest, payload, text)
        if kind == REFUSED:
            self._channels.skip(self._others)  # no process reads the records of other processes
        else:
            self._is_open = True

    def done(self) -> bool:
        """Implements MeetingPoint.done."""
        if not self._is_open:
            return True
        if not self._channels.wait(self._others, _POLL_S):
            return False
        self._records = self._channels.take(self._others)
        self._records.insert(self._mine, self._shared.sent)
        self._is_open = False
        return True


def share_memory(
    peers: Peers, me: int, names: Sequence[str], exchange: Callable[[Any], list[Any]]
) -> LocalPeers | None:
    """Creates the memory between the processes of this host; called by all processes of the job before `peers` is read.

    `names` has the name of each process, for messages; `exchange` gives every process the values of all. Returns None
    where this process is alone on its host, or the system gives no shared memory, about which it warns.
    """
    connections = {
        number: peer.connection
        for number, peer in peers.by_number.items()
        if peer.connection is not None and peer.connection.family == socket.AF_UNIX
    }
    processes = sorted([*connections, me])
    file = -1
    problem = "" if config.distributed_shared_memory else "off"
    if not problem and len(processes) > 1:
        try:
            file = internal.create_channels(len(processes))
        except Exception as error:
            problem = str(error)
    received: list[int] = []
    channels = None
    try:
        reports = exchange((processes, problem))
        is_shared = len(processes) > 1 and all(reports[number][0] == processes for number in processes)
        is_off = any(reports[number][1] == "off" for number in processes)
        has_problem = any(reports[number][1] for number in processes)
        if is_shared and not has_problem:
            for connection in connections.values():
                failure = _send_file(connection, file)
                problem = problem or failure
        exchange(None)  # all files that were sent have arrived
        if is_shared and not has_problem:
            try:
                for number in processes:  # all of them: bytes left over would be read as a message of a peer
                    received.append(file if number == me else _receive_file(connections[number]))
                if -1 in received:
                    problem = problem or "a process sent no file"
                else:
                    channels = internal.SharedChannels(processes.index(me), received)
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
        reports = exchange((processes, problem))
    finally:
        for each in {file, *received} - {-1}:
            os.close(each)
    problems = [f"{names[number]}: {reports[number][1]}" for number in processes if reports[number][1]]
    if is_shared and problems and not is_off:
        warn_user(
            f"distributed.initialize: the processes of this host share no memory ({'; '.join(problems)}); expected "
            "some MiB of it; everything goes by MPI, which is slower; raise the limits, or set "
            "config.distributed_shared_memory = False to turn this warning off",
            RuntimeWarning,
        )
    return LocalPeers(channels, processes) if channels is not None and not problems else None


def _send_file(connection: socket.socket, file: int) -> str:
    """Sends a file, or one byte without it where that fails; returns why."""
    try:
        socket.send_fds(connection, [b"m"], [file])
    except OSError as error:
        connection.sendall(b"m")
        return str(error)
    return ""


def _receive_file(connection: socket.socket) -> int:
    """Receives a file; returns -1 if none was sent."""
    _, files, _, _ = socket.recv_fds(connection, 1, 1)
    return files[0] if len(files) == 1 else -1
