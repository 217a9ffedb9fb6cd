# SPDX-License-Identifier: Apache-2.0
"""The checks of every wait between processes, in one process of three whose peers only record what they are sent."""

import sys
import threading

import clock_transport
import pytest
from artifex_devices import config
from artifex_devices.distributed import checked_transport
from artifex_devices.distributed.checked_transport import call_site
from artifex_devices.errors import CollectiveError
from clock_transport import ClockTransport, message, never


@pytest.fixture
def transport():
    return ClockTransport()


# --- giving up messages


def test_finished_messages_are_given_up_without_a_failure(transport):
    transport.cancel([message(8, is_done=True)], "an error")
    assert (transport.broken, transport.peers.sent) == ("", [])


def test_messages_under_way_that_are_given_up_stay_alive_and_end_the_job(transport):
    late = message(8, is_done=False)
    transport.cancel([message(8, is_done=True), late], "KeyError: 'key'")
    assert transport._abandoned == [late]
    reason = "messages were given up after KeyError: 'key'"
    assert transport.broken == reason
    assert transport.peers.sent == [{"kind": "failed", "reason": reason, "is_echo": False}]
    transport.cancel([late], "an error")  # the others know it
    assert transport._abandoned == [late, late]
    assert len(transport.peers.sent) == 1
    with pytest.raises(CollectiveError, match=f"^wait: the processes of this job .* since: {reason}; expected a job"):
        transport.wait_some([late], "wait")


# --- failures


def test_ctrl_c_while_the_others_come_is_reported_to_them(transport, monkeypatch):
    def interrupted(self, digest, payload, text, flight):
        raise KeyboardInterrupt

    monkeypatch.setattr(clock_transport.TableMeetingPoint, "meet", interrupted)
    with pytest.raises(KeyboardInterrupt):
        transport.agree("psum", b"s" * 32, [0, 1])
    line = sys._getframe().f_lineno - 1
    reason = f"KeyboardInterrupt in process 0, which waited in psum at {__file__}:{line}"
    assert transport.broken == reason
    assert transport.peers.sent == [{"kind": "failed", "reason": reason, "is_echo": False}]


def test_a_failure_is_reported_once_as_its_own_and_later_as_an_echo(transport):
    transport.fail("first")
    transport.fail("second")
    assert transport.broken == "first"
    assert transport.peers.sent == [
        {"kind": "failed", "reason": "first", "is_echo": False},
        {"kind": "failed", "reason": "first", "is_echo": True},
    ]


def test_a_forked_child_neither_reports_nor_refuses_nor_waits(transport, monkeypatch):
    monkeypatch.setattr(checked_transport, "_forks", transport._forks + 1)
    transport.fail("first")
    transport.refuse("psum", "why", [0, 1])
    assert (transport.broken, transport.peers.sent, transport.new) == ("", [], [])
    with pytest.raises(RuntimeError, match=r"^wait: this process was forked from process 0 of the job and is not part"):
        transport.wait_until(never, "wait", 0)
    assert transport.polls == []


def test_a_refusal_is_sent_to_others_only(transport):
    transport.refuse("psum", "why", [0])
    assert transport.new == []
    transport.refuse("psum", "why", [0, 2])
    assert transport.new[0].started == (2, b"", b"", "psum: why")
    transport.fail("first")
    transport.refuse("psum", "why", [0, 1])
    assert len(transport.new) == 1


def in_another_thread(call):
    """Runs a call in another thread, which must end by itself."""
    thread = threading.Thread(target=call)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()


def test_a_refusal_does_not_wait_for_another_thread_which_sends_it_in_its_wait(transport):
    started = []

    def done():
        if not transport.polls[1:]:
            in_another_thread(lambda: transport.refuse("psum", "why", [0, 2]))
            assert transport.new == []  # this thread has the transport
            transport.polls.append("refused")
        started.extend(meeting.started for meeting in transport.new)
        return bool(started)

    transport.wait_until(done, "wait", 0)
    assert started == [(2, b"", b"", "psum: why")]
    assert transport.broken == ""


def test_a_refusal_is_sent_by_the_thread_that_releases_the_transport(transport):
    with transport.exclusive("reshard"):
        in_another_thread(lambda: transport.refuse("psum", "why", [0, 2]))
        in_another_thread(lambda: transport.refuse("psum", "why not", [0, 1]))
        assert transport.new == []
    assert [meeting.started[3] for meeting in transport.new] == ["psum: why", "psum: why not"]


def test_a_refusal_after_a_failure_is_not_sent(transport):
    with transport.exclusive("reshard"):
        in_another_thread(lambda: transport.refuse("psum", "why", [0, 2]))
        transport.fail("first")
    assert transport.new == []


# --- waits


def test_a_wait_for_some_messages_returns_those_that_have_arrived(transport):
    messages = [message(3, is_done=False), message(5, is_done=True), message(7, is_done=True)]
    assert transport.wait_some(messages, "wait") == [1, 2]
    assert transport.polls == [15]


def test_a_meeting_is_used_again_once_it_has_ended(transport):
    assert transport.agree("psum", b"digest", [0, 1], b"payload") == [b"payload"] * 2
    assert transport.agree("psum", b"digest", [0, 1]) == [b"", b""]
    assert transport.agree("psum", b"digest", [0, 2], b"other") == [b"other"] * 2
    assert len(transport.new) == 2
    assert transport.agree("psum", b"digest", [0], b"alone") == [b"alone"]
    assert {members: group.turn for members, group in transport._groups.items()} == {(0, 1): 2, (0, 2): 1}


def test_the_deadline_counts_from_the_begin_of_a_wait(transport):
    before = config.collective_timeout_s
    config.update("collective_timeout_s", 2.0)
    try:
        transport.clock.now = 100.0
        with pytest.raises(CollectiveError) as caught:
            transport.wait_until(never, "reshard", 8)
    finally:
        config.update("collective_timeout_s", before)
    assert transport.clock.now == pytest.approx(104.0, abs=0.03)  # and 2 s for the positions of the others
    site = f"{clock_transport.__file__}:"  # which calls the check
    assert str(caught.value).startswith(
        "the deadline of 2 s (config.collective_timeout_s) is over; expected every process to run the same operations "
        f"in the same order, got:\n  process 0: reshard, at {site}"
    )
    silent = "not in an operation of this package, or silent for 2 s"
    assert f"\n  process 1: {silent}\n  process 2: {silent}\nEvery process must make" in str(caught.value)
    assert transport.broken.startswith("the deadline of 2 s (config.collective_timeout_s) is over:\n  process 0: resh")
    (stuck,) = transport.peers.sent
    assert stuck["kind"] == "stuck"
    assert stuck["reason"] == "the deadline of 2 s (config.collective_timeout_s) is over"
    assert stuck["position"].startswith(f"reshard, at {site}")


def test_the_positions_of_the_others_end_the_wait_for_them(transport):
    peers = transport.peers
    stuck = {"kind": "stuck", "reason": "they differ"}
    peers.answers = [
        lambda: peers.handle(peers.by_number[2], {**stuck, "position": "pmax, at b.py:2"}),
        lambda: None,
        lambda: peers.handle(peers.by_number[1], {**stuck, "position": "psum, at a.py:1", "reason": "later"}),
    ]
    with pytest.raises(CollectiveError, match=r"^they differ; expected every process") as caught:
        transport.wait_until(never, "reshard", 8)
    assert "\n  process 1: psum, at a.py:1\n  process 2: pmax, at b.py:2\n" in str(caught.value)
    assert transport.clock.now == pytest.approx(0.01)


@pytest.mark.parametrize(("lost", "failed"), [(1, 2), (2, 1)])
def test_a_process_that_says_why_it_failed_is_named_before_one_that_is_lost(transport, lost, failed):
    peers = transport.peers
    peers.by_number[lost].state = "lost"
    peers.handle(peers.by_number[failed], {"kind": "failed", "reason": "its own", "is_echo": False})
    assert peers.broken() is peers.by_number[failed]
    peers.handle(peers.by_number[failed], {"kind": "failed", "reason": "the other's", "is_echo": True})
    assert peers.broken() is peers.by_number[lost]


def test_a_process_that_has_left_is_missed_after_its_last_messages(transport):
    peers = transport.peers
    peers.by_number[1].state = "left"
    with pytest.raises(CollectiveError, match=r"^process 1 takes no further part; expected") as caught:
        transport._wait(never, "psum", lambda: [1])
    assert "process 1: takes no further part: its program has ended, or called distributed.shutdown()" in str(
        caught.value
    )
    assert transport.clock.now == pytest.approx(1.0 + 2.0, abs=0.03)


def test_a_process_that_has_left_is_not_missed_where_nobody_waits_for_it(transport):
    transport.peers.by_number[1].state = "left"
    transport._wait(lambda: transport.clock.now > 5, "psum", lambda: [2])
    assert transport.broken == ""


@pytest.mark.parametrize(
    ("state", "is_echo", "text", "broken"),
    [
        (
            "failed",
            False,
            "psum: process 2 has failed: KeyError; expected it to call the same operation, while "
            "process 0 waited in psum, at ",
            "process 2 has failed: KeyError",
        ),
        ("failed", True, "psum: KeyError; process 0 waited in psum, at ", "KeyError"),
        (
            "lost",
            False,
            "psum: process 2 has ended without notice, killed or crashed; expected it to call the same operation, "
            "while process 0 waited",
            "process 2 has ended without notice, killed or crashed",
        ),
    ],
)
def test_the_end_of_another_process_ends_a_wait(transport, state, is_echo, text, broken):
    reported = []
    transport._report_lost = reported.append
    peer = transport.peers.by_number[2]
    peer.state, peer.is_echo, peer.reason = state, is_echo, "KeyError"
    with pytest.raises(CollectiveError) as caught:
        transport.wait_until(never, "psum", 8)
    assert str(caught.value).startswith(text)
    assert transport.broken == broken
    assert reported == ([str(caught.value)] if state == "lost" else [])
    assert transport.peers.sent == []


def test_an_error_of_a_wait_ends_the_job(transport):
    def done():
        raise ZeroDivisionError("in done")

    with pytest.raises(ZeroDivisionError):
        transport.wait_until(done, "psum", 8)
    begin = "ZeroDivisionError: in done in process 0, which waited in psum at "
    assert transport.broken.startswith(f"{begin}{__file__}:")
    assert transport.peers.sent[0]["reason"] == transport.broken
    assert transport.clock.now == 0


def test_an_error_of_the_connection_waits_for_the_end_of_the_dead_process(transport):
    peers = transport.peers
    peers.answers = [lambda: None, lambda: setattr(peers.by_number[1], "state", "lost")]

    def done():
        raise ConnectionResetError("reset")

    with pytest.raises(CollectiveError, match=r"^psum: process 1 has ended without notice"):
        transport.wait_until(done, "psum", 8)
    assert transport.clock.now == pytest.approx(0.02)


def test_an_error_of_the_connection_without_a_dead_process_is_raised_after_a_second(transport):
    def done():
        raise ConnectionResetError("reset")

    with pytest.raises(ConnectionResetError):
        transport.wait_until(done, "psum", 8)
    assert transport.clock.now == pytest.approx(1.0, abs=0.02)
    assert transport.broken.startswith("ConnectionResetError: reset in process 0, which waited in psum at ")


# --- two threads


def test_two_threads_in_two_operations_end_the_job(transport):
    inside, go_on = threading.Event(), threading.Event()

    def hold():
        with transport.exclusive("psum"), transport.exclusive("inner"):  # the outer one is named
            inside.set()
            go_on.wait(20)

    holder = threading.Thread(target=hold, name="holder")
    holder.start()
    assert inside.wait(20)
    with pytest.raises(CollectiveError) as caught, transport.exclusive("reshard"):
        pass
    go_on.set()
    holder.join()
    me = threading.current_thread().name
    assert str(caught.value).startswith("reshard: thread holder is in psum at ")
    assert f"thread {me} began another at {__file__}:" in str(caught.value)
    assert transport.broken.startswith("two threads of process 0 used it at once: thread holder is in psum")
    assert transport._user is None
    with pytest.raises(CollectiveError, match=r"^reshard: the processes of this job no longer work together"):
        transport.wait_until(never, "reshard", 0)


def test_a_thread_is_in_an_operation_until_its_outermost_block_ends(transport):
    with transport.exclusive("psum"):
        with transport.exclusive("inner"):
            assert transport._user == (threading.get_ident(), "psum")
        assert transport._user == (threading.get_ident(), "psum")
    assert transport._user is None
    with transport.exclusive("next"):
        assert transport._user == (threading.get_ident(), "next")


def test_a_call_site_is_a_line_of_the_program():
    assert call_site() == f"{__file__}:{sys._getframe().f_lineno}"
