# SPDX-License-Identifier: Apache-2.0
"""Messages to other processes: those that do not fit a connection yet, and what is recorded of those in flight."""

import importlib.util
import json
import socket
import threading
import time
from types import SimpleNamespace

import pytest
from artifex_devices import profiler
from artifex_devices.distributed.handshake import is_own_address
from artifex_devices.distributed.peers import Peer, Peers
from artifex_devices.distributed.tags import Tag
from artifex_devices.distributed.transport import Exchange


def test_a_later_poll_sends_what_a_connection_did_not_take():
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    peers = Peers([Peer(1, "process 1", ours)])
    peer = peers.by_number[1]
    message = {"text": "x" * 60_000}
    for _ in range(64):  # until the connection is full
        peers._broadcast(message)
        if peer.unsent:
            break
    assert peer.unsent
    theirs.setblocking(False)
    before = len(peer.unsent)
    theirs.recv(1 << 20)
    assert not peers.poll()
    assert len(peer.unsent) < before
    peers.close()
    theirs.close()


class SlowConnection:
    """A connection that takes a part of a message at a time and lets another thread run meanwhile."""

    def __init__(self, connection):
        self.sent = bytearray()
        self._connection = connection
        self.fileno, self.setblocking, self.close = connection.fileno, connection.setblocking, connection.close

    def send(self, data):
        with memoryview(data) as view:
            time.sleep(0.001)  # a slow connection
            self.sent += view[:20]
            return len(view[:20])


def test_messages_of_two_threads_are_whole():
    ours, theirs = socket.socketpair()
    connection = SlowConnection(ours)
    peers = Peers([Peer(1, "process 1", connection)])
    errors = []

    def report():
        try:
            for _ in range(20):
                peers.send_failed("a reason")
        except BufferError as error:  # of bytes that the other thread sends
            errors.append(error)

    threads = [threading.Thread(target=report) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    while peers.by_number[1].unsent:
        peers.poll()
    assert errors == []
    text = json.dumps({"kind": "failed", "reason": "a reason", "is_echo": False}).encode()
    assert bytes(connection.sent) == 40 * (len(text).to_bytes(4, "big") + text)
    peers.close()
    theirs.close()


def test_closed_peers_have_no_events_and_sleep_by_the_clock(monkeypatch):
    ours, theirs = socket.socketpair()
    peers = Peers([Peer(1, "process 1", ours)])
    theirs.close()
    peers.close()
    assert peers.poll() is False
    slept = []
    monkeypatch.setattr("artifex_devices.distributed.peers.time", SimpleNamespace(sleep=slept.append))
    peers.sleep(0.25)
    assert slept == [0.25]


def test_peers_sleep_until_a_message_comes():
    ours, theirs = socket.socketpair()
    peers = Peers([Peer(1, "process 1", ours)])
    theirs.close()
    peers.sleep(600)  # the end of the connection is an event
    assert peers.poll() is True
    peers.close()


@pytest.mark.parametrize(
    ("address", "is_own"),
    [
        (f"{socket.gethostname()}:1", True),
        ("127.0.0.1:1", True),
        ("localhost:1", True),
        ("192.0.2.1:1", False),  # reserved for documentation
        ("no host has a blank:1", False),
    ],
)
def test_an_address_of_this_host_can_be_bound(address, is_own):
    assert is_own_address(address) is is_own


def test_a_program_that_has_just_begun_has_not_failed():
    spec = importlib.util.find_spec("artifex_devices.distributed.failure_notice")
    fresh = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fresh)
    assert fresh.has_failed() is False


class Recorder:
    def __init__(self):
        self.calls = []

    def exchange(self, operation, is_shared):
        self.calls.append(("exchange", operation, is_shared))
        return 7

    def end(self, number, nbytes):
        self.calls.append(("end", number, nbytes))

    def fail(self, number, nbytes):
        self.calls.append(("fail", number, nbytes))


def transport(recorder=None):
    flight = None if recorder is None else SimpleNamespace(recorder=recorder)
    cancelled = []
    return SimpleNamespace(
        flight=flight,
        process_index=3,
        isend=lambda memory, peer, tag: SimpleNamespace(buffer=memory),
        cancel=lambda messages, reason: cancelled.append((messages, reason)),
        cancelled=cancelled,
    )


def test_messages_in_flight_are_one_event_of_a_trace():
    with profiler.trace() as trace:
        with Exchange(transport(), "reshard") as flight:
            flight.send(bytes(100), 1, Tag.BLOCKS)
            flight.send(bytes(28), 1, Tag.BLOCKS, "item")
            assert len(flight) == 2
        with Exchange(transport(), "nothing sent"):
            pass
    (event,) = trace.events
    assert (event.kind, event.name, event.detail, event.process) == ("exchange", "reshard", "messages", 3)
    assert (event.moved_bytes, event.planned_bytes) == (128, 0)


def test_messages_in_flight_are_one_event_of_the_flight_record():
    recorder = Recorder()
    with Exchange(transport(recorder), "reshard") as flight:
        flight.send(bytes(100), 1, Tag.BLOCKS)
        flight.send(bytes(28), 1, Tag.BLOCKS)
    assert recorder.calls == [("exchange", "reshard", False), ("end", 7, 128)]


def test_an_error_gives_up_messages_in_flight():
    recorder = Recorder()
    way = transport(recorder)
    flight = Exchange(way, "reshard")
    flight.send(bytes(5), 1, Tag.BLOCKS)
    with pytest.raises(KeyError), flight:
        raise KeyError("key")
    assert recorder.calls[1:] == [("fail", 7, 5)]
    (((given_up,), reason),) = way.cancelled
    assert (given_up.buffer, reason) == (bytes(5), "KeyError: 'key'")
