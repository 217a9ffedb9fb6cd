# SPDX-License-Identifier: Apache-2.0
"""The parts of artifex_devices.distributed that need no MPI; whole jobs are tested in tests/distributed."""

import json
import math
import pickle
import socket
import struct
import subprocess
import sys
from types import SimpleNamespace

import artifex_devices as ad
import pytest
from artifex_devices import distributed
from artifex_devices._core import internal
from artifex_devices.distributed import failure_notice, handshake, job
from artifex_devices.distributed.consistency import CAME, REFUSED
from artifex_devices.distributed.handshake import ProcessFacts, check_facts, is_own_address
from artifex_devices.distributed.launcher import find_launcher
from artifex_devices.distributed.local_peers import LocalMeetingPoint, LocalPeers
from artifex_devices.distributed.peers import Peer, Peers
from shared_worlds import channels_of

FLAG = "-bind-to core:n"


def test_processes_that_were_bound_apart_keep_their_cpus():
    places = [("a", [0, 1]), ("a", [2, 3]), ("a", [2, 3])]
    assert internal.plan_cpu_shares(places, FLAG) == [(0, [0]), (0, [1, 2]), (1, [1, 2])]


@pytest.mark.parametrize(
    ("variables", "name", "count"),
    [
        ({"PMI_RANK": "1", "PMI_SIZE": "4"}, "mpiexec of MPICH", 4),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2", "PMIX_RANK": "0"}, "mpiexec of Open MPI", 2),
        ({"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_STEP_ID": "0", "PMI_RANK": "3"}, "srun", 8),
        ({"PMIX_RANK": "3"}, "a launcher with PMIx", None),
    ],
)
def test_launchers_are_known_by_their_variables(monkeypatch, variables, name, count):
    clear_launchers(monkeypatch)
    for key, value in variables.items():
        monkeypatch.setenv(key, value)
    launcher = find_launcher()
    assert (launcher.name, launcher.process_count) == (name, count)


def test_a_batch_script_of_slurm_is_not_a_launched_process(monkeypatch):
    clear_launchers(monkeypatch)
    monkeypatch.setenv("SLURM_PROCID", "0")
    monkeypatch.setenv("SLURM_NTASKS", "8")
    assert find_launcher() is None


def clear_launchers(monkeypatch):
    import os

    for key in list(os.environ):
        if key.startswith(("PMI", "OMPI", "SLURM", "MV2", "I_MPI")):
            monkeypatch.delenv(key)


def facts_of(**more):
    plain = {
        "host": "h",
        "machine": "m",
        "pid": 1,
        "cpus": (0,),
        "versions": {"numpy": "2"},
        "byte_order": "little",
        "arguments": (None, None, None),
        "address_is_own": True,
        "launcher": ("mpiexec of MPICH", 2, FLAG),
    }
    return ProcessFacts(**{**plain, **more})


def test_one_error_lists_all_inconsistencies():
    with pytest.raises(ValueError, match=r"^distributed\.initialize: ") as caught:
        check_facts(
            [
                facts_of(arguments=("x:1", None, None), address_is_own=False),
                facts_of(arguments=("y:1", 3, 0), versions={"numpy": "1"}, byte_order="big"),
            ]
        )
    text = str(caught.value)
    for part in (
        "num_processes is 3 in process 1, but the MPI job has 2",
        "process_id is 0 in the process that is number 1 of the MPI job",
        "coordinator_address is 'y:1' in process 1, but 'x:1' in process 0",
        "numpy is 1 in process 1, but 2 in process 0",
        "process 1 is big-endian, but process 0 is little-endian",
        "coordinator_address is 'x:1', but process 0 runs on h, which does not have that address",
    ):
        assert part in text


def test_facts_that_agree_pass_and_each_difference_is_listed_alone():
    check_facts([facts_of(arguments=("x:1", 2, 0)), facts_of(arguments=("x:1", 2, 1), address_is_own=False)])
    with pytest.raises(ValueError, match="num_processes is 3 in process 0, but the MPI job has 2"):
        check_facts([facts_of(arguments=(None, 3, 0)), facts_of()])
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        check_facts([facts_of(), facts_of(versions={"numpy": "2", "mpi4py": "4"})])
    assert str(caught.value).startswith(
        "distributed.initialize: mpi4py is 4 in process 1, but missing in process 0; expected arguments that match"
    )


def test_the_facts_of_all_processes_are_exchanged_whatever_their_sizes():
    values = ["short", {"a": list(range(100))}, None, "x" * 70_000]
    gathered = [pickle.dumps(value) for value in values]
    sizes = b"".join(len(data).to_bytes(8, "little") for data in gathered)
    asked = []

    def fill(sent, received, data):
        asked.append((bytes(sent[0]), received[1:-1]))
        received[0][:] = data
        return SimpleNamespace(Test=lambda: True)

    world = SimpleNamespace(
        Get_size=lambda: len(values),
        Iallgather=lambda sent, received: fill(sent, received, sizes),
        Iallgatherv=lambda sent, received: fill(sent, received, b"".join(gathered)),
    )
    runtime = SimpleNamespace(mpi=SimpleNamespace(BYTE="byte"), world=world)
    assert handshake.exchange(runtime, values[1], deadline=math.inf) == values
    counts = list(map(len, gathered))
    starts = [0, counts[0], sum(counts[:2]), sum(counts[:3])]
    assert asked == [(counts[1].to_bytes(8, "little"), []), (gathered[1], [counts, starts])]


def test_a_launcher_of_another_mpi_is_named():
    with pytest.raises(RuntimeError, match="mpiexec of MPICH has started 2 processes, but MPI reports one"):
        check_facts([facts_of()])


def test_addresses_of_this_host():
    assert is_own_address(f"{socket.gethostname()}:1")
    assert is_own_address("127.0.0.1:1")
    assert is_own_address("[::1]:1") or not socket.has_ipv6
    assert not is_own_address("203.0.113.7:1")


@pytest.fixture
def connected():
    """Peers with one peer, and that one's end of the connection."""
    ours, theirs = socket.socketpair()
    peers = Peers([Peer(1, "process 1", ours)])
    yield peers, theirs
    peers.close()
    theirs.close()


def packed(message):
    data = json.dumps(message).encode()
    return struct.pack("!I", len(data)) + data


def test_a_peer_that_ends_without_notice_is_lost(connected):
    peers, theirs = connected
    assert not peers.poll()
    assert peers.broken() is None
    theirs.close()
    assert peers.poll()
    assert (peers.broken().number, peers.broken().state) == (1, "lost")
    assert not peers.poll()  # reported once


def test_a_failure_notice_in_pieces_arrives_before_the_end(connected):
    peers, theirs = connected
    words = packed({"kind": "failed", "reason": "ValueError: boom"})
    theirs.send(words[:7])
    peers.poll()
    assert peers.by_number[1].state == "here"
    theirs.send(words[7:])
    theirs.close()
    peers.poll()
    peers.poll()
    assert (peers.by_number[1].state, peers.by_number[1].reason) == ("failed", "ValueError: boom")


def test_a_peer_that_has_left_is_not_lost_when_it_ends(connected):
    peers, theirs = connected
    theirs.send(packed({"kind": "left"}))
    theirs.close()
    peers.poll()
    assert peers.by_number[1].state == "left"
    assert peers.broken() is None


@pytest.mark.parametrize("data", [packed({"no": "kind"}), packed([1]), struct.pack("!I", 3) + b"{[}", packed(7)])
def test_messages_that_cannot_be_parsed_are_ignored(connected, data):
    peers, theirs = connected
    theirs.send(data + packed({"kind": "stuck", "reason": "r", "position": "p"}))
    peers.poll()
    assert (peers.stuck_reason, peers.by_number[1].position, peers.by_number[1].state) == ("r", "p", "here")


def test_an_impossible_message_length_ends_the_connection(connected):
    peers, theirs = connected
    theirs.send(struct.pack("!I", 1 << 31))
    peers.poll()
    assert peers.by_number[1].state == "lost"


@pytest.mark.parametrize("letter", ["a", "\u00e9", "\U0001f642", "\0", "\udc80"], ids=ascii)
def test_long_texts_in_any_script_arrive_shortened(letter):
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    here, there = Peers([Peer(1, "process 1", ours)]), Peers([Peer(0, "process 0", theirs)])
    here.send_stuck(letter * 10_000, letter * 10_000)
    here.send_failed(letter * 10_000, is_echo=True)
    there.poll()
    peer = there.by_number[0]
    for text in (peer.position, peer.reason, there.stuck_reason):
        assert text == letter * len(text)
        assert len(text) == {"a": 8000, "\u00e9": 4000, "\U0001f642": 2000, "\0": 4000, "\udc80": 4000}[letter]
    assert (peer.state, peer.is_echo) == ("failed", True)
    here.close()
    there.poll()
    assert peer.state == "failed"
    there.close()


def met(*records):
    """Meetings of so many neighbours of one host, each of which has come with (kind, digest, payload, text)."""
    members = tuple(range(len(records)))
    meetings = [
        LocalMeetingPoint(LocalPeers(channels, members), number, members)
        for number, channels in enumerate(channels_of(len(members)))
    ]
    for meeting, record in zip(meetings, records, strict=True):
        meeting.start(*record)
    for meeting in meetings:
        for _ in range(1000):
            if meeting.done():
                break
        assert meeting.done()
    return meetings


def test_local_peers_that_meet_have_the_records_of_each():
    same = b"s" * 32
    for meeting in met((CAME, same, b"", "psum"), (CAME, same, b"one", "psum"), (CAME, same, b"three", "pmax")):
        assert meeting.all_equal()  # texts and payloads may differ
        assert meeting.payloads() == [b"", b"one", b"three"]
        assert meeting.texts() == [(0, "psum"), (1, "psum"), (2, "pmax")]
        assert meeting.refusals() == []
    for meeting in met((CAME, same, b"", "psum"), (CAME, b"o" * 32, b"", "pmax")):
        assert not meeting.all_equal()
        assert meeting.refusals() == []


def meetings_of(count):
    members = tuple(range(count))
    return [
        LocalMeetingPoint(LocalPeers(channels, members), number, members)
        for number, channels in enumerate(channels_of(count))
    ]


def test_the_last_of_the_local_peers_gets_the_payloads_at_once():
    first, last = meetings_of(2)
    first.start(CAME, b"s" * 32, b"one", "psum")
    assert last.meet(b"s" * 32, b"", "psum") == [b"one", b""]
    assert last.done()
    assert first.done()
    assert first.payloads() == [b"one", b""]
    last.start(CAME, b"t" * 32, b"two", "pmax")  # both may meet again
    assert first.meet(b"t" * 32, b"", "pmax") == [b"", b"two"]


def test_local_peers_that_come_late_or_to_something_else_are_waited_for():
    first, last = meetings_of(2)
    assert first.meet(b"s" * 32, b"one", "psum") is None
    assert not first.done()
    assert last.meet(b"o" * 32, b"two", "pmax") is None
    for meeting in (first, last):
        assert meeting.done()
        assert not meeting.all_equal()
        assert meeting.payloads() == [b"one", b"two"]
        assert meeting.texts() == [(0, "psum"), (1, "pmax")]


@pytest.mark.parametrize(
    ("reason", "read"),
    [("no memory", "no memory"), ("\u00e9" * 300, "\u00e9" * 250), ("\udc80.txt is missing", "\\udc80.txt is missing")],
    ids=ascii,
)
def test_a_refusal_with_any_text_reaches_the_local_peers(reason, read):
    # The one that refuses waits for nobody.
    refusing, *others = met((REFUSED, b"r" * 32, b"", reason), *[(CAME, b"s" * 32, b"", "psum")] * 2)
    assert refusing.done()
    for meeting in others:
        assert not meeting.all_equal()
        assert meeting.refusals() == [(0, read)]


def test_sending_never_waits_for_a_peer_that_does_not_read(connected):
    peers, theirs = connected
    for _ in range(2000):
        peers.send_stuck("reason" * 200, "position" * 200)
    assert peers.by_number[1].state == "here"
    theirs.close()
    peers.send_left()


@pytest.fixture
def hooks(monkeypatch):
    """What is done at the end of a program by an exception: what was message and printed, in order."""
    done = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, trace: done.append(("printed", kind, trace)))
    monkeypatch.setattr(failure_notice, "_failed", False)
    yield done
    failure_notice.uninstall()


class UnprintableError(Exception):
    def __str__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("boom"), "ValueError: boom"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (UnprintableError(), "UnprintableError: its text cannot be read"),
    ],
)
def test_an_exception_that_ends_the_program_is_reported_before_it_is_printed(hooks, error, words):
    before = sys.excepthook
    failure_notice.install(lambda reason: hooks.append(("reported", reason, failure_notice.has_failed())))
    assert not failure_notice.has_failed()
    sys.excepthook(type(error), error, None)
    assert hooks == [("reported", words, True), ("printed", type(error), None)]
    assert failure_notice.has_failed()
    failure_notice.uninstall()
    assert sys.excepthook is before


def test_a_hook_that_was_installed_later_stays_and_nothing_is_reported(hooks, monkeypatch):
    failure_notice.install(lambda reason: hooks.append(("reported", reason)))
    ours = sys.excepthook
    monkeypatch.setattr(sys, "excepthook", lambda *details: ours(*details))
    later = sys.excepthook
    failure_notice.uninstall()
    assert sys.excepthook is later
    later(ValueError, ValueError("boom"), None)
    assert hooks == [("printed", ValueError, None)]


class Ending:
    """The end of the program of one process of a job, whose time passes only while it sleeps."""

    def __init__(self, monkeypatch, states, *, failed=False, owned=False, heard=()):
        self.now, self.left, self.slept, self.status = 100.0, False, [], None
        self.heard = dict(heard)  # by seconds: the state of the others from then on
        self.by_number = {number: Peer(number, f"process {number}", None) for number in range(1, 1 + len(states))}
        for peer, state in zip(self.by_number.values(), states, strict=True):
            peer.state = state
            peer.connection = self  # one that is here can be heard
        clock = SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep)
        monkeypatch.setattr(job, "time", clock)
        monkeypatch.setattr(job, "os", SimpleNamespace(getpid=lambda: 7, _exit=self.leave_at_once))
        monkeypatch.setattr(failure_notice, "_failed", failed)
        transport = SimpleNamespace(broken="", progress=lambda: None, close=lambda: None)
        runtime = SimpleNamespace(owned=owned, finalize=lambda: self.slept.append("finalize"))
        monkeypatch.setattr(job, "_job", job._Job(runtime, self, transport, ()))

    def send_left(self):
        self.left = True

    def poll(self):
        for second, state in self.heard.items():
            if self.now - 100.0 >= second:
                for peer in self.by_number.values():
                    peer.state = state

    def broken(self):
        return Peers.broken(self)

    def sleep(self, seconds):
        self.now += seconds
        self.slept.append(seconds)
        assert self.now < 1000.0

    def close(self):
        pass

    def leave_at_once(self, status):
        self.status = status

    def run(self):
        job._at_exit()
        assert job._job is None
        return self.status, round(self.now - 100.0, 1)


def test_a_program_that_ends_well_waits_for_the_others_and_ends_mpi(monkeypatch):
    ending = Ending(monkeypatch, ["here", "left"], heard={3.0: "left"})
    assert ending.run() == (None, 3.0)
    assert ending.left
    assert ending.slept[-1] == "finalize"


def test_a_failed_program_waits_for_the_messages_of_the_others_and_exits_with_1_without_ending_mpi(monkeypatch):
    ending = Ending(monkeypatch, ["here", "left"], failed=True, heard={2.0: "failed"})
    assert ending.run() == (1, 2.0)  # as soon as none of the others is there
    assert not ending.left  # it says that it failed, by the hook, and not that it left
    assert "finalize" not in ending.slept
    silent = Ending(monkeypatch, ["here"], failed=True)
    assert silent.run() == (1, failure_notice.NOTICE_WAIT_S)
    assert Ending(monkeypatch, ["left", "lost"], failed=True).run() == (1, 0.0)


def test_a_program_that_ends_well_beside_a_failed_one_stays_until_that_one_has_ended(monkeypatch):
    ending = Ending(monkeypatch, ["here", "here"], heard={1.0: "failed"})
    assert ending.run() == (1, 1.0 + failure_notice.EXIT_DELAY_S)
    assert ending.left
    assert ending.slept[-1] == failure_notice.EXIT_DELAY_S
    assert "finalize" not in ending.slept


def test_where_mpi_is_our_own_the_interpreter_ends_the_process_with_its_status(monkeypatch):
    assert Ending(monkeypatch, ["failed"], owned=True).run() == (None, failure_notice.EXIT_DELAY_S)
    assert Ending(monkeypatch, ["left"], owned=True, failed=True).run() == (None, 0.0)


def test_a_child_made_by_fork_does_nothing_at_its_end(monkeypatch):
    ending = Ending(monkeypatch, ["here"])
    job._job.pid = 8
    assert ending.run() == (None, 0.0)
    assert not ending.left


def test_a_single_process_is_not_a_job():
    assert not distributed.is_initialized()
    distributed.shutdown()
    ad.devices()
    with pytest.raises(RuntimeError, match=r"the devices are in use already"):
        distributed.initialize()


def test_nothing_of_it_is_imported_before_it_is_used():
    code = "import sys, artifex_devices; print([m for m in sys.modules if 'distributed' in m or 'mpi4py' in m])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
