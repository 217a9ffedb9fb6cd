# SPDX-License-Identifier: Apache-2.0
"""Several processes of a job, played by threads of this one: each has its own client, and a transport of queues."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import defaultdict, deque
from typing import NamedTuple

import numpy as np
from artifex_devices import _core
from artifex_devices._core import internal
from artifex_devices.distributed import exchange, transport
from artifex_devices.distributed.local_peers import LocalPeers

WAIT_S = 20.0
share_memory = False  # whether the processes of a new job do


class Wires:
    """What the transports of one job share."""

    def __init__(self, count):
        self.count = count
        self.changed = threading.Condition()
        self.messages = defaultdict(deque)  # by (sender, receiver, tag)
        self.meetings = defaultdict(deque)  # by (process, all processes): what it came with
        self.most_waiting = 0
        self.channels = channels_of(count) if share_memory else None

    def wait(self, condition):
        with self.changed:
            if not self.changed.wait_for(condition, WAIT_S):
                raise RuntimeError("a process did not come in time")

    def transport(self, index):
        return QueueTransport(self, index)


class QueueMessage(NamedTuple):
    """A message under way."""

    kind: str
    buffer: memoryview
    key: tuple | None  # sender, receiver and tag of one that is received


class QueueTransport(transport.Transport):
    """See MpiTransport. Bytes are taken when they are sent."""

    flight = None
    traced_meetings = {}  # noqa: RUF012

    def __init__(self, wires, index):
        self.wires = wires
        self.process_index = index
        self.process_count = wires.count
        self.cancelled = 0
        self.operations = []
        self.refused = {}  # by processes: how often since the last meeting with them
        self.failed = None
        self.turn = threading.Lock()  # the memory is for one thread at a time
        self.sizes = []  # of the messages under way, at each wait

    def exclusive(self, operation):
        return contextlib.nullcontext()

    def agree(self, operation, digest, processes, payload=b""):
        processes = tuple(processes)
        assert self.process_index in processes
        assert len(digest) <= 32
        self.operations.append(operation)
        mine = {process: self.wires.meetings[process, self.process_index, processes] for process in processes}
        with self.wires.changed:
            for process in processes:
                self.wires.meetings[self.process_index, process, processes].append((operation, digest, payload))
            self.wires.changed.notify_all()
        missed = self.refused.pop(processes, 0)  # nobody reads the records of the others
        self.wires.wait(lambda: all(len(each) > missed for each in mine.values()))
        for each in mine.values():
            for _ in range(missed):
                each.popleft()
        came = [mine[process].popleft() for process in processes]
        if any(each[1] != digest for each in came):
            reports = "; ".join(f"process {p}: {each[0]}" for p, each in zip(processes, came, strict=True))
            raise RuntimeError(f"the processes do not do the same: {reports}")
        return [each[2] for each in came]

    def max_payload(self, processes):
        return 64 if self.local_peers(processes) is None else LocalPeers.max_payload

    def local_peers(self, processes):
        channels = self.wires.channels
        return None if channels is None else LocalPeers(channels[self.process_index], range(self.process_count))

    def wait_until(self, done, operation, nbytes):
        until = time.monotonic() + WAIT_S
        with self.turn:
            while not done():
                assert time.monotonic() < until

    def refuse(self, operation, reason, processes):
        processes = tuple(processes)
        self.refused[processes] = self.refused.get(processes, 0) + 1
        with self.wires.changed:
            for process in processes:
                refusal = (f"refused: {operation}: {reason}", b"refused", b"")
                self.wires.meetings[self.process_index, process, processes].append(refusal)
            self.wires.changed.notify_all()

    def fail(self, reason):
        self.failed = reason

    def isend(self, buffer, peer, tag):
        with self.wires.changed:
            self.wires.messages[self.process_index, peer, tag].append(bytes(memoryview(buffer)))
            self.wires.changed.notify_all()
        return QueueMessage("send", memoryview(buffer), None)

    def irecv(self, buffer, peer, tag):
        return QueueMessage("receive", memoryview(buffer), (peer, self.process_index, tag))

    def wait_some(self, requests, operation):
        self.sizes.append(sum(len(memory) for _, memory, _ in requests))
        done = []

        def some():
            taken = set()
            for place, (kind, memory, key) in enumerate(requests):
                if kind == "receive":
                    if key in taken or not self.wires.messages[key]:
                        taken.add(key)  # those behind it must wait
                        continue
                    data = self.wires.messages[key].popleft()
                    assert len(data) == len(memory)
                    memory[:] = data
                done.append(place)
            return bool(done)

        self.wires.wait(some)
        return done

    def cancel(self, requests, reason):
        self.cancelled += len(requests)


def channels_of(count):
    """The ends of the memory between so many processes."""
    files = [internal.create_channels(count) for _ in range(count)]
    try:
        return [internal.SharedChannels(me, files) for me in range(count)]
    finally:
        for file in files:
            os.close(file)


@contextlib.contextmanager
def entered(client):
    """The world of a client, in this thread."""
    frame = internal.push_world(client)
    try:
        yield client
    finally:
        internal.pop_world(frame)


def clients_of(counts, hosts=None, machine="pack:1 numa:1 core:4 pu:1"):
    """One client for each process of a job with so many devices each."""
    described = [
        (
            (hosts or ["one"] * len(counts))[i],
            *internal.describe_process(_core.Machine.from_synthetic(machine), count)[1:],
        )
        for i, count in enumerate(counts)
    ]
    machine = _core.Machine.from_synthetic(machine)
    return [internal.make_shared_client(machine, described, i) for i in range(len(counts))]


class Job:
    """Runs one function in all processes at once."""

    def __init__(self, counts, hosts=None, machine="pack:1 numa:1 core:4 pu:1"):
        self.clients = clients_of(counts, hosts, machine)
        self.wires = Wires(len(counts))
        self.transports = [self.wires.transport(i) for i in range(len(counts))]
        for client, each in zip(self.clients, self.transports, strict=True):
            transport.install(client, each)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self.clients:
            transport.installed.pop(client._uid, None)

    def run(self, body, *, expect_errors=False):
        """What body(process index) returns in each process; the first error, unless errors are what is asked for."""
        results = [None] * len(self.clients)
        errors = [None] * len(self.clients)

        def play(index):
            with entered(self.clients[index]):
                try:
                    results[index] = body(index)
                except BaseException as error:
                    errors[index] = error

        threads = [threading.Thread(target=play, args=(i,)) for i in range(len(self.clients))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S * 2)
            assert not thread.is_alive()
        if expect_errors:
            return errors
        for error in errors:
            if error is not None:
                raise error
        return results

    def traffic(self):
        """(bytes sent to each process, bytes received from each) of each process."""
        reports = [exchange.traffic(client) for client in self.clients]
        return [(dict(each.sent), dict(each.received)) for each in reports]


def local_values(array):
    """(device id, index as (start, stop) pairs, value) of each shard that is here."""
    return [
        (
            shard.device.id,
            tuple(part.indices(size)[:2] for part, size in zip(shard.index, array.shape, strict=True)),
            np.asarray(shard.data),
        )
        for shard in array.addressable_shards
    ]


def check_value(array, expected):
    """That every shard that is here has its part of `expected`, bit by bit."""
    assert array.shape == expected.shape
    assert array.dtype == expected.dtype
    for shard in array.addressable_shards:
        found = np.asarray(shard.data)
        assert found.tobytes() == np.ascontiguousarray(expected[shard.index]).tobytes(), shard.index
