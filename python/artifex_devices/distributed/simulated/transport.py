# SPDX-License-Identifier: Apache-2.0
"""The transport of simulated processes: messages, records and reports that the scheduler delivers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from artifex_devices.config import config
from artifex_devices.distributed.checked_transport import CheckedTransport
from artifex_devices.distributed.consistency import MAX_PAYLOAD, MeetingPoint
from artifex_devices.distributed.local_peers import LocalPeers
from artifex_devices.distributed.peers import Peer, PeerStates
from artifex_devices.distributed.simulated.network import SimulatedMessage
from artifex_devices.distributed.simulated.scheduler import Scheduler
from artifex_devices.distributed.tags import Tag
from artifex_devices.distributed.transport import Message

_RECORD = 1024  # bytes
_MAX_TEXT = 800


class SimulatedPeers(PeerStates):
    """The other processes' states, by the messages that one process has received."""

    def __init__(self, process_index: int, names: Sequence[str], scheduler: Scheduler) -> None:
        super().__init__(Peer(n, name, None) for n, name in enumerate(names) if n != process_index)
        self._me = process_index
        self._scheduler = scheduler
        self.all: Sequence[SimulatedPeers] = ()  # the SimulatedPeers of each process

    def poll(self) -> bool:
        """Implements PeerStates.poll."""
        return False  # the scheduler delivers all reports

    def sleep(self, seconds: float) -> None:
        """Implements PeerStates.sleep."""
        self._scheduler.wait(self._me, bool, until=self._scheduler.now + seconds)

    def have_left(self) -> bool:
        """Returns whether all other processes have left the job."""
        return all(peer.state == "left" for peer in self.by_number.values())

    def send_lost(self) -> None:
        """Reports that this process has ended without notice, as the system does."""
        self._broadcast({"kind": "lost"})

    def handle(self, peer: Peer, message: Mapping[str, Any]) -> None:
        """Implements PeerStates.handle."""
        super().handle(peer, message)
        if message["kind"] == "lost" and peer.state == "here":
            peer.state = "lost"

    def _broadcast(self, message: Mapping[str, Any]) -> None:
        for number in self.by_number:
            peers = self.all[number]
            arrive = functools.partial(peers.handle, peers.by_number[self._me], message)
            self._scheduler.report(self._me, number, arrive)


class SimulatedMeetingPoint(MeetingPoint):
    """Exchanges records by messages."""

    max_text = _MAX_TEXT

    def __init__(self, scheduler: Scheduler, me: int, members: tuple[int, ...]) -> None:
        super().__init__(me, members)
        self._scheduler = scheduler
        self._me = me
        self._received: dict[int, SimulatedMessage] = {}
        self._sent = b""

    def start(self, kind: int, digest: bytes, payload: bytes, text: str) -> None:
        """Implements MeetingPoint.start."""
        self._sent = self._record(kind, digest, payload, text).ljust(_RECORD, b"\0")
        for number in super().missing():
            memory = memoryview(bytearray(_RECORD))
            self._received[number] = self._scheduler.receive(memory, number, self._me, Tag.MEETING)
            self._scheduler.send(memoryview(self._sent), self._me, number, Tag.MEETING)

    def done(self) -> bool:
        """Implements MeetingPoint.done."""
        return not [message for message in self._received.values() if not message.has_ended]

    def missing(self) -> Sequence[int]:
        """Implements MeetingPoint.missing."""
        return [number for number, message in self._received.items() if not message.has_ended]

    def all_equal(self) -> bool:
        """Implements MeetingPoint.all_equal."""
        self._records = [
            self._sent if number == self._me else bytes(self._received[number].buffer) for number in self._members
        ]
        return super().all_equal()


class SimulatedTransport(CheckedTransport):
    """The transport of one simulated process."""

    last_messages_s = 0.0  # a report arrives after the messages that were sent before it

    def __init__(self, process_index: int, names: Sequence[str], scheduler: Scheduler) -> None:
        """`names` has the name of each process, for messages."""
        self.peers = SimulatedPeers(process_index, names, scheduler)
        super().__init__(process_index, names, self.peers)
        self._scheduler = scheduler

    def agree(self, operation: str, digest: bytes, processes: Sequence[int], payload: bytes = b"") -> list[bytes]:
        """Implements Transport.agree."""
        if len(processes) == 1:
            return super().agree(operation, digest, processes, payload)
        with self.exclusive(operation):
            self._scheduler.begin(self.process_index, operation)
            return super().agree(operation, digest, processes, payload)

    def max_payload(self, processes: Sequence[int]) -> int:
        """Implements Transport.max_payload."""
        return MAX_PAYLOAD

    def local_peers(self, processes: Sequence[int]) -> LocalPeers | None:
        """Implements Transport.local_peers."""
        return None

    def isend(self, buffer: Any, peer: int, tag: int) -> Message:
        """Implements Transport.isend."""
        with self.exclusive("isend"):
            self._check_usable("isend")
            return self._scheduler.send(memoryview(buffer).cast("B"), self.process_index, peer, tag)

    def irecv(self, buffer: Any, peer: int, tag: int) -> Message:
        """Implements Transport.irecv."""
        with self.exclusive("irecv"):
            self._check_usable("irecv")
            return self._scheduler.receive(memoryview(buffer).cast("B"), peer, self.process_index, tag)

    def _new_meeting_point(self, members: tuple[int, ...]) -> MeetingPoint:
        return SimulatedMeetingPoint(self._scheduler, self.process_index, members)

    def _now(self) -> float:
        return self._scheduler.now

    def _end_pause(self) -> None:
        self._scheduler.notify(self.process_index)

    def _poll_until(self, done: Callable[[], bool], check: Callable[[], None], nbytes: int) -> None:
        limit = config.collective_timeout_s
        deadline = math.inf if limit is None else self._now() + limit * (1 + 1e-9) + 1e-6  # `check` raises after it
        while not done():
            check()
            self._scheduler.wait(self.process_index, done, deadline=deadline)
