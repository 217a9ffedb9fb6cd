# SPDX-License-Identifier: Apache-2.0
"""Messages between simulated processes: they wait in channels until the scheduler delivers them, one by one."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable
from typing import NamedTuple

from artifex_devices._base.checks import failure
from artifex_devices.distributed.tags import Tag
from artifex_devices.distributed.transport import Message


class SimulatedMessage(Message):
    """One end of a message: memory that is sent or received."""

    def __init__(self, buffer: memoryview, *, is_done: bool = False) -> None:
        self.buffer = buffer
        self.has_ended = is_done

    def is_done(self) -> bool:
        """Implements Message.is_done."""
        return self.has_ended


class _Parcel(NamedTuple):
    """A message in flight: bytes, with the sender's end, or a call."""

    data: bytes
    sender: SimulatedMessage | None
    call: Callable[[], None] | None


class Channel:
    """The messages of one sender, one receiver and one tag, in order."""

    def __init__(self, number: int, sender: int, receiver: int, tag: int) -> None:
        self.number = number
        self.sender, self.receiver, self.tag = sender, receiver, tag
        self.travelling: deque[_Parcel] = deque()
        self._arrived: deque[_Parcel] = deque()
        self._awaiting: deque[SimulatedMessage] = deque()

    def await_data(self, message: SimulatedMessage) -> None:
        """Adds memory for the next message."""
        self._awaiting.append(message)
        self._match()

    def deliver(self, parcel: _Parcel) -> str:
        """Delivers a message; returns a description."""
        if parcel.call is not None:
            parcel.call()
            return f"report of process {self.sender}"
        self._arrived.append(parcel)
        self._match()
        kind = "record" if self.tag == Tag.MEETING else f"message with tag {self.tag}"
        return f"{kind} of {len(parcel.data)} bytes of process {self.sender}"

    def _match(self) -> None:
        while self._arrived and self._awaiting:
            parcel, message = self._arrived.popleft(), self._awaiting.popleft()
            if len(parcel.data) != len(message.buffer):
                raise failure(
                    RuntimeError,
                    "run_processes",
                    (
                        f"process {self.receiver} receives {len(message.buffer)} bytes, but process {self.sender} has "
                        f"sent {len(parcel.data)}"
                    ),
                    expected="equal sizes",
                    fix="report this error of the package",
                )
            message.buffer[:] = parcel.data
            message.has_ended = True
            if parcel.sender is not None:
                parcel.sender.has_ended = True


class Network:
    """The channels of one job. The scheduler calls it, one thread at a time."""

    def __init__(self, generator: random.Random) -> None:
        self._generator = generator
        self._numbers: dict[tuple[int, int, int], int] = {}
        self._channels: list[Channel] = []  # by number
        self._deliverable: list[int] = []  # numbers of the channels whose oldest message may arrive next, ascending
        self._busy: Counter[tuple[int, int]] = Counter()  # channels with messages other than reports, by their ends

    def channel(self, sender: int, receiver: int, tag: int) -> Channel:
        """Returns the channel of a sender, a receiver and a tag."""
        number = self._numbers.setdefault((sender, receiver, tag), len(self._channels))
        if number == len(self._channels):
            self._channels.append(Channel(number, sender, receiver, tag))
        return self._channels[number]

    def send(self, buffer: memoryview, sender: int, receiver: int, tag: int) -> SimulatedMessage:
        """Sends bytes. As in MPI, the message is done at once or when the receiver has it; the seed decides."""
        message = SimulatedMessage(buffer, is_done=self._generator.random() < 0.5)
        self._add(self.channel(sender, receiver, tag), _Parcel(bytes(buffer), message, None))
        return message

    def report(self, sender: int, receiver: int, call: Callable[[], None]) -> None:
        """Sends a report: `call` runs where it is delivered."""
        self._add(self.channel(sender, receiver, Tag.STATE), _Parcel(b"", None, call))

    def deliverable(self) -> int:
        """Returns how many channels have a message that may arrive next."""
        return len(self._deliverable)

    def deliver(self, index: int) -> tuple[Channel, str]:
        """Delivers the oldest message of one of these channels; returns the channel and a description."""
        channel = self._channels[self._deliverable[index]]
        parcel = channel.travelling.popleft()
        self._note_empty(channel)
        return channel, channel.deliver(parcel)

    def lose(self, sender: int) -> None:
        """Drops the messages of a killed process from a random message of each channel on."""
        for channel in self._channels:
            if channel.sender == sender and channel.travelling:
                arriving = self._generator.randint(0, len(channel.travelling))
                while len(channel.travelling) > arriving:
                    channel.travelling.pop()
                self._note_empty(channel)

    def _add(self, channel: Channel, parcel: _Parcel) -> None:
        channel.travelling.append(parcel)
        if len(channel.travelling) > 1:
            return
        ends = (channel.sender, channel.receiver)
        if channel.tag != Tag.STATE:
            self._busy[ends] += 1
            self._set_deliverable(channel, True)
        self._set_reports(ends)

    def _note_empty(self, channel: Channel) -> None:
        if channel.travelling:
            return
        ends = (channel.sender, channel.receiver)
        self._set_deliverable(channel, False)
        if channel.tag != Tag.STATE:
            self._busy[ends] -= 1
            self._set_reports(ends)

    def _set_reports(self, ends: tuple[int, int]) -> None:
        """Lets the reports between two processes wait for all messages between them."""
        number = self._numbers.get((*ends, Tag.STATE))
        if number is not None:
            channel = self._channels[number]
            self._set_deliverable(channel, bool(channel.travelling) and not self._busy[ends])

    def _set_deliverable(self, channel: Channel, deliverable: bool) -> None:
        numbers = self._deliverable
        place = bisect_left(numbers, channel.number)
        if (place < len(numbers) and numbers[place] == channel.number) == deliverable:
            return
        if deliverable:
            numbers.insert(place, channel.number)
        else:
            del numbers[place]
