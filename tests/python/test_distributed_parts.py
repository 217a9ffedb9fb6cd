# SPDX-License-Identifier: Apache-2.0
"""The parts of artifex_devices.distributed that need no MPI; whole jobs are tested in tests/distributed."""

import json
import socket
import struct
import subprocess
import sys

import artifex_devices as ad
import pytest
from artifex_devices import _core, distributed
from artifex_devices.distributed.cpu_share import Place, Share, cpus_text, plan_shares
from artifex_devices.distributed.introduction import Introduction, check_introductions, is_own_address
from artifex_devices.distributed.launcher import find_launcher
from artifex_devices.distributed.peers import Peer, Peers

FLAG = "-bind-to core:n"


def test_processes_with_equal_masks_split_them_in_order():
    places = [Place("a", (0, 1, 2, 3)), Place("b", (0, 1, 2, 3)), Place("a", (0, 1, 2, 3))]
    assert plan_shares(places, FLAG) == [Share(0, 2, (0, 2)), Share(0, 1, (1,)), Share(1, 2, (0, 2))]


def test_processes_that_were_bound_apart_keep_what_they_have():
    places = [Place("a", (0, 1)), Place("a", (2, 3)), Place("a", (2, 3))]
    assert plan_shares(places, FLAG) == [Share(0, 1, (0,)), Share(0, 2, (1, 2)), Share(1, 2, (1, 2))]


def test_masks_that_overlap_are_an_error_that_names_all_of_them():
    places = [Place("a", (0, 1, 2)), Place("a", (2, 3)), Place("a", (2, 3)), Place("a", (3, 8)), Place("b", (3,))]
    with pytest.raises(ValueError, match="bound to CPUs that overlap") as caught:
        plan_shares(places, FLAG)
    assert (
        "got process 0 on CPUs 0-2, processes 1-2 on CPUs 2-3; processes 1-2 on CPUs 2-3, process 3 on CPUs 3,8; "
        "start them with -bind-to core:n, or unbound" in str(caught.value)
    )


def test_cpus_as_linux_lists_them():
    assert [cpus_text(cpus) for cpus in ([], [3], [0, 1], [0, 2, 4, 5, 6])] == ["", "3", "0-1", "0,2,4-6"]


@pytest.mark.parametrize(
    ("machine", "parts", "expected"),
    [
        ("numa:2 core:2 pu:2", 2, [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ("numa:2 core:2 pu:1", 3, [[0], [1], [2, 3]]),
        ("numa:1 core:2 pu:2", 3, [[0, 1], [0, 1], [2, 3]]),
    ],
)
def test_a_machines_cpus_are_shared_out_by_domains_then_cores(machine, parts, expected):
    assert _core._share_cpus(_core.Machine.from_synthetic(machine), parts) == expected


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


def test_a_batch_script_of_slurm_is_no_launched_process(monkeypatch):
    clear_launchers(monkeypatch)
    monkeypatch.setenv("SLURM_PROCID", "0")
    monkeypatch.setenv("SLURM_NTASKS", "8")
    assert find_launcher() is None


def clear_launchers(monkeypatch):
    import os

    for key in list(os.environ):
        if key.startswith(("PMI", "OMPI", "SLURM", "MV2", "I_MPI")):
            monkeypatch.delenv(key)


def introduction(**more):
    plain = {
        "host": "h",
        "machine": "m",
        "pid": 1,
        "cpus": (0,),
        "versions": {"numpy": "2"},
        "byte_order": "little",
        "asked": (None, None, None),
        "address_is_own": True,
        "launcher": ("mpiexec of MPICH", 2, FLAG),
    }
    return Introduction(**{**plain, **more})


def test_all_that_does_not_fit_is_in_one_error():
    with pytest.raises(ValueError, match=r"^distributed\.initialize: ") as caught:
        check_introductions(
            [
                introduction(asked=("x:1", None, None), address_is_own=False),
                introduction(asked=("y:1", 3, 0), versions={"numpy": "1"}, byte_order="big"),
            ]
        )
    text = str(caught.value)
    for part in (
        "num_processes is 3 in process 1, but the MPI job has 2",
        "process_id is 0 in the process that is number 1 of the MPI job",
        "coordinator_address is 'y:1' in process 1, but 'x:1' in process 0",
        "numpy is 1 in process 1, but 2 in process 0",
        "process 1 is big-endian, but process 0 is little-endian",
        "coordinator_address is 'x:1', but process 0 runs on h, which has not that address",
    ):
        assert part in text


def test_a_launcher_of_another_mpi_is_named():
    with pytest.raises(RuntimeError, match="mpiexec of MPICH has started 2 processes, but MPI knows of one"):
        check_introductions([introduction()])


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


def said(message):
    data = json.dumps(message).encode()
    return struct.pack("!I", len(data)) + data


def test_a_peer_that_ends_without_a_word_is_lost(connected):
    peers, theirs = connected
    assert not peers.look()
    assert peers.broken() is None
    theirs.close()
    assert peers.look()
    assert (peers.broken().number, peers.broken().state) == (1, "lost")
    assert not peers.look()  # said once


def test_words_of_farewell_come_before_the_end_also_in_pieces(connected):
    peers, theirs = connected
    words = said({"kind": "failed", "reason": "ValueError: boom"})
    theirs.send(words[:7])
    peers.look()
    assert peers.by_number[1].state == "here"
    theirs.send(words[7:])
    theirs.close()
    peers.look()
    peers.look()
    assert (peers.by_number[1].state, peers.by_number[1].reason) == ("failed", "ValueError: boom")


def test_a_peer_that_has_left_is_not_lost_when_it_ends(connected):
    peers, theirs = connected
    theirs.send(said({"kind": "left"}))
    theirs.close()
    peers.look()
    assert peers.by_number[1].state == "left"
    assert peers.broken() is None


@pytest.mark.parametrize("data", [said({"no": "kind"}), said([1]), struct.pack("!I", 3) + b"{[}", said(7)])
def test_words_that_are_none_are_passed_over(connected, data):
    peers, theirs = connected
    theirs.send(data + said({"kind": "stuck", "reason": "r", "position": "p"}))
    peers.look()
    assert (peers.stuck_reason, peers.by_number[1].position, peers.by_number[1].state) == ("r", "p", "here")


def test_a_length_beyond_all_sense_ends_the_connection(connected):
    peers, theirs = connected
    theirs.send(struct.pack("!I", 1 << 31))
    peers.look()
    assert peers.by_number[1].state == "lost"


def test_telling_never_waits_for_a_peer_that_does_not_listen(connected):
    peers, theirs = connected
    for _ in range(2000):
        peers.say_stuck("reason" * 200, "position" * 200)
    assert peers.by_number[1].state == "here"
    theirs.close()
    peers.say_left()


def test_a_process_alone_is_no_job():
    assert not distributed.is_initialized()
    distributed.shutdown()
    ad.devices()
    with pytest.raises(RuntimeError, match=r"the devices are in use already"):
        distributed.initialize()


def test_nothing_of_it_is_imported_before_it_is_used():
    code = "import sys, artifex_devices; print([m for m in sys.modules if 'distributed' in m or 'mpi4py' in m])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
