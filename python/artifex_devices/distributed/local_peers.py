# SPDX-License-Identifier: Apache-2.0
"""Processes of one host share memory: letters and big sums go through it, past MPI."""

from __future__ import annotations

import os
import socket
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from artifex_devices import _core
from artifex_devices._base.caller import warn_user
from artifex_devices.config import config
from artifex_devices.distributed.consistency import CAME, REFUSED
from artifex_devices.distributed.peers import Peers

__all__ = ["NeighbourMeeting", "Neighbours", "share_memory"]

_HEAD = struct.Struct("!32sIBxHH6x")  # digest, group, kind, bytes of the payload, bytes of the text; then both
_SAME = 37  # bytes at the head that are equal in all letters when all come to the same operation
_MOST_TEXT = 500
_AWAKE_S = 30e-6  # one look at whether letters have come


class Neighbours:
    """The processes of this host, this one among them.

    Attributes:
        lanes: The memory between them.
        places: By the number of a process: its number among the neighbours.
        most_payload: Bytes that a meeting of them carries at most.
    """

    most_payload = _core._SharedLanes.most_letter_bytes - _HEAD.size - _MOST_TEXT

    def __init__(self, lanes: _core._SharedLanes, processes: Sequence[int]) -> None:
        """All processes that have lanes between them, ascending."""
        self.lanes = lanes
        self.places = {process: place for place, process in enumerate(processes)}

    def have(self, processes: Sequence[int]) -> bool:
        """Whether all of these are neighbours."""
        return all(process in self.places for process in processes)


class NeighbourMeeting:
    """What `agreement.Meeting` is, for neighbours: one letter from each to each, which may carry a few KiB."""

    def __init__(self, neighbours: Neighbours, me: int, members: tuple[int, ...]) -> None:
        """Needs nobody else.

        Args:
            neighbours: All of `members`, at least.
            me: Number of this process.
            members: The group, ascending; `me` among them.
        """
        self._lanes = neighbours.lanes
        self._members = members
        self._mine = members.index(me)
        self._others = [neighbours.places[number] for number in members if number != me]
        self._group = zlib.crc32(repr(members).encode())
        self._letter = b""
        self._letters: list[bytes] = []
        self._is_open = False  # letters are still to come

    def start(self, kind: int, digest: bytes, payload: bytes, text: str) -> None:
        """Sends this process's letter to the others; only when the last use is done."""
        words = text.encode(errors="backslashreplace")[:_MOST_TEXT]
        head = _HEAD.pack(digest, self._group, kind, len(payload), len(words))
        self._letter = b"".join((head, payload, words))
        self._lanes.post(self._others, self._letter)
        if kind == REFUSED:
            self._lanes.skip(self._others)  # what they come with is for nobody
        else:
            self._is_open = True

    def done(self) -> bool:
        """Whether all letters are here; True before the first use."""
        if not self._is_open:
            return True
        if not self._lanes.wait(self._others, _AWAKE_S):
            return False
        self._letters = self._lanes.take(self._others)
        self._letters.insert(self._mine, self._letter)
        self._is_open = False
        return True

    def all_equal(self) -> bool:
        """Whether all come to the same operation."""
        mine = self._letter[:_SAME]
        return all(letter.startswith(mine) for letter in self._letters)

    def payloads(self) -> list[bytes]:
        """What each process has handed out."""
        return [letter[_HEAD.size : _HEAD.size + _HEAD.unpack_from(letter)[3]] for letter in self._letters]

    def texts(self) -> list[tuple[int, str]]:
        """What each process has called its operation."""
        return [(number, _text_of(letter)) for number, letter in zip(self._members, self._letters, strict=True)]

    def refusals(self) -> list[tuple[int, str]]:
        """Those that refuse, and why; empty where the rest does not fit together either."""
        kinds = [_HEAD.unpack_from(letter)[2] for letter in self._letters]
        come = {letter[:_SAME] for letter, kind in zip(self._letters, kinds, strict=True) if kind == CAME}
        if len(come) > 1:
            return []
        return [each for each, kind in zip(self.texts(), kinds, strict=True) if kind == REFUSED]

    def free(self) -> None:
        """Holds nothing of MPI."""


def _text_of(letter: bytes) -> str:
    _, _, _, payload, length = _HEAD.unpack_from(letter)
    start = _HEAD.size + payload
    return letter[start : start + length].decode(errors="replace")


def share_memory(
    peers: Peers, me: int, names: Sequence[str], exchange: Callable[[Any], list[Any]]
) -> Neighbours | None:
    """Makes the memory between the processes of this host; called by all processes of the job.

    Args:
        peers: Connected, and not yet listened to.
        me: Number of this process.
        names: Of all processes, for messages.
        exchange: Hands every process the values of all; waits for all.

    Returns:
        The neighbours; None where this process has none. Where the system gives no memory to share, which is warned
        of, all of them go by MPI.
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
            file = _core._create_lanes(len(processes))
        except Exception as error:
            problem = str(error)
    received: list[int] = []
    lanes = None
    try:
        told = exchange((processes, problem))
        is_shared = len(processes) > 1 and all(told[number][0] == processes for number in processes)
        is_off = any(told[number][1] == "off" for number in processes)
        if is_shared and not any(told[number][1] for number in processes):
            for connection in connections.values():
                failed = _send(connection, file)
                problem = problem or failed
        exchange(None)  # now all have come that were sent
        if is_shared and not any(told[number][1] for number in processes):
            try:
                for number in processes:  # all of them, or what is left would be taken for a peer's words
                    received.append(file if number == me else _receive(connections[number]))
                if -1 in received:
                    problem = problem or "a process sent no file"
                else:
                    lanes = _core._SharedLanes(processes.index(me), received)
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
        told = exchange((processes, problem))
    finally:
        for each in {file, *received} - {-1}:
            os.close(each)
    problems = [f"{names[number]}: {told[number][1]}" for number in processes if told[number][1]]
    if is_shared and problems and not is_off:
        warn_user(
            f"distributed.initialize: the processes of this host share no memory ({'; '.join(problems)}); expected "
            "some MiB of it; everything goes by MPI, which is slower; raise the limits, or set "
            "config.distributed_shared_memory = False to say so",
            RuntimeWarning,
        )
    return Neighbours(lanes, processes) if lanes is not None and not problems else None


def _send(connection: socket.socket, file: int) -> str:
    """Sends a file, or a byte alone where that cannot be; why not."""
    try:
        socket.send_fds(connection, [b"m"], [file])
    except OSError as error:
        connection.sendall(b"m")
        return str(error)
    return ""


def _receive(connection: socket.socket) -> int:
    """The file that was sent, -1 where none came."""
    _, files, _, _ = socket.recv_fds(connection, 1, 1)
    return files[0] if len(files) == 1 else -1
