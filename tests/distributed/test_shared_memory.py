# SPDX-License-Identifier: Apache-2.0
"""Memory between the processes of one host: which processes share it, how to switch it off, and its release."""

import os
import re
import signal

import numpy as np
import pytest
from launching import transport, wait_for_outcomes

pytestmark = pytest.mark.real_processes


def local_peers():
    t = transport()
    everybody = range(t.process_count)
    return [t.local_peers((0, each)) is not None for each in everybody], t.max_payload(everybody) > 4096


def test_processes_of_one_host_share_memory(processes):
    assert processes(3, local_peers).values == [([True] * 3, True)] * 3


def without(switched_off):
    import artifex_devices as ad
    from artifex_devices import P, distributed, lax

    if int(os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0"))) in switched_off:
        ad.config.update("distributed_shared_memory", False)
    distributed.initialize()
    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    sums = []
    for columns in (3, 500_000):
        x = np.arange(4 * columns, dtype=np.float32).reshape(4, columns)
        made = ad.shard_map(lambda b: lax.psum(b, "x"), mesh, in_specs=P("x"), out_specs=P())(x)
        sums.append(np.array_equal(np.asarray(made)[0], x[0] + x[1] + x[2] + x[3]))
    return transport().local_peers((0, 1)) is None, sums


@pytest.mark.parametrize("switched_off", [(0, 1), (1,)])
def test_shared_memory_can_be_switched_off_in_any_process(processes, switched_off):
    assert processes(2, without, switched_off, initialize=False).values == [(True, [True, True])] * 2


def files_of_memory():
    """How many are open, and how many parts of them are mapped."""
    links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    opened = [os.readlink(link) for link in links if os.path.lexists(link)]
    with open("/proc/self/maps") as file:
        mapped = [line for line in file if "memfd:artifex_devices" in line]
    return sum("memfd:artifex_devices" in each for each in opened), len(mapped)


def end_it():
    import gc

    from artifex_devices import distributed

    before = files_of_memory()
    distributed.shutdown()
    gc.collect()
    return before, files_of_memory()


def test_no_file_stays_open_and_no_memory_after_the_end(processes):
    assert processes(3, end_it).values == [((0, 4), (0, 0))] * 3  # for each neighbour what is written and what is read


def killed_in_a_big_sum():
    import artifex_devices as ad
    from artifex_devices import P, lax

    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    add = ad.shard_map(lambda b: lax.psum(b, "x"), mesh, in_specs=P("x"), out_specs=P())
    x = ad.make_array_from_callback((4, 1 << 20), ad.NamedSharding(mesh, P("x")), lambda index: np.ones((1, 1 << 20)))
    assert np.asarray(add(x)).max() == 4.0
    if transport().process_index == 1:
        t = transport()
        t.agree = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)  # others are in the sum by then, or before it
    add(x)


def test_a_process_killed_before_a_big_sum_is_named(processes):
    name, text = processes(2, killed_in_a_big_sum, shielded=True).errors[0]
    assert name == "CollectiveError"
    assert re.search(r"process 1 \(pid \d+ on .*\) has ended without notice", text)


def killed_between_pieces():
    from artifex_devices import _core

    t = transport()
    near = t.local_peers((0, 1))
    block = np.ones(1 << 22, np.float32)
    out = _core.internal.host_empty(block.shape, block.dtype)
    if t.process_index == 1:  # takes part in some pieces, not in all
        chain = near.channels.chain(0, -1, "sum", [block[: 1 << 20]], out[: 1 << 20], 0, 1 << 20)
        while not chain.advance(1e-3):
            pass
        os.kill(os.getpid(), signal.SIGKILL)
    chain = near.channels.chain(-1, 1, "sum", [block], out, 0, 0)
    t.wait_until(lambda: chain.advance(1e-3), "psum of float32", block.nbytes)


def test_a_process_killed_amid_a_big_sum_is_named(processes):
    name, text = processes(2, killed_between_pieces, shielded=True).errors[0]
    assert name == "CollectiveError"
    assert re.match(r"psum of float32: process 1 \(pid \d+ on .*\) has ended without notice", text)


def never_comes_to_the_sum(folder):
    import artifex_devices as ad

    t = transport()
    ad.config.update("collective_timeout_s", 1.5)
    if t.process_index == 1:
        wait_for_outcomes(folder, 0)
        return
    from artifex_devices import _core

    out = _core.internal.host_empty((1 << 20,), np.dtype(np.float32))
    chain = t.local_peers((0, 1)).channels.chain(-1, 1, "sum", [np.ones(1 << 20, np.float32)], out, 0, 0)
    t.wait_until(lambda: chain.advance(1e-3), "psum of float32", out.nbytes)


def test_the_deadline_ends_a_sum_that_does_not_go_on(processes, tmp_path):
    name, text = processes(2, never_comes_to_the_sum, str(tmp_path / "job0"), shielded=True).errors[0]
    assert name == "CollectiveError"
    assert "the deadline of 1.5 s (config.collective_timeout_s) is over" in text


def refuse_often():
    t = transport()
    everybody = range(t.process_count)
    if t.process_index == 0:
        for turn in range(40):
            t.refuse("device_put", f"turn {turn}", everybody)
        return t.agree("after all that", b"x", everybody, b"y")
    heard = 0
    for _ in range(40):
        try:
            t.agree("device_put", b"same", everybody)
        except RuntimeError as error:
            heard += f"turn {heard}" in str(error)
    return heard, t.agree("after all that", b"x", everybody, b"y")


def test_more_refusals_than_the_channels_hold(processes):
    assert processes(2, refuse_often).values == [[b"y"] * 2, (40, [b"y"] * 2)]


def examined():
    from artifex_devices import doctor

    section = doctor.examine(measure=False).sections["distributed"]
    return {name: fact.value for name, fact in section.facts.items()}


def test_the_doctor_knows_rank_and_shares(processes):
    for rank, facts in enumerate(processes(2, examined).values):
        assert (facts["rank"], facts["processes"], facts["launched_processes"]) == (rank, 2, 2)
        assert facts["shares_memory_with"] == [1 - rank]
        assert [re.sub(r" \(.*", "", each["process"]) for each in facts["shares"]] == ["process 0", "process 1"]
        assert facts["cpus"] == facts["shares"][rank]["cpus"]
