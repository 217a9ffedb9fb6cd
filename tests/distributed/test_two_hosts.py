# SPDX-License-Identifier: Apache-2.0
"""Two hosts, each with a network of its own, joined by a cable: TCP carries everything between them."""

import os
import re
import shutil
import signal
import socket
import stat
import subprocess

import numpy as np
import pytest
from launching import find_mpiexec, transport, wait_for_outcomes
from polling import wait_until

pytestmark = pytest.mark.real_processes

ADDRESSES = ("198.18.0.1", "198.18.0.2")
# The halves of MPI that would see that both hosts are one machine must use TCP.
TCP_ONLY = {"UCX_TLS": "tcp,self", "FI_PROVIDER": "tcp"}


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def wait_for_carrier(name):
    """A cable is up a moment after both of its ends are; MPI looks once."""
    show = ["ip", "-n", name, "link", "show", name]
    if not wait_until(
        lambda: "state UP" in subprocess.run(show, capture_output=True, text=True, check=False).stdout, 10
    ):
        raise OSError(f"{name} has no carrier")


@pytest.fixture
def two_hosts(processes, tmp_path):
    """As `processes`, on two virtual hosts with half of the processes each."""
    version = subprocess.run([find_mpiexec(), "--version"], capture_output=True, text=True, check=False).stdout
    if "HYDRA" not in version:
        pytest.skip("the hosts are entered by an option of MPICH's mpiexec, and this is another")
    missing = [tool for tool in ("ip", "unshare", "nsenter") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"there is no {', '.join(missing)} to make hosts with")
    names = [f"ad{os.getpid()}{letter}" for letter in "ab"]
    try:
        try:
            for name in names:
                ip("netns", "add", name)
            ip("link", "add", names[0], "netns", names[0], "type", "veth", "peer", "name", names[1], "netns", names[1])
            for name, address in zip(names, ADDRESSES, strict=True):
                ip("-n", name, "addr", "add", f"{address}/30", "dev", name)
                ip("-n", name, "link", "set", "lo", "up")
                ip("-n", name, "link", "set", name, "up")
            for name in names:
                wait_for_carrier(name)
        except OSError as error:
            pytest.skip(f"no networks of one's own can be made here: {error}")
        enter = tmp_path / "enter"
        enter.write_text(
            "#!/bin/sh\n"
            "# Stands in for ssh: options, the host, the command.\n"
            'while [ "${1#-}" != "$1" ]; do shift; done\n'
            'case "$1" in\n'
            f"  {ADDRESSES[0]}) name={names[0]};;\n"
            f"  *) name={names[1]};;\n"
            "esac\n"
            "shift\n"
            'exec ip netns exec "$name" unshare --uts sh -c "hostname $name; $*"\n'
        )
        enter.chmod(enter.stat().st_mode | stat.S_IXUSR)

        def run(count, body, *arguments, **options):
            flags = ["-launcher", "ssh", "-launcher-exec", str(enter), "-localhost", ADDRESSES[0]]
            flags += ["-hosts", ",".join(ADDRESSES), "-ppn", str(count // 2)]
            before = ["ip", "netns", "exec", names[0]]
            return processes(
                count, body, *arguments, flags=flags, before=before, environment=TCP_ONLY, **{"timeout": 90, **options}
            )

        run.names = names
        yield run
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def talk():
    from artifex_devices import multihost_utils
    from artifex_devices.distributed import job

    t = transport()
    me, count = t.process_index, t.process_count
    families = {n: peer.connection.family.name for n, peer in job._job.peers.by_number.items()}
    mine = np.random.default_rng(me).integers(0, 256, 3_000_001, dtype=np.uint8)
    got = np.zeros_like(mine)
    requests = [t.irecv(got, (me - 1) % count, 0), t.isend(mine, (me + 1) % count, 0)]
    while requests:
        done = t.wait_some(requests, "talk")
        requests = [request for i, request in enumerate(requests) if i not in done]
    whole = np.random.default_rng((me - 1) % count).integers(0, 256, 3_000_001, dtype=np.uint8)
    return socket.gethostname(), families, bool((got == whole).all()), multihost_utils.process_allgather(me).tolist()


def test_processes_of_two_hosts_work_together_over_tcp(two_hosts):
    found = two_hosts(4, talk).values
    hosts = [host for host, *_ in found]
    assert hosts[0] == hosts[1] != hosts[2] == hosts[3]
    for number, (_, families, whole, gathered) in enumerate(found):
        assert families == {n: "AF_UNIX" if n // 2 == number // 2 else "AF_INET" for n in range(4) if n != number}
        assert whole
        assert gathered == [0, 1, 2, 3]


def kill_one():
    if transport().process_index == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    transport().agree("psum", b"a", range(4))


def test_a_process_killed_on_the_other_host_is_named(two_hosts):
    job = two_hosts(4, kill_one, shielded=True)
    for number in (0, 1, 3):
        name, text = job.errors[number]
        assert name == "CollectiveError"
        assert re.match(rf"psum: process 2 \(pid \d+ on {two_hosts.names[1]}\) has ended without notice", text)


def devices_by_host():
    import artifex_devices as ad

    return [d.process_index for d in ad.devices()], ad.local_devices()[0].cpuset


def test_processes_of_hosts_on_one_machine_still_split_its_cores(two_hosts):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU only")
    (devices, first), (same, second) = two_hosts(2, devices_by_host, devices=None).values
    assert devices == same == [0, 1]
    assert first != second


def pull_the_cable(folder):
    from artifex_devices import distributed

    distributed.initialize(heartbeat_timeout_seconds=3)
    me = transport().process_index
    cable = [name for _, name in socket.if_nameindex() if name.startswith("ad")]
    if me == 0:
        subprocess.run(["ip", "link", "set", cable[0], "down"], check=True)
        wait_for_outcomes(folder, 1)
        subprocess.run(["ip", "link", "set", cable[0], "up"], check=True)
        os._exit(0)  # some MPIs do not survive what they find now
    try:
        transport().agree("psum", b"a", range(2))
    except RuntimeError as error:
        return str(error)


def test_a_host_that_stops_answering_is_noticed(two_hosts, tmp_path):
    text = two_hosts(2, pull_the_cable, str(tmp_path / "job0"), initialize=False).outcomes[1].value
    assert re.match(r"psum: process 0 \(pid \d+ on .*\) has ended without notice", text)
