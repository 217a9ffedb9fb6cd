# SPDX-License-Identifier: Apache-2.0
"""Messages between simulated processes: they wait in channels until the scheduler delivers them, one by one."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from artifex_devices.distributed.transport import Message

REPORTS = -1  # tag of messages about the state of a process; they arrive after all messages that were sent before
RECORDS = -2  # tag of the records of meetings


class SimulatedMessage(Message):
    """One end of a message: memory that is sent or received."""

    def __init__(self, buffer: memoryview, *, is_done: bool = False) -> None:
        self.buffer = buffer
        self.has_ended = is_done

    def is_done(self) -> bool:
        """See Message.is_done."""
        return self.has_ended


class _Parcel(NamedTuple):
    """What travels: bytes, with the sender's end, or a call."""

    data: bytes
    sender: SimulatedMessage | None
    call: Callable[[], None] | None


class Channel:
    """The messages of one sender, one receiver and one tag, in order."""

    def __init__(self, sender: int, receiver: int, tag: int) -> None:
        self.sender, self.receiver, self.tag = sender, receiver, tag
        self.travelling: deque[_Parcel] = deque()
        self._arrived: deque[_Parcel] = deque()
        self._awaiting: deque[SimulatedMessage] = deque()

    def await_data(self, message: SimulatedMessage) -> None:
        """Adds memory for the next message."""
        self._awaiting.append(message)
        self._match()

    def deliver(self) -> str:
        """Delivers the oldest message that travels; returns a description."""
        parcel = self.travelling.popleft()
        if parcel.call is not None:
            parcel.call()
            return f"report of process {self.sender}"
        self._arrived.append(parcel)
        self._match()
        kind = "record" if self.tag == RECORDS else f"message with tag {self.tag}"
        return f"{kind} of {len(parcel.data)} bytes of process {self.sender}"

    def _match(self) -> None:
        while self._arrived and self._awaiting:
            parcel, message = self._arrived.popleft(), self._awaiting.popleft()
            if len(parcel.data) != len(message.buffer):
                raise RuntimeError(
                    f"run_processes: process {self.receiver} receives {len(message.buffer)} bytes, but process "
                    f"{self.sender} has sent {len(parcel.data)}; expected equal sizes; report this error of the package"
                )
            message.buffer[:] = parcel.data
            message.has_ended = True
            if parcel.sender is not None:
                parcel.sender.has_ended = True


class Network:
    """The channels of one job. The scheduler calls it, one thread at a time."""

    def __init__(self, generator: random.Random) -> None:
        self._generator = generator
        self._channels: dict[tuple[int, int, int], Channel] = {}

    def channel(self, sender: int, receiver: int, tag: int) -> Channel:
        """The channel of a sender, a receiver and a tag."""
        key = (sender, receiver, tag)
        found = self._channels.get(key)
        if found is None:
            found = self._channels[key] = Channel(*key)
        return found

    def send(self, buffer: memoryview, sender: int, receiver: int, tag: int) -> SimulatedMessage:
        """Sends bytes. As in MPI, the message is done at once or when the receiver has it; the seed decides."""
        message = SimulatedMessage(buffer, is_done=self._generator.random() < 0.5)
        self.channel(sender, receiver, tag).travelling.append(_Parcel(bytes(buffer), message, None))
        return message

    def report(self, sender: int, receiver: int, call: Callable[[], None]) -> None:
        """Sends a report: `call` runs where it is delivered."""
        self.channel(sender, receiver, REPORTS).travelling.append(_Parcel(b"", None, call))

    def deliverable(self) -> list[Channel]:
        """The channels whose oldest message may arrive next."""
        busy = [channel for channel in self._channels.values() if channel.travelling]
        if not [channel for channel in busy if channel.tag == REPORTS]:  # twice as fast as any()
            return busy
        pairs = {(channel.sender, channel.receiver) for channel in busy if channel.tag != REPORTS}
        return [each for each in busy if each.tag != REPORTS or (each.sender, each.receiver) not in pairs]

    def lose(self, sender: int) -> None:
        """Drops what a killed process has sent from a random message of each channel on."""
        for channel in self._channels.values():
            if channel.sender == sender and channel.travelling:
                arriving = self._generator.randint(0, len(channel.travelling))
                while len(channel.travelling) > arriving:
                    channel.travelling.pop()
