# SPDX-License-Identifier: Apache-2.0
"""What a calibration measures between the processes of a job, in simulated processes."""

import sys
from types import SimpleNamespace

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.calibration import processes as between
from artifex_devices.planner.calibration.parts import ProcessLink
from artifex_devices.testing import run_processes

MIB = 1 << 20
SECONDS = (1e-4, 1e-4 + 2e-3, 3e-4, 3e-4 + 5e-3)  # of what is sent, then of sums: small blocks, then large ones


@pytest.fixture
def membership(monkeypatch):
    """Sets the members of the job."""
    monkeypatch.setattr(between, "_transport", lambda: "an MPI")

    def set_members(hosts, local_peers=None):
        members = [SimpleNamespace(host=host) for host in hosts]
        monkeypatch.setattr(between.job, "members", lambda: (None, members, local_peers))

    return set_members


@pytest.mark.parametrize(
    ("largest", "elements", "shared"), [(4 * MIB // 8, MIB // 32, True), (1 << 40, MIB // 4, False)]
)
def test_latencies_and_rates_of_messages_and_sums(largest, elements, shared, membership, monkeypatch):
    monkeypatch.setattr(between, "_LARGE_BYTES", MIB)
    membership(["one", "one", "two"], local_peers=["other"] if shared else [])
    runs = []

    def slowest(run, repeats):
        mine = [number for process, number, _ in runs if process == ad.process_index()]
        runs.append((ad.process_index(), len(mine), repeats))
        found = run()
        assert found.dtype == np.float32
        for shard in found.addressable_shards:
            value = np.asarray(shard.data)
            expected = (between._SMALL, elements)[len(mine) % 2]
            assert (value.shape, set(value.tolist())) == ((expected,), {1.0 if len(mine) < 2 else 4.0})
        return SECONDS[len(mine)]

    monkeypatch.setattr(between, "_slowest", slowest)
    done = run_processes(lambda: between.measure_processes(largest), processes=3, devices=[1, 2, 1])
    large = 4 * elements
    link = done.results[0]
    assert done.results == [link] * 3
    assert (link.processes, link.hosts, link.transport, link.shared_memory) == (3, 2, "an MPI", shared)
    assert (link.latency, link.sum_latency) == (1e-4, 3e-4)
    assert (link.rate, link.sum_rate) == pytest.approx((large / 2e-3, large / 5e-3))
    assert isinstance(link, ProcessLink)
    assert sorted(runs) == [
        (process, number, between._SMALL_REPEATS if number % 2 == 0 else between._LARGE_REPEATS)
        for process in range(3)
        for number in range(4)
    ]


def test_a_process_sends_its_block_to_the_next_one():
    def body():
        ring = ad.Mesh(np.array(ad.devices()), ("i",))
        moved = between._send_to_next(ring, 8)()
        return [(shard.device.id, shard.index) for shard in moved.addressable_shards]

    found = run_processes(body, processes=3, devices=1).results
    assert found == [[(i, (slice((i + 1) % 3 * 8, (i + 1) % 3 * 8 + 8, None),))] for i in range(3)]


def test_the_slowest_process_counts_and_the_first_two_runs_do_not(monkeypatch):
    clock = {0: 0.0, 1: 0.0}
    calls = {0: [], 1: []}

    def body():
        me = ad.process_index()

        def run():
            calls[me].append(len(calls[me]))
            clock[me] += {0: [50, 50, 1, 2, 3], 1: [90, 90, 2, 1, 5]}[me][len(calls[me]) - 1]

        return between._slowest(run, 3)

    monkeypatch.setattr(between, "time", SimpleNamespace(perf_counter=lambda: clock[ad.process_index()]))
    first, second = run_processes(body, processes=2).results
    assert first == second == between.Repeats([2.0, 2.0, 5.0]).seconds
    assert calls == {0: list(range(5)), 1: list(range(5))}


@pytest.mark.parametrize("members", [None, (None, ["alone"], None)])
def test_one_process_has_no_links(members, monkeypatch):
    monkeypatch.setattr(between.job, "members", lambda: members)
    assert between.measure_processes(MIB) is None


def test_the_name_of_an_mpi_is_its_first_line(monkeypatch):
    text = "Open  MPI\tv5.0,\x07 package\nsecond line\0" + "x" * 300
    mpi = SimpleNamespace(Get_library_version=lambda: text)
    monkeypatch.setitem(sys.modules, "mpi4py", SimpleNamespace(MPI=mpi))
    assert between._transport() == "Open MPI v5.0, package"
    text = "y" * 300
    assert between._transport() == "y" * 200
