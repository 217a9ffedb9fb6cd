# SPDX-License-Identifier: Apache-2.0
"""The transport by MPI."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from artifex_devices.distributed.checked_transport import CheckedTransport
from artifex_devices.distributed.consistency import MAX_PAYLOAD, MeetingPoint, MpiMeetingPoint
from artifex_devices.distributed.flight_records import FlightRecords
from artifex_devices.distributed.local_peers import LocalMeetingPoint, LocalPeers
from artifex_devices.distributed.mpi_runtime import MpiRuntime
from artifex_devices.distributed.peers import Peers
from artifex_devices.distributed.transport import Message

_PIECE = 1 << 30  # bytes of one MPI message: counts are 32-bit in many MPIs
_FIRST_POLLS = 20  # some microseconds; most messages have arrived
_SPIN_S = 200e-6  # a message between two processes that both poll takes 1 to 20 us
_BYTES_PER_S = 0.5e9  # big messages advance only while both sides poll; so poll until they should have arrived
_CHECK_S = 1e-3
_FIRST_SLEEP_S = 50e-6
_MAX_SLEEP_S = 1e-3


class MpiMessage(Message):
    """A message in flight: its pieces, and the memory that MPI reads or writes until they are done."""

    def __init__(self, buffer: memoryview, requests: list[Any], test_all: Callable[[list[Any]], Any]) -> None:
        self.buffer = buffer
        self._requests = requests
        self._test_all = test_all

    def is_done(self) -> bool:
        """Implements Message.is_done."""
        return bool(self._test_all(self._requests))


class MpiTransport(CheckedTransport):
    """Sends bytes by MPI, and records between processes of one host through shared memory."""

    def __init__(
        self,
        runtime: MpiRuntime,
        peers: Peers,
        names: Sequence[str],
        local_peers: LocalPeers | None = None,
        flight: FlightRecords | None = None,
    ) -> None:
        """Collective; `names` has the name of each process, for messages."""
        super().__init__(runtime.world.Get_rank(), names, peers)
        self._local_peers = local_peers
        self.flight = flight
        self._mpi = runtime.mpi
        self._data = runtime.world
        self._meetings_world = runtime.world.Dup()

    def max_payload(self, processes: Sequence[int]) -> int:
        """Implements Transport.max_payload."""
        return MAX_PAYLOAD if self.local_peers(processes) is None else LocalPeers.max_payload

    def local_peers(self, processes: Sequence[int]) -> LocalPeers | None:
        """Implements Transport.local_peers."""
        found = self._local_peers
        return found if found is not None and found.have(processes) else None

    def isend(self, buffer: object, peer: int, tag: int) -> Message:
        """Implements Transport.isend."""
        return self._begin("isend", self._data.Isend, buffer, peer, tag)

    def irecv(self, buffer: object, peer: int, tag: int) -> Message:
        """Implements Transport.irecv."""
        return self._begin("irecv", self._data.Irecv, buffer, peer, tag)

    def _begin(self, operation: str, begin: Callable[..., Any], buffer: Any, peer: int, tag: int) -> Message:
        with self.exclusive(operation):
            self._check_usable(operation)
            view = memoryview(buffer).cast("B")
            pieces = [view[start : start + _PIECE] for start in range(0, max(len(view), 1), _PIECE)]
            requests = [begin([piece, self._mpi.BYTE], peer, tag) for piece in pieces]
            return MpiMessage(view, requests, self._mpi.Request.Testall)

    def close(self) -> None:
        """Releases its communicator; collective. Later calls cannot send."""
        self.broken = self.broken or "distributed.shutdown() was called"
        for group in self._groups.values():
            for meeting in group.meetings:
                meeting.free()
        self._meetings_world.Free()
        self._groups.clear()
        self._local_peers = None

    def progress(self) -> None:
        """Advances messages that could not be sent yet."""
        self._data.Iprobe()
        if self._local_peers is None or not self._lock.acquire(blocking=False):
            return  # the thread with the lock advances them itself
        try:
            self._local_peers.channels.wait([], 0)
        finally:
            self._lock.release()

    def _new_meeting_point(self, members: tuple[int, ...]) -> MeetingPoint:
        local_peers = self.local_peers(members)
        if local_peers is not None:
            return LocalMeetingPoint(local_peers, self.process_index, members)
        return MpiMeetingPoint(self._mpi, self._meetings_world, self.process_index, members)

    def _now(self) -> float:
        return time.monotonic()

    def _is_transport_error(self, error: BaseException) -> bool:
        return isinstance(error, self._mpi.Exception)

    def _report_lost(self, text: str) -> None:
        os.write(2, f"artifex_devices: {text}\n".encode())

    def _poll_until(self, done: Callable[[], bool], check: Callable[[], None], nbytes: int) -> None:
        """Polls `done()`, which also drives MPI, without a pause at first, then with growing sleeps.

        Each poll yields the core to other processes. `nbytes` in flight lengthen the first phase; a message of a peer
        ends a sleep. Calls `check` every millisecond or so, which raises to end the wait.
        """
        if any(done() for _ in range(_FIRST_POLLS)):
            return
        start = now = time.monotonic()
        spin_until = start + _SPIN_S + nbytes / _BYTES_PER_S
        next_check = start + _CHECK_S
        while now < spin_until:
            for _ in range(8):
                os.sched_yield()
                if done():
                    return
            now = time.monotonic()
            if now >= next_check:
                check()
                next_check = now + _CHECK_S
        sleep_s = _FIRST_SLEEP_S
        while not done():
            self._peers.sleep(sleep_s)
            sleep_s = min(sleep_s * 1.25, _MAX_SLEEP_S)
            check()
