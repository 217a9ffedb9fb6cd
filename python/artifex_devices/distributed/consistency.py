# SPDX-License-Identifier: Apache-2.0
"""Checks that the processes of a group call the same operation: each process sends a record of its next operation."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

from artifex_devices._core import internal
from artifex_devices._core.internal import FlightGroup
from artifex_devices.distributed.tags import Tag

CAME, REFUSED = 1, 2
MAX_PAYLOAD = 64  # bytes of a record that MPI carries
_RECORD = 512


class MeetingPoint:
    """Repeated meetings of the processes of a group, ascending. In each, every process sends a record to the rest."""

    max_text: int  # bytes of the text that a record carries
    _records: Sequence[bytes] = ()  # the records of all members, after the exchange

    def __init__(self, me: int, members: tuple[int, ...]) -> None:
        self._members = members
        self._mine = members.index(me)
        self._group = zlib.crc32(repr(members).encode())

    def _record(self, kind: int, digest: bytes, payload: bytes, text: str) -> bytes:
        return internal.meeting_record(kind, digest, self._group, payload, text, self.max_text)

    def meet(self, digest: bytes, payload: bytes, text: str, flight: FlightGroup | None = None) -> list[bytes] | None:
        """Sends this process's record to the other members, and returns the payloads if that is possible at once.

        Returns None if some records have not arrived yet, or if the processes call different operations. Adds the
        meeting to the flight record, and also its end if it returns payloads.
        """
        if flight is not None:
            flight.meet(text, digest)
        self.start(CAME, digest, payload, text)
        return None

    def start(self, kind: int, digest: bytes, payload: bytes, text: str) -> None:
        """Sends this process's record to the other members; only after the previous exchange is done."""
        raise NotImplementedError

    def done(self) -> bool:
        """Returns whether all records have arrived; True before the first use."""
        raise NotImplementedError

    def missing(self) -> Sequence[int]:
        """Returns the processes whose records may not have arrived yet."""
        return [number for place, number in enumerate(self._members) if place != self._mine]

    def all_equal(self) -> bool:
        """Returns whether all processes call the same operation."""
        mine = self._records[self._mine]
        return all(internal.is_same_meeting(record, mine) for record in self._records)

    def payloads(self) -> list[bytes]:
        """Returns the payload of each process."""
        return [internal.read_meeting_record(record)[1] for record in self._records]

    def texts(self) -> list[tuple[int, str]]:
        """Returns the processes, each with the text of its operation."""
        texts = [internal.read_meeting_record(record)[2] for record in self._records]
        return list(zip(self._members, texts, strict=True))

    def refusals(self) -> list[tuple[int, str]]:
        """Returns the processes that refuse, and why; empty if other processes call different operations anyway."""
        kinds = [internal.read_meeting_record(record)[0] for record in self._records]
        came = [record for record, kind in zip(self._records, kinds, strict=True) if kind == CAME]
        if not all(internal.is_same_meeting(record, came[0]) for record in came):
            return []
        return [each for each, kind in zip(self.texts(), kinds, strict=True) if kind == REFUSED]

    def free(self) -> None:
        """Releases MPI's requests and buffers."""


class MpiMeetingPoint(MeetingPoint):
    """Exchanges records of 512 bytes by persistent requests of MPI, which cost little to start again."""

    max_text = _RECORD - internal.MEETING_HEAD_BYTES - MAX_PAYLOAD

    def __init__(self, mpi: Any, world: Any, me: int, members: tuple[int, ...]) -> None:
        """`world` is a communicator of all processes that carries nothing else; the other processes need not call."""
        super().__init__(me, members)
        self._mpi = mpi
        self._sent = bytearray(_RECORD)
        self._table = bytearray(_RECORD * len(members))
        view = memoryview(self._table)
        self._requests = []
        for i, number in enumerate(members):
            if i != self._mine:
                here = view[i * _RECORD : (i + 1) * _RECORD]
                self._requests.append(world.Recv_init([here, mpi.BYTE], number, Tag.MEETING))
                self._requests.append(world.Send_init([self._sent, mpi.BYTE], number, Tag.MEETING))

    def start(self, kind: int, digest: bytes, payload: bytes, text: str) -> None:
        """Implements MeetingPoint.start."""
        record = self._record(kind, digest, payload, text)
        self._sent[: len(record)] = record
        place = self._mine * _RECORD
        self._table[place : place + len(record)] = record
        self._mpi.Prequest.Startall(self._requests)

    def done(self) -> bool:
        """Implements MeetingPoint.done."""
        return bool(self._mpi.Request.Testall(self._requests))

    def all_equal(self) -> bool:
        """Implements MeetingPoint.all_equal."""
        table = bytes(self._table)
        self._records = [table[start : start + _RECORD] for start in range(0, len(table), _RECORD)]
        return super().all_equal()

    def free(self) -> None:
        """Releases the requests."""
        for request in self._requests:
            request.Free()
        self._requests = []
