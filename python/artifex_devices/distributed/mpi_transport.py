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
from artifex_devices.distributed.consistency import CAME, MAX_PAYLOAD, REFUSED, Meeting, MpiMeeting
from artifex_devices.distributed.failure_notice import error_text
from artifex_devices.distributed.flight_records import FlightRecords
from artifex_devices.distributed.local_peers import LocalMeeting, LocalPeers
from artifex_devices.distributed.mpi_runtime import MpiRuntime
from artifex_devices.distributed.peers import Peer, Peers
from artifex_devices.errors import CollectiveError

_PIECE = 1 << 30  # bytes of one MPI message: counts are 32-bit in many MPIs
_FIRST_POLLS = 20  # some microseconds; most messages have arrived
_ANSWERS_S = 2.0  # seconds that others have to send their positions
_LAST_MESSAGES_S = 1.0  # seconds for messages that a process sent before it left
_SPIN_S = 200e-6  # a message between two processes that both poll takes 1 to 20 us
_BYTES_PER_S = 0.5e9  # big messages advance only while both sides poll; so poll until they should have arrived
_CHECK_S = 1e-3
_FIRST_SLEEP_S = 50e-6
_MAX_SLEEP_S = 1e-3


class Message:
    """A message in flight: its pieces, and the memory that MPI reads or writes until they are done."""

    def __init__(self, buffer: memoryview, requests: list[Any]) -> None:
        self.buffer = buffer
        self.requests = requests


class MpiTransport:
    """Sends bytes between the processes of one job. All processes call the same operations in the same order.

    Messages of one sender, one receiver and one tag arrive in the order in which they were sent. Waits end when the
    deadline is over (`config.collective_timeout_s`), a peer has died or Ctrl-C was pressed, with an error that names
    the operation and the processes. Only one thread calls at a time, the others wait.

    After a mismatch, a dead process, a missed deadline or Ctrl-C no process knows what the others do next: then the
    transport is broken, and every later call raises the cause.
    """

    def __init__(
        self,
        runtime: MpiRuntime,
        peers: Peers,
        names: Sequence[str],
        local_peers: LocalPeers | None = None,
        flight: FlightRecords | None = None,
    ) -> None:
        """Collective; `names` are those of all processes, for messages."""
        self._local_peers = local_peers
        self._flight = flight
        self._mpi = runtime.mpi
        self._data = runtime.world
        self._meetings_world = runtime.world.Dup()
        self.process_index: int = runtime.world.Get_rank()
        self.process_count: int = runtime.world.Get_size()
        self._peers = peers
        self._names = list(names)
        self._meetings: dict[tuple[int, ...], list[Meeting]] = {}
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self.broken = ""  # why every further call fails
        self._abandoned: list[Message] = []  # MPI may still use their memory

    def agree(self, operation: str, digest: bytes, processes: Sequence[int], payload: bytes = b"") -> list[bytes]:
        """Waits until all of `processes`, which include this one, come to the same operation with the same digest.

        Args:
            operation: The operation in words, for messages: "device_put of float32[8,4] to ...".
            digest: At most 32 bytes that are equal where the operations are.
            processes: Process numbers, ascending.
            payload: Data for the others; at most `max_payload(processes)` bytes.

        Returns:
            The payload of each of `processes`.

        Raises:
            CollectiveError: A process came with another digest, refused, has ended, or did not come in time. Every
                process raises it, with the operation of each.
        """
        members = tuple(processes)
        if members == (self.process_index,):
            return [payload]
        with self._lock:
            self._check_usable(operation)
            meeting = self._meeting(members)
            flight = self._flight
            number = flight.group(members).meet(operation, digest) if flight else 0
            meeting.start(CAME, digest, payload, operation)
            self._wait(meeting.done, operation, members)
            if not meeting.all_equal():
                if flight:
                    flight.recorder.fail(number)
                self._raise_mismatch(meeting, operation)
            if flight:
                flight.recorder.end(number)
            return meeting.payloads()

    def max_payload(self, processes: Sequence[int]) -> int:
        """Bytes that `agree` of these processes carries; at least 64, the same in each of them."""
        return MAX_PAYLOAD if self.local_peers(processes) is None else LocalPeers.max_payload

    def local_peers(self, processes: Sequence[int]) -> LocalPeers | None:
        """The shared memory of these processes, which include this one; None, in all of them, where there is none."""
        found = self._local_peers
        return found if found is not None and found.have(processes) else None

    def refuse(self, operation: str, reason: str, processes: Sequence[int]) -> None:
        """Reports to those of `processes` that wait in `agree` that this one does not come, and why. Never waits."""
        members = tuple(processes)
        if members == (self.process_index,) or self.broken or os.getpid() != self._pid:
            return
        with self._lock:
            text = f"{operation}: {reason}"
            if self._flight:
                self._flight.recorder.fail(self._flight.group(members).meet(f"refuses {text}", b""))
            self._meeting(members).start(REFUSED, b"", b"", text)

    def isend(self, buffer: Any, peer: int, tag: int) -> Message:
        """Begins to send contiguous bytes, which must not change until the request is done."""
        return self._begin("isend", self._data.Isend, buffer, peer, tag)

    def irecv(self, buffer: Any, peer: int, tag: int) -> Message:
        """Begins to receive exactly as many bytes as `buffer`, contiguous and writable, has."""
        return self._begin("irecv", self._data.Irecv, buffer, peer, tag)

    def _begin(self, operation: str, begin: Callable[..., Any], buffer: Any, peer: int, tag: int) -> Message:
        with self._lock:
            self._check_usable(operation)
            view = memoryview(buffer).cast("B")
            pieces = [view[start : start + _PIECE] for start in range(0, max(len(view), 1), _PIECE)]
            return Message(view, [begin([piece, self._mpi.BYTE], peer, tag) for piece in pieces])

    def wait_some(self, requests: Sequence[Message], operation: str) -> list[int]:
        """Waits until at least one request is done; returns the indexes of all done ones."""
        done: list[int] = []

        def some_done() -> bool:
            done.extend(i for i, message in enumerate(requests) if self._mpi.Request.Testall(message.requests))
            return bool(done)

        with self._lock:
            self._check_usable(operation)
            self._wait(some_done, operation, (), sum(len(message.buffer) for message in requests))
        return done

    def cancel(self, requests: Sequence[Message]) -> None:
        """Gives up requests after an error; afterwards the caller may use their buffers again.

        Memory that MPI may still use stays alive; then the transport is broken.
        """
        error = sys.exc_info()[1]
        after = f" after {error_text(error)}" if error is not None else ""  # without the lock: may call the user's code
        with self._lock:
            for message in requests:
                for request in message.requests:
                    if request != self._mpi.REQUEST_NULL and not request.Test():
                        self._abandoned.append(message)
                        break
            if self._abandoned and not self.broken:
                self.broken = reason = f"messages were given up{after}"
                self._peers.send_failed(reason)

    def wait_until(self, done: Callable[[], bool], operation: str, nbytes: int) -> None:
        """Waits until `done()`, which drives the operation, returns true; `nbytes` of data scale how long it polls."""
        with self._lock:
            self._check_usable(operation)
            number = self.exchange_begins(operation, in_shared_memory=True)
            self._wait(done, operation, (), nbytes)
            self.exchange_ends(number, nbytes)

    def exchange_begins(self, operation: str, *, in_shared_memory: bool = False) -> int:
        """Records that bytes begin to move; returns the number for `exchange_ends`."""
        return self._flight.recorder.exchange(operation, in_shared_memory) if self._flight else 0

    def exchange_ends(self, number: int, nbytes: int, *, failed: bool = False) -> None:
        """Records that an exchange has ended, and the bytes that it sent and received."""
        if self._flight:
            (self._flight.recorder.fail if failed else self._flight.recorder.end)(number, nbytes)

    def flight_report(self) -> str:
        """Lines about the last operations of the processes of this host, each after a line break; or nothing."""
        return f"\n{self._flight.report()}" if self._flight else ""

    def fail(self, reason: str) -> None:
        """Reports to all other processes that this one cannot go on, which ends their waits. Never waits."""
        if os.getpid() != self._pid:  # the connections are the parent's
            return
        self._peers.send_failed(self.broken or reason, is_echo=bool(self.broken))
        self.broken = self.broken or reason

    def close(self) -> None:
        """Releases what MPI holds for it; collective. Nothing can be sent afterwards."""
        self.broken = self.broken or "distributed.shutdown() was called"
        for meetings in self._meetings.values():
            for meeting in meetings:
                meeting.free()
        self._meetings_world.Free()
        self._meetings.clear()
        self._local_peers = None

    def progress(self) -> None:
        """Advances messages that could not be sent yet."""
        self._data.Iprobe()
        if self._local_peers is None or not self._lock.acquire(blocking=False):
            return  # the thread with the lock advances them itself
        try:
            self._local_peers.lanes.wait([], 0)
        finally:
            self._lock.release()

    # --- the checks of every wait

    def _check_usable(self, operation: str) -> None:
        if self.broken:
            raise CollectiveError(
                f"{operation}: the processes of this job no longer work together, since: {self.broken}; expected a "
                "job without failures; end it, and start it again when the cause is fixed"
            )
        if os.getpid() != self._pid:
            raise RuntimeError(
                f"{operation}: this process was forked from process {self.process_index} of the job and is not part of "
                "it; expected the process that called distributed.initialize(); let the parent send the data"
            )

    def _meeting(self, members: tuple[int, ...]) -> Meeting:
        known = self._meetings.setdefault(members, [])
        for meeting in known:
            if meeting.done():
                return meeting
        local_peers = self.local_peers(members)
        if local_peers is not None:
            known.append(LocalMeeting(local_peers, self.process_index, members))
        else:
            known.append(MpiMeeting(self._mpi, self._meetings_world, self.process_index, members))
        return known[-1]

    def _wait(self, done: Callable[[], bool], operation: str, awaited: tuple[int, ...], nbytes: int = 0) -> None:
        limit = config.collective_timeout_s
        start = time.monotonic()
        left_since: dict[int, float] = {}

        def check() -> None:
            self._peers.poll()
            if self._peers.stuck_reason:
                self._raise_stuck(self._peers.stuck_reason, operation)
            peer = self._peers.broken()
            if peer is not None:
                self._raise_broken(peer, operation)
            now = time.monotonic()
            for number in awaited:
                has_left = number != self.process_index and self._peers.by_number[number].state == "left"
                if has_left and now - left_since.setdefault(number, now) > _LAST_MESSAGES_S:
                    self._raise_stuck(f"{self._names[number]} takes no further part", operation)
            if limit is not None and now - start > limit:
                self._raise_stuck(f"the deadline of {limit:g} s (config.collective_timeout_s) is over", operation)

        try:
            _poll_until(done, self._peers, check, nbytes)
        except CollectiveError:
            raise
        except BaseException as error:
            if isinstance(error, self._mpi.Exception):  # how MPI reports a dead process, whose end arrives soon
                until = time.monotonic() + _LAST_MESSAGES_S
                while time.monotonic() < until and self._peers.broken() is None:
                    self._peers.sleep(0.01)
                    check()
            me = self._names[self.process_index]
            self.fail(f"{error_text(error)} in {me}, which waited in {operation} at {call_site()}")
            raise

    def _raise_mismatch(self, meeting: Meeting, operation: str) -> NoReturn:
        refusals = [f"{self._names[number]} refuses: {text}" for number, text in meeting.refusals()]
        if refusals:
            raise CollectiveError(
                f"{operation}: not all processes can take part; expected all of them to come, got "
                f"{'; '.join(refusals)}; fix it there, the job goes on"
            )
        for number, text in meeting.texts():
            if number != self.process_index:
                peer = self._peers.by_number[number]
                peer.position = peer.position or text
        self._raise_stuck("the processes came to different operations", operation)

    def _raise_stuck(self, reason: str, operation: str) -> NoReturn:
        """Asks all other processes for their positions; every process raises the table of them."""
        position = f"{operation}, at {call_site()}"
        was_asked = bool(self._peers.stuck_reason)
        known = {number: peer.position for number, peer in self._peers.by_number.items()}
        self._peers.send_stuck(reason, position)
        until = time.monotonic() + _ANSWERS_S
        while time.monotonic() < until:
            self._peers.poll()
            here = [peer for peer in self._peers.by_number.values() if peer.state == "here"]
            if all(peer.position and (was_asked or peer.position != known[peer.number]) for peer in here):
                break
            self._peers.sleep(0.01)
        lines = []
        for number, name in enumerate(self._names):
            at = position if number == self.process_index else _position_of(self._peers.by_number[number])
            lines.append(f"  {name}: {at}")
        self.broken = f"{reason}:\n" + "\n".join(lines)
        raise CollectiveError(
            f"{reason}; expected every process to run the same operations in the same order, got:\n"
            + "\n".join(lines)
            + "\nLet all processes come to the same calls, with the same shapes, dtypes and shardings"
            + self.flight_report()
        )

    def _raise_broken(self, peer: Peer, operation: str) -> NoReturn:
        where = f"process {self.process_index} waited in {operation}, at {call_site()}"
        if peer.is_echo:
            self.broken = peer.reason
            raise CollectiveError(f"{operation}: {peer.reason}; {where}, in vain; see the messages of other processes")
        if peer.state == "failed":
            self.broken = f"{peer.name} has failed: {peer.reason}"
            raise CollectiveError(
                f"{operation}: {self.broken}; expected it to come, while {where}; see its own messages"
                f"{self.flight_report()}"
            )
        self.broken = f"{peer.name} has ended without notice, killed or crashed"
        text = (
            f"{operation}: {self.broken}; expected it to come, while {where}; see its last messages, and those of the "
            f"system (out of memory?){self.flight_report()}"
        )
        os.write(2, f"artifex_devices: {text}\n".encode())  # at once: the launcher may end this process next
        raise CollectiveError(text)


def _poll_until(done: Callable[[], bool], peers: Peers, check: Callable[[], None], nbytes: int) -> None:
    """Polls `done()`, which also drives MPI, without a pause at first, then with growing sleeps.

    Each poll yields the core to other processes. `nbytes` in flight lengthen the first phase; a message of a peer ends
    a sleep. Calls `check` every millisecond or so, which raises to end the wait.
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
        peers.sleep(sleep_s)
        sleep_s = min(sleep_s * 1.25, _MAX_SLEEP_S)
        check()


def call_site() -> str:
    """File and line of the program that called into the package."""
    frame = user_frame(sys._getframe())
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _position_of(peer: Peer) -> str:
    return peer.position or {
        "left": "takes no further part: its program has ended, or called distributed.shutdown()",
        "lost": "ended without notice",
        "failed": f"failed: {peer.reason}",
    }.get(peer.state, f"not in an operation of this package, or silent for {_ANSWERS_S:g} s")
