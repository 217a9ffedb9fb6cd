# SPDX-License-Identifier: Apache-2.0
"""A transport of one process of three with a clock of its own; its peers only record what they are sent."""

from types import SimpleNamespace

from artifex_devices.distributed.checked_transport import CheckedTransport
from artifex_devices.distributed.consistency import MeetingPoint
from artifex_devices.distributed.peers import Peer, PeerStates

NAMES = ["process 0", "process 1", "process 2"]


class RecordingPeers(PeerStates):
    """Peers without connections: `sent` has the messages, `answers` are called in order, one at each poll."""

    def __init__(self, clock):
        super().__init__(Peer(number, NAMES[number], None) for number in (1, 2))
        self.clock = clock
        self.sent = []
        self.answers = []

    def poll(self):
        if self.answers:
            self.answers.pop(0)()
        return False

    def sleep(self, seconds):
        self.clock.now += seconds

    def _broadcast(self, message):
        self.sent.append(message)


class TableMeetingPoint(MeetingPoint):
    """A meeting whose records are given."""

    max_text = 100
    started = None

    def start(self, kind, digest, payload, text):
        self.started = (kind, digest, payload, text)
        self._records = [self._record(kind, digest, payload, text)] * len(self._members)

    def done(self):
        return True


class ClockTransport(CheckedTransport):
    """Each wait takes 10 ms of a clock of its own."""

    def __init__(self):
        self.clock = SimpleNamespace(now=0.0)
        self.polls = []
        self.new = []
        super().__init__(0, NAMES, RecordingPeers(self.clock))

    flight = None
    peers = property(lambda self: self._peers)

    def _new_meeting_point(self, members):
        self.new.append(TableMeetingPoint(0, members))
        return self.new[-1]

    def _poll_until(self, done, check, nbytes):
        self.polls.append(nbytes)
        while not done():
            check()
            self.clock.now += 0.01

    def _now(self):
        return self.clock.now

    def _is_transport_error(self, error):
        return isinstance(error, ConnectionError)

    def isend(self, buffer, peer, tag):
        raise NotImplementedError

    irecv = isend

    def max_payload(self, processes):
        return 0

    def local_peers(self, processes):
        return None


def message(size, *, is_done):
    return SimpleNamespace(buffer=bytearray(size), is_done=lambda: is_done)


def never():
    return False
