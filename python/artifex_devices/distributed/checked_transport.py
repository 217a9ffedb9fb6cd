# SPDX-License-Identifier: Apache-2.0
"""The base of all transports: checks in every wait that all processes run the same program, and their errors."""

from __future__ import annotations

import abc
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NoReturn

from artifex_devices._base.caller import PACKAGE_FOLDER, user_frame
from artifex_devices._base.checks import failure
from artifex_devices._base.digest import digest_of
from artifex_devices._base.text import cpu_list
from artifex_devices._base.thread_stacks import thread_stacks
from artifex_devices._core import internal
from artifex_devices._core.internal import FlightGroup
from artifex_devices.config import config
from artifex_devices.distributed.consistency import REFUSED, MeetingPoint
from artifex_devices.distributed.failure_notice import error_text
from artifex_devices.distributed.peers import Peer, PeerStates
from artifex_devices.distributed.transport import Message, Transport
from artifex_devices.errors import CollectiveError

_ANSWERS_S = 2.0  # seconds in which other processes must send their positions


_forks = 0  # number of forks since the import of this module; os.getpid() takes a system call


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


class ExclusiveUse:
    """A `with` block in which only the calling thread uses a transport; CollectiveError if another thread uses it.

    Two threads would run their operations in another order in each process: each process would wait in one thread's
    operation for processes that wait in the other thread's.
    """

    __slots__ = ("_before", "_operation", "_transport")

    def __init__(self, transport: CheckedTransport, operation: str) -> None:
        self._transport = transport
        self._operation = operation

    def __enter__(self) -> None:
        transport = self._transport
        if not transport._lock.acquire(blocking=False):
            transport._refuse_overlap(self._operation)
        self._before = transport._user
        transport._user = self._before or (threading.get_ident(), self._operation)

    def __exit__(self, *_: object) -> None:
        self._transport._user = self._before
        self._transport._lock.release()
        if self._transport._refusals:
            self._transport._send_refusals()


class _Group:
    """A group of processes that run operations together, and their meetings so far."""

    __slots__ = ("flight", "meetings", "turn")

    def __init__(self, flight: FlightGroup | None, meeting: MeetingPoint) -> None:
        self.flight = flight
        self.meetings = [meeting]  # several if this process has refused in a meeting that is not done
        self.turn = 0


class CheckedTransport(Transport):
    """A transport that compares operations by meetings, and watches the states of the other processes in each wait."""

    last_messages_s = 1.0  # seconds for messages that a process sent before it left

    def __init__(self, process_index: int, names: Sequence[str], peers: PeerStates) -> None:
        """`names` has the name of each process, for messages."""
        self.process_index = process_index
        self.process_count = len(names)
        self.broken = ""
        self._names = list(names)
        self._peers = peers
        self._groups: dict[tuple[int, ...], _Group] = {}
        self.traced_meetings: dict[int, int] = {}
        self._lock = threading.RLock()
        self._user: tuple[int, str] | None = None  # the thread in an operation, and that
        self._refusals: deque[tuple[tuple[int, ...], str]] = deque()  # members and text; sent with the lock
        self._forks = _forks
        self._abandoned: list[Message] = []  # their memory may still be used

    # --- what a subclass does

    @abc.abstractmethod
    def _new_meeting_point(self, members: tuple[int, ...]) -> MeetingPoint:
        """Creates a meeting of these processes."""

    @abc.abstractmethod
    def _poll_until(self, done: Callable[[], bool], check: Callable[[], None], nbytes: int) -> None:
        """Waits until `done()` returns true; calls `check()`, which raises to end the wait, from time to time."""

    @abc.abstractmethod
    def _now(self) -> float:
        """Returns the time in seconds, for deadlines."""

    def _end_pause(self) -> None:
        """Makes a wait of another thread call its `check` soon; polling waits do so anyway."""

    def _is_transport_error(self, error: BaseException) -> bool:
        """Returns whether an error is how the transport below reports a dead process."""
        return False

    def _report_lost(self, text: str) -> None:
        """Reports at once that a process was lost, because the launcher may end this process next."""

    # --- the operations

    def agree(self, operation: str, digest: bytes, processes: Sequence[int], payload: bytes = b"") -> list[bytes]:
        """Implements Transport.agree."""
        members = tuple(processes)
        if members == (self.process_index,):
            return [payload]
        if not self._lock.acquire(False):  # as ExclusiveUse, which takes longer
            self._refuse_overlap(operation)
        before = self._user
        try:
            self._user = before or (threading.get_ident(), operation)
            if self.broken or _forks != self._forks:
                self._check_usable(operation)
            group = self._groups.get(members) or self._new_group(members)
            meeting = group.meetings[0]
            if not meeting.done():
                meeting = self._other_meeting(group, members)
            begin_ns = internal.trace_begin()
            group.turn += 1
            flight = group.flight
            try:
                payloads = meeting.meet(digest, payload, operation, flight)
            except BaseException as error:
                self._end_wait(error, operation)
                raise
            if payloads is None:
                payloads = self._late_payloads(meeting, operation, flight)
            if begin_ns:
                self._trace_meeting(operation, members, digest, group.turn, begin_ns)
            return payloads
        finally:
            self._user = before
            self._lock.release()
            if self._refusals:
                self._send_refusals()

    def _late_payloads(self, meeting: MeetingPoint, operation: str, flight: FlightGroup | None) -> list[bytes]:
        """Waits for the other processes in a meeting."""
        number = flight.last if flight else 0
        self._wait(meeting.done, operation, meeting.missing)
        is_same = meeting.all_equal()
        if self.flight:
            (self.flight.recorder.end if is_same else self.flight.recorder.fail)(number)
        if not is_same:
            self._raise_mismatch(meeting, operation)
        return meeting.payloads()

    def refuse(self, operation: str, reason: str, processes: Sequence[int]) -> None:
        """Implements Transport.refuse."""
        members = tuple(processes)
        if members == (self.process_index,) or self.broken or _forks != self._forks:
            return
        self._refusals.append((members, f"{operation}: {reason}"))
        self._send_refusals()
        if self._refusals:
            self._end_pause()

    def _send_refusals(self) -> None:
        """Sends the refusals of all threads, unless another thread has the lock: then that sends them.

        It does so in its wait, and after it has released the lock.
        """
        while self._refusals and self._lock.acquire(blocking=False):
            try:
                while self._refusals:
                    self._send_refusal(*self._refusals.popleft())
            finally:
                self._lock.release()

    def _send_refusal(self, members: tuple[int, ...], text: str) -> None:
        if self.broken:
            return
        group = self._groups.get(members) or self._new_group(members)
        if self.flight and group.flight:
            group.flight.meet(f"refuses {text}", b"")
            self.flight.recorder.fail(group.flight.last)
        self._other_meeting(group, members).start(REFUSED, b"", b"", text)

    def wait_some(self, messages: Sequence[Message], operation: str) -> list[int]:
        """Implements Transport.wait_some."""
        done: list[int] = []

        def some_done() -> bool:
            done[:] = [i for i, message in enumerate(messages) if message.is_done()]
            return bool(done)

        with self.exclusive(operation):
            self._check_usable(operation)
            self._wait(some_done, operation, tuple, sum(len(message.buffer) for message in messages))
        return done

    def wait_until(self, done: Callable[[], bool], operation: str, nbytes: int) -> None:
        """Implements Transport.wait_until."""
        with self.exclusive(operation):
            self._check_usable(operation)
            flight = self.flight
            begin_ns = internal.trace_begin()
            number = flight.recorder.exchange(operation, True) if flight else 0
            self._wait(done, operation, tuple, nbytes)
            if flight:
                flight.recorder.end(number, nbytes)
            if begin_ns:
                internal.trace_event("exchange", operation, "shared memory", begin_ns, self.process_index, nbytes)

    def cancel(self, messages: Sequence[Message], reason: str) -> None:
        """Implements Transport.cancel. Memory that is still used stays alive; then the transport is broken."""
        with self._lock:
            self._abandoned += [message for message in messages if not message.is_done()]
            if self._abandoned and not self.broken:
                self.broken = f"messages were given up after {reason}"
                self._peers.send_failed(self.broken)

    def fail(self, reason: str) -> None:
        """Implements Transport.fail."""
        if _forks != self._forks:  # the connections are the parent's
            return
        self._peers.send_failed(self.broken or reason, is_echo=bool(self.broken))
        self.broken = self.broken or reason

    def exclusive(self, operation: str) -> ExclusiveUse:
        """Implements Transport.exclusive."""
        return ExclusiveUse(self, operation)

    # --- the checks of every wait

    def _check_usable(self, operation: str) -> None:
        if self.broken:
            raise failure(
                CollectiveError,
                operation,
                f"the processes of this job no longer work together, since: {self.broken}",
                expected="a job without failures",
                fix="end it, and start it again when the cause is fixed",
            )
        if _forks != self._forks:
            raise failure(
                RuntimeError,
                operation,
                f"this process was forked from process {self.process_index} of the job and is not part of it",
                expected="the process that called distributed.initialize()",
                fix="let the parent send the data",
            )

    def _refuse_overlap(self, operation: str) -> NoReturn:
        """Ends the job: no process knows which of two operations other processes run first."""
        self._check_usable(operation)
        thread, other = self._user or (0, "another operation")
        names = {each.ident: each.name for each in threading.enumerate()}
        calls = [each for each in thread_stacks().get(thread, []) if not each.filename.startswith(PACKAGE_FOLDER)]
        line = f"{calls[-1].filename}:{calls[-1].lineno}" if calls else ""
        there = f"thread {names.get(thread, thread)} is in {other}{f' at {line}' if line not in other else ''}"
        here = f"thread {threading.current_thread().name} began another at {call_site()}"
        self.fail(f"two threads of {self._names[self.process_index]} used it at once: {there}, and {here}")
        raise failure(
            CollectiveError,
            operation,
            f"{there}, and {here}",
            expected=(
                "one operation between processes at a time, because other processes may run the two in another order"
            ),
            fix="make both calls in one thread",
        )

    def _new_group(self, members: tuple[int, ...]) -> _Group:
        flight = self.flight.group(members) if self.flight else None
        group = self._groups[members] = _Group(flight, self._new_meeting_point(members))
        return group

    def _other_meeting(self, group: _Group, members: tuple[int, ...]) -> MeetingPoint:
        """Returns the first meeting that is done, or a new one."""
        for meeting in group.meetings:
            if meeting.done():
                return meeting
        group.meetings.append(self._new_meeting_point(members))
        return group.meetings[-1]

    def _wait(
        self, done: Callable[[], bool], operation: str, awaited: Callable[[], Iterable[int]], nbytes: int = 0
    ) -> None:
        """Waits until `done()` returns true. It cannot, once one of the `awaited()` processes has left."""
        limit = config.collective_timeout_s
        start = self._now()
        left_since: dict[int, float] = {}

        def check() -> None:
            self._peers.poll()
            if self._refusals:  # of another thread
                self._send_refusals()
            if self.broken:  # by another thread
                self._check_usable(operation)
            if self._peers.stuck_reason:
                self._raise_stuck(self._peers.stuck_reason, operation)
            peer = self._peers.broken()
            if peer is not None:
                self._raise_broken(peer, operation)
            now = self._now()
            for number in awaited():
                has_left = self._peers.by_number[number].state == "left"
                if has_left and now - left_since.setdefault(number, now) >= self.last_messages_s:
                    self._raise_stuck(f"{self._names[number]} takes no further part", operation)
            if limit is not None and now - start > limit:
                self._raise_stuck(f"the deadline of {limit:g} s (config.collective_timeout_s) is over", operation)

        try:
            self._poll_until(done, check, nbytes)
        except CollectiveError:
            raise
        except BaseException as error:
            if self._is_transport_error(error):  # the end of the dead process arrives soon
                until = self._now() + self.last_messages_s
                while self._now() < until and self._peers.broken() is None:
                    self._peers.sleep(0.01)
                    check()
            self._end_wait(error, operation)
            raise

    def _end_wait(self, error: BaseException, operation: str) -> None:
        """Reports that this process does not wait any more, because of an error."""
        me = self._names[self.process_index]
        self.fail(f"{error_text(error)} in {me}, which waited in {operation} at {call_site()}")

    def _raise_mismatch(self, meeting: MeetingPoint, operation: str) -> NoReturn:
        refusals = [f"{self._names[number]} refuses: {text}" for number, text in meeting.refusals()]
        if refusals:
            raise failure(
                CollectiveError,
                operation,
                "not all processes can take part",
                expected="all of them to take part",
                got="; ".join(refusals),
                fix="fix the cause there; the job continues",
            )
        for number, text in meeting.texts():
            if number != self.process_index:
                peer = self._peers.by_number[number]
                peer.position = peer.position or text
        self._raise_stuck("the processes called different operations", operation)

    def _raise_stuck(self, reason: str, operation: str) -> NoReturn:
        """Asks all other processes for their positions; every process raises an error with the table of positions."""
        position = f"{operation}, at {call_site()}"
        self._peers.send_stuck(reason, position)
        until = self._now() + _ANSWERS_S
        while self._now() < until:
            self._peers.poll()
            if all(peer.has_reported for peer in self._peers.by_number.values() if peer.state == "here"):
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
            + "\nEvery process must make the same calls, with the same shapes, dtypes and shardings"
            + self._flight_report()
        )

    def _raise_broken(self, peer: Peer, operation: str) -> NoReturn:
        where = f"process {self.process_index} waited in {operation}, at {call_site()}"
        if peer.is_echo:
            self.broken = peer.reason
            raise CollectiveError(
                f"{operation}: {peer.reason}; {where}, and got no answer; see the errors of the other processes"
            )
        if peer.state == "failed":
            self.broken = f"{peer.name} has failed: {peer.reason}"
            raise failure(
                CollectiveError,
                operation,
                self.broken,
                expected=f"it to call the same operation, while {where}",
                fix=f"see its own messages{self._flight_report()}",
            )
        self.broken = f"{peer.name} has ended without notice, killed or crashed"
        text = (
            f"{operation}: {self.broken}; expected it to call the same operation, while {where}; see its last messages "
            f"and the system's (out of memory?){self._flight_report((peer.number,))}"
        )
        self._report_lost(text)
        raise CollectiveError(text)

    def _trace_meeting(self, operation: str, members: tuple[int, ...], digest: bytes, turn: int, begin_ns: int) -> None:
        """Adds a meeting to open traces; its number is the same in all members."""
        identity = digest_of(f"{members} {turn} {digest.hex()}")
        number = int.from_bytes(identity[:7], "little") | internal.SHARED_TRACE_MEETING
        self.traced_meetings[threading.get_ident()] = number
        processes = cpu_list(members)
        internal.trace_event("meeting", operation, processes, begin_ns, self.process_index, meeting=number)

    def _flight_report(self, ended: Collection[int] = ()) -> str:
        """Formats the last operations of the processes of this host, each after a line break; "" without records."""
        return f"\n{self.flight.report(ended)}" if self.flight else ""


def call_site() -> str:
    """Returns file and line of the program that called into the package."""
    frame = user_frame(sys._getframe())
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _position_of(peer: Peer) -> str:
    return peer.position or {
        "left": "takes no further part: its program has ended, or called distributed.shutdown()",
        "lost": "ended without notice",
        "failed": f"failed: {peer.reason}",
    }.get(peer.state, f"not in an operation of this package, or silent for {_ANSWERS_S:g} s")
