# SPDX-License-Identifier: Apache-2.0
"""The message with which processes meet at an operation: what each of them thinks that comes next."""

from __future__ import annotations

import struct
import zlib
from typing import Any

__all__ = ["CAME", "MOST_PAYLOAD", "REFUSED", "Meeting"]

CAME, REFUSED = 1, 2
MOST_PAYLOAD = 64  # bytes
_TAG = 0
_HEAD = struct.Struct("!32sIBBH64s")  # digest, group, kind, bytes of the payload, bytes of the text, payload
_SAME = 37  # bytes at the head that are equal in all records when all come to the same operation
_RECORD = 512
_TEXT = _RECORD - _HEAD.size


class Meeting:
    """Exchanges a record of 512 bytes among a group of processes, each with each. Made once, used often.

    The messages are persistent requests of MPI, which cost little to start again.
    """

    def __init__(self, mpi: Any, world: Any, me: int, members: tuple[int, ...]) -> None:
        """Needs nobody else.

        Args:
            mpi: The module mpi4py.MPI.
            world: A communicator of all processes that carries nothing else.
            me: Number of this process.
            members: The group, ascending; `me` among them.
        """
        self._mpi = mpi
        self._members = members
        self._mine = members.index(me)
        self._group = zlib.crc32(repr(members).encode())
        self._record = bytearray(_RECORD)
        self._table = bytearray(_RECORD * len(members))
        self._views = [memoryview(self._table)[i * _RECORD : (i + 1) * _RECORD] for i in range(len(members))]
        self._requests = []
        for i, number in enumerate(members):
            if i != self._mine:
                self._requests.append(world.Recv_init([self._views[i], mpi.BYTE], number, _TAG))
                self._requests.append(world.Send_init([self._record, mpi.BYTE], number, _TAG))

    def start(self, kind: int, digest: bytes, payload: bytes, text: str) -> None:
        """Sends this process's record to the others; only when the last use is done."""
        words = text.encode(errors="backslashreplace")[:_TEXT]
        _HEAD.pack_into(self._record, 0, digest, self._group, kind, len(payload), len(words), payload)
        self._record[_HEAD.size : _HEAD.size + len(words)] = words
        self._views[self._mine][:] = self._record
        self._mpi.Prequest.Startall(self._requests)

    def done(self) -> bool:
        """Whether all records are here, and ours has gone; True before the first use."""
        return bool(self._mpi.Request.Testall(self._requests))

    def all_equal(self) -> bool:
        """Whether all come to the same operation."""
        table = self._table
        mine = table[:_SAME]
        return all(table.startswith(mine, start) for start in range(_RECORD, len(table), _RECORD))

    def payloads(self) -> list[bytes]:
        """What each process has handed out."""
        heads = [_HEAD.unpack_from(view) for view in self._views]
        return [head[5][: head[3]] for head in heads]

    def texts(self) -> list[tuple[int, str]]:
        """What each process has called its operation."""
        return [(number, self._text(i)) for i, number in enumerate(self._members)]

    def refusals(self) -> list[tuple[int, str]]:
        """Those that refuse, and why; empty where the rest does not fit together either."""
        kinds = [_HEAD.unpack_from(view)[2] for view in self._views]
        come = [bytes(view[:_SAME]) for view, kind in zip(self._views, kinds, strict=True) if kind == CAME]
        if len(set(come)) > 1:
            return []
        return [(self._members[i], self._text(i)) for i, kind in enumerate(kinds) if kind == REFUSED]

    def free(self) -> None:
        """Gives the requests back to MPI."""
        for request in self._requests:
            request.Free()
        self._requests = []

    def _text(self, place: int) -> str:
        length = _HEAD.unpack_from(self._views[place])[4]
        return bytes(self._views[place][_HEAD.size : _HEAD.size + length]).decode(errors="replace")
