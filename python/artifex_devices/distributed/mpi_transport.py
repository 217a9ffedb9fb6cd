# SPDX-License-Identifier: Apache-2.0
"""The transport by MPI: bytes between processes, and the checks that they run the same program."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from artifex_devices._base.caller import user_frame
from artifex_devices.config import config
from artifex_devices.distributed.consistency import CAME, MOST_PAYLOAD, REFUSED, Meeting
from artifex_devices.distributed.local_peers import NeighbourMeeting, Neighbours
from artifex_devices.distributed.mpi_runtime import Engine
from artifex_devices.distributed.peers import Peer, Peers
from artifex_devices.distributed.waiting import wait_until
from artifex_devices.errors import CollectiveError

__all__ = ["MpiTransport"]

_PIECE = 1 << 30  # bytes of one MPI message: counts are 32-bit in many MPIs
_FIRST_LOOKS = 20  # some microseconds
_ANSWERS_S = 2.0  # seconds that others have to say where they are
_LAST_WORDS_S = 1.0  # seconds for messages of a process that has left, sent before


class _Message:
    """A message under way: its pieces, and the memory that MPI reads or writes until they are done."""

    def __init__(self, buffer: memoryview, requests: list[Any]) -> None:
        self.buffer = buffer
        self.requests = requests


class MpiTransport:
    """See `transport.Transport`. Calls of several threads take turns.

    After a mismatch, a dead process, a missed deadline or Ctrl-C no process knows any more where the others are: then
    the transport is broken, and every later call raises what broke it.
    """

    def __init__(
        self, engine: Engine, peers: Peers, names: Sequence[str], neighbours: Neighbours | None = None
    ) -> None:
        """Made in all processes of the job at once.

        Args:
            engine: MPI.
            peers: Connections to the others.
            names: Of all processes, for messages.
            neighbours: Those that this process shares memory with.
        """
        self._neighbours = neighbours
        self._engine = engine
        self._mpi = engine.mpi
        self._data = engine.world
        self._meetings_world = engine.world.Dup()
        self._me: int = engine.world.Get_rank()
        self._count: int = engine.world.Get_size()
        self._peers = peers
        self._names = list(names)
        self._meetings: dict[tuple[int, ...], list[Meeting | NeighbourMeeting]] = {}
        self._communicators: dict[tuple[int, ...], Any] = {tuple(range(self._count)): engine.world}
        self._turn = threading.RLock()
        self._pid = os.getpid()
        self._broken = ""
        self._abandoned: list[_Message] = []  # MPI may still touch their memory

    @property
    def process_index(self) -> int:
        """Number of this process."""
        return self._me

    @property
    def process_count(self) -> int:
        """How many processes there are."""
        return self._count

    @property
    def is_broken(self) -> bool:
        """Whether nothing can be sent any more."""
        return bool(self._broken)

    def agree(self, operation: str, digest: bytes, processes: Sequence[int], payload: bytes = b"") -> list[bytes]:
        """As `transport.Transport.agree` says.

        Args:
            operation: What is done, in words.
            digest: At most 32 bytes that are equal where the operations are.
            processes: Ascending.
            payload: For the others; at most `most_payload(processes)` bytes.

        Raises:
            CollectiveError: They do not meet; the text has a line for each process.
        """
        members = tuple(processes)
        if members == (self._me,):
            return [payload]
        with self._turn:
            self._check_usable(operation)
            meeting = self._meeting(members)
            meeting.start(CAME, digest, payload, operation)
            self._wait(meeting.done, operation, members)
            if not meeting.all_equal():
                self._part(meeting, operation)
            return meeting.payloads()

    def most_payload(self, processes: Sequence[int]) -> int:
        """Bytes that `agree` of these processes carries."""
        return MOST_PAYLOAD if self.neighbours(processes) is None else Neighbours.most_payload

    def neighbours(self, processes: Sequence[int]) -> Neighbours | None:
        """What these processes share memory by, if they do."""
        found = self._neighbours
        return found if found is not None and found.have(processes) else None

    def refuse(self, operation: str, reason: str, processes: Sequence[int]) -> None:
        """As `transport.Transport.refuse` says."""
        members = tuple(processes)
        if members == (self._me,) or self._broken or os.getpid() != self._pid:
            return
        with self._turn:
            self._meeting(members).start(REFUSED, b"", b"", f"{operation}: {reason}")

    def isend(self, buffer: Any, peer: int, tag: int) -> _Message:
        """Begins to send contiguous bytes, which stay as they are until the request is done."""
        with self._turn:
            self._check_usable("isend")
            view = memoryview(buffer).cast("B")
            byte = self._mpi.BYTE
            return _Message(view, [self._data.Isend([piece, byte], peer, tag) for piece in _pieces(view)])

    def irecv(self, buffer: Any, peer: int, tag: int) -> _Message:
        """Begins to receive exactly as many bytes as `buffer`, contiguous and writable, has."""
        with self._turn:
            self._check_usable("irecv")
            view = memoryview(buffer).cast("B")
            byte = self._mpi.BYTE
            return _Message(view, [self._data.Irecv([piece, byte], peer, tag) for piece in _pieces(view)])

    def wait_some(self, requests: Sequence[_Message], operation: str) -> list[int]:
        """Waits until at least one request is done; the places of all that are, in `requests`."""
        flat = [request for message in requests for request in message.requests]
        left = [len(message.requests) for message in requests]
        owner = [i for i, message in enumerate(requests) for _ in message.requests]
        done: list[int] = [i for i, count in enumerate(left) if count == 0]

        def some_done() -> bool:
            for place in self._mpi.Request.Testsome(flat) or ():
                left[owner[place]] -= 1
                if left[owner[place]] == 0:
                    done.append(owner[place])
            return bool(done)

        with self._turn:
            self._check_usable(operation)
            self._wait(some_done, operation, (), sum(len(message.buffer) for message in requests))
            for message in requests:
                message.requests = [request for request in message.requests if request]  # what is done is null
        return sorted(done)

    def cancel(self, requests: Sequence[_Message]) -> None:
        """Gives up requests after an error. What MPI may still touch is kept alive; the transport is broken then."""
        error = sys.exc_info()[1]
        after = f" after {_text_of(error)}" if error is not None else ""  # without the turn: its text may be the user's
        with self._turn:
            for message in requests:
                for request in message.requests:
                    if request != self._mpi.REQUEST_NULL and not request.Test():
                        self._abandoned.append(message)
                        break
            if self._abandoned and not self._broken:
                self._broken = reason = f"messages were given up{after}"
                self._peers.say_failed(reason)

    def communicator(self, processes: Sequence[int]) -> Any:
        """The mpi4py communicator of `processes`, for collectives of MPI; made at the first call, by all of them.

        Call `agree` before each use: MPI itself would wait for ever for a process that does not come.
        """
        members = tuple(processes)
        with self._turn:
            if members not in self._communicators:
                group = self._data.Get_group().Incl(members)
                made = self._data.Create_group(group, 0)
                made.Set_errhandler(self._mpi.ERRORS_RETURN)
                self._communicators[members] = made
            return self._communicators[members]

    def wait(self, request: Any, operation: str, nbytes: int = 0) -> None:
        """Waits for a request of mpi4py, made on a `communicator`; the caller keeps what it sends alive meanwhile.

        Raises:
            CollectiveError: A process has failed or is gone, or the deadline is over.
        """
        with self._turn:
            self._check_usable(operation)
            self._wait(request.Test, operation, (), nbytes)

    def wait_until(self, done: Callable[[], bool], operation: str, nbytes: int) -> None:
        """As `transport.Transport.wait_until` says; no other call gets its turn meanwhile.

        Raises:
            CollectiveError: A process has failed or is gone, or the deadline is over.
        """
        with self._turn:
            self._check_usable(operation)
            self._wait(done, operation, (), nbytes)

    def fail(self, reason: str) -> None:
        """Tells the others that this process cannot go on."""
        if os.getpid() != self._pid:  # the connections are the parent's
            return
        self._peers.say_failed(self._broken or reason, is_echo=bool(self._broken))
        self._broken = self._broken or reason

    def close(self) -> None:
        """Frees what MPI holds for it; collective. Nothing can be sent afterwards."""
        self._broken = self._broken or "distributed.shutdown() was called"
        world = tuple(range(self._count))
        for meetings in self._meetings.values():
            for meeting in meetings:
                meeting.free()
        for members, communicator in self._communicators.items():
            if members != world:
                communicator.Free()
        self._meetings_world.Free()
        self._meetings.clear()
        self._communicators.clear()
        self._neighbours = None

    def move_on(self) -> None:
        """Sends on what could not be sent yet."""
        self._data.Iprobe()
        if self._neighbours is None or not self._turn.acquire(blocking=False):
            return  # who has the turn sends on by itself
        try:
            self._neighbours.lanes.wait([], 0)
        finally:
            self._turn.release()

    # --- the checks of every wait

    def _check_usable(self, operation: str) -> None:
        if self._broken:
            raise CollectiveError(
                f"{operation}: the processes of this job no longer work together, since: {self._broken}; expected a "
                "whole job; end it, and start it again when the cause is mended"
            )
        if os.getpid() != self._pid:
            raise RuntimeError(
                f"{operation}: this process was forked from process {self._me} of the job and is no part of it; "
                "expected the process that called distributed.initialize(); let the parent send the data"
            )

    def _meeting(self, members: tuple[int, ...]) -> Meeting | NeighbourMeeting:
        known = self._meetings.setdefault(members, [])
        for meeting in known:
            if meeting.done():
                return meeting
        neighbours = self.neighbours(members)
        if neighbours is not None:
            known.append(NeighbourMeeting(neighbours, self._me, members))
        else:
            known.append(Meeting(self._mpi, self._meetings_world, self._me, members))
        return known[-1]

    def _wait(self, done: Callable[[], bool], operation: str, awaited: tuple[int, ...], nbytes: int = 0) -> None:
        limit = config.collective_timeout_s
        start = time.monotonic()
        left_since: dict[int, float] = {}

        def look() -> None:
            self._peers.look()
            if self._peers.stuck_reason:
                self._get_stuck(self._peers.stuck_reason, operation)
            peer = self._peers.broken()
            if peer is not None:
                self._mourn(peer, operation)
            now = time.monotonic()
            for number in awaited:
                has_left = number != self._me and self._peers.by_number[number].state == "left"
                if has_left and now - left_since.setdefault(number, now) > _LAST_WORDS_S:
                    self._get_stuck(f"{self._names[number]} takes no further part", operation)
            if limit is not None and now - start > limit:
                self._get_stuck(f"the deadline of {limit:g} s (config.collective_timeout_s) is over", operation)

        try:
            for _ in range(_FIRST_LOOKS):  # most are there at once
                if done():
                    return
            wait_until(done, self._peers, look, nbytes)
        except CollectiveError:
            raise
        except BaseException as error:
            if isinstance(error, self._mpi.Exception):  # a dead process, as MPI puts it; give its end time to be seen
                until = time.monotonic() + _LAST_WORDS_S
                while time.monotonic() < until and self._peers.broken() is None:
                    self._peers.sleep(0.01)
                    look()
            self.fail(f"{_text_of(error)} in {self._names[self._me]}, which waited in {operation} at {call_site()}")
            raise

    def _part(self, meeting: Meeting | NeighbourMeeting, operation: str) -> NoReturn:
        refusals = [f"{self._names[number]} refuses: {text}" for number, text in meeting.refusals()]
        if refusals:
            raise CollectiveError(
                f"{operation}: not all processes can take part; expected all of them to come, got "
                f"{'; '.join(refusals)}; mend it there, the job goes on"
            )
        for number, text in meeting.texts():
            if number != self._me:
                peer = self._peers.by_number[number]
                peer.position = peer.position or text
        self._get_stuck("the processes came to different operations", operation)

    def _get_stuck(self, reason: str, operation: str) -> NoReturn:
        """Asks all others where they are, and raises the table of it in all of them."""
        position = f"{operation}, at {call_site()}"
        asked = bool(self._peers.stuck_reason)
        known = {number: peer.position for number, peer in self._peers.by_number.items()}
        self._peers.say_stuck(reason, position)
        until = time.monotonic() + _ANSWERS_S
        while time.monotonic() < until:
            self._peers.look()
            here = [peer for peer in self._peers.by_number.values() if peer.state == "here"]
            if all(peer.position and (asked or peer.position != known[peer.number]) for peer in here):
                break
            self._peers.sleep(0.01)
        lines = []
        for number, name in enumerate(self._names):
            lines.append(f"  {name}: {position if number == self._me else _where(self._peers.by_number[number])}")
        self._broken = f"{reason}:\n" + "\n".join(lines)
        raise CollectiveError(
            f"{reason}; expected every process to run the same operations in the same order, got:\n"
            + "\n".join(lines)
            + "\nLet all processes come to the same calls, with the same shapes, dtypes and shardings"
        )

    def _mourn(self, peer: Peer, operation: str) -> NoReturn:
        where = f"process {self._me} waited in {operation}, at {call_site()}"
        if peer.is_echo:
            self._broken = peer.reason
            raise CollectiveError(f"{operation}: {peer.reason}; {where}, which will not be; see the messages of others")
        if peer.state == "failed":
            self._broken = f"{peer.name} has failed: {peer.reason}"
            raise CollectiveError(
                f"{operation}: {self._broken}; expected it to come, while {where}; see its own messages"
            )
        self._broken = f"{peer.name} is gone without a word, killed or crashed"
        text = (
            f"{operation}: {self._broken}; expected it to come, while {where}; look for its last messages, and for "
            "those of the system (out of memory?)"
        )
        os.write(2, f"artifex_devices: {text}\n".encode())  # at once: the launcher may end this process next
        raise CollectiveError(text)


def call_site() -> str:
    """File and line of the program that called into the library."""
    frame = user_frame(sys._getframe())
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _where(peer: Peer) -> str:
    if peer.position:
        return peer.position
    if peer.state == "left":
        return "takes no further part: its program has ended, or called distributed.shutdown()"
    if peer.state == "lost":
        return "gone without a word"
    if peer.state == "failed":
        return f"failed: {peer.reason}"
    return f"not in an operation of this library, or silent for {_ANSWERS_S:g} s"


def _text_of(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _pieces(view: memoryview) -> list[memoryview]:
    return [view[start : start + _PIECE] for start in range(0, max(len(view), 1), _PIECE)]
