# SPDX-License-Identifier: Apache-2.0
"""A process's part in a job of many: its beginning and its end."""

from __future__ import annotations

import atexit
import os
import platform
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from artifex_devices import _core
from artifex_devices._base.caller import warn_user
from artifex_devices._base.text import cpu_list
from artifex_devices._core import __version__
from artifex_devices.config import config
from artifex_devices.distributed import failure_notice as farewell
from artifex_devices.distributed import mpi_runtime as mpi_engine
from artifex_devices.distributed.arguments import Asked
from artifex_devices.distributed.connections import Door, connect_all
from artifex_devices.distributed.cpu_share import Place, Share, plan_shares
from artifex_devices.distributed.handshake import Introduction, check_introductions, exchange, is_own_address
from artifex_devices.distributed.launcher import Launcher, find_launcher
from artifex_devices.distributed.local_peers import share_memory
from artifex_devices.distributed.mpi_transport import MpiTransport
from artifex_devices.distributed.peers import Peers
from artifex_devices.errors import CollectiveError

__all__ = ["Member", "initialize", "is_initialized", "is_launched", "members", "shutdown"]


class Member(NamedTuple):
    """A process of the job: its name in messages, its host, and its CPUs, ascending."""

    name: str
    host: str
    cpus: tuple[int, ...]


class _Job:
    """What initialize() has made."""

    def __init__(
        self,
        engine: mpi_engine.Engine,
        peers: Peers,
        transport: MpiTransport,
        client: Any,
        members: Sequence[Member],
    ) -> None:
        self.members = tuple(members)
        self.engine = engine
        self.peers = peers
        self.transport = transport
        self.client = client
        self.pid = os.getpid()
        self.shutdown_timeout: float = 300


_job: _Job | None = None
_was_initialized = False


def is_initialized() -> bool:
    """Whether this process is part of a job: after initialize(), before shutdown().

    Example:
        >>> from artifex_devices import distributed
        >>> distributed.is_initialized()
        False
    """
    return _job is not None and _job.pid == os.getpid()


def is_launched() -> bool:
    """Whether a launcher of MPI (mpiexec, srun) has started this process; for scripts that also run alone.

    Example:
        >>> from artifex_devices import distributed
        >>> if distributed.is_launched():
        ...     distributed.initialize()  # doctest: +SKIP
    """
    return find_launcher() is not None


def members() -> tuple[int, tuple[Member, ...], tuple[int, ...]] | None:
    """The number of this process, all processes of the job, and the numbers of those that share memory with this one.

    None before initialize() and after shutdown().
    """
    job = _job
    if job is None or job.pid != os.getpid():
        return None
    everybody = range(len(job.members))
    me = job.transport.process_index
    near = tuple(each for each in everybody if each != me and job.transport.neighbours([me, each]) is not None)
    return me, job.members, near


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Joins the processes that `mpiexec -n 4 python script.py` has started: their devices are one world from now on.

    Called by all of them, before the first use of a device. Processes of one machine split its cores, and with them
    its memory nodes, unless the launcher has bound them already. The parameters are JAX's; MPI knows what they say, so
    none is needed, and those that are given are checked, before anything else. Ctrl-C ends the wait for the others; the
    process can then do all but join a job.

    Args:
        coordinator_address: "host:port" of process 0. The host is checked; no port is opened.
        num_processes: How many processes there are.
        process_id: Which of them this is.
        local_device_ids: How many devices this process has: as many as it names. Otherwise `jax_num_cpu_devices`,
            JAX_NUM_CPU_DEVICES and XLA_FLAGS say it, or else there is one for each CPU domain of its share.
        cluster_detection_method: None or "mpi4py", the only one.
        initialization_timeout: Seconds to wait for the others. They and Ctrl-C hold in MPI's own start too where it is
            MPICH; other MPIs are started as mpi4py does, which looks at neither.
        heartbeat_timeout_seconds: Seconds without a sign from another host after which its processes count as gone. The
            end of a process needs no such time: it closes its connections.
        shutdown_timeout_seconds: Seconds that shutdown() waits for the others.
        coordinator_bind_address: None: there is no coordinator to bind.
        slice_index: None: slices are a matter of accelerators.
        partition_index: None, likewise.

    Raises:
        RuntimeError: It is not the first call, or a device was used before; nobody has started several processes, there
            is no MPI, or the others do not come in time.
        ValueError: What an argument says is not so, processes differ in what must be equal, or their CPUs overlap;
            raised in all processes.
        TypeError: An argument is of another type.

    Example:
        >>> from artifex_devices import distributed
        >>> distributed.initialize()  # doctest: +SKIP
    """
    global _job, _was_initialized
    asked = Asked(
        coordinator_address=coordinator_address,
        num_processes=num_processes,
        process_id=process_id,
        local_device_ids=local_device_ids,
        cluster_detection_method=cluster_detection_method,
        initialization_timeout=initialization_timeout,
        heartbeat_timeout_seconds=heartbeat_timeout_seconds,
        shutdown_timeout_seconds=shutdown_timeout_seconds,
        coordinator_bind_address=coordinator_bind_address,
        slice_index=slice_index,
        partition_index=partition_index,
    )
    if _was_initialized:
        raise RuntimeError(
            "distributed.initialize: it was called before; expected one call in a program; remove the second one, or "
            "ask distributed.is_initialized()"
        )
    if mpi_engine.has_begun():
        raise RuntimeError(
            "distributed.initialize: an earlier call has failed or was interrupted; expected one call in a program, as "
            "MPI can be started once only; start the program again"
        )
    if _core._base_client_exists():
        raise RuntimeError(
            "distributed.initialize: the devices are in use already; expected to come before their first use, by "
            "devices(), device_put() and the like; call it at the beginning of the program"
        )
    launcher = find_launcher()
    if launcher is None:
        asked.check_alone()
    deadline = time.monotonic() + asked.timeout
    engine = mpi_engine.start(deadline)
    job = _join(engine, asked, launcher, deadline)
    _was_initialized = True
    job.shutdown_timeout = asked.shutdown_timeout
    _job = job
    farewell.install(_say_failed)
    atexit.register(_at_exit)
    os.register_at_fork(after_in_child=_forget_in_child)


def shutdown() -> None:
    """Leaves the job, when all processes do; nothing before initialize() or after the first call.

    Arrays stay, and what they have in this process can be used. A program that ends does this by itself.

    Raises:
        CollectiveError: A process has failed, is gone, or does not come within `shutdown_timeout_seconds`.
    """
    global _job
    job, _job = _job, None
    if job is None or job.pid != os.getpid():
        return
    atexit.unregister(_at_exit)
    farewell.uninstall()
    problem = _leave(job, time.monotonic() + job.shutdown_timeout)
    if problem:
        job.peers.close()
        raise CollectiveError(
            f"distributed.shutdown: {problem}; expected all processes to call it, or to end; see their own messages"
        )


def _join(engine: mpi_engine.Engine, asked: Asked, launcher: Launcher | None, deadline: float) -> _Job:
    world = engine.world
    me = world.Get_rank()
    host = socket.gethostname()
    affinity = tuple(sorted(os.sched_getaffinity(0)))
    mine = Introduction(
        host=host,
        machine=_machine_id(),
        pid=os.getpid(),
        cpus=affinity,
        versions=_versions(engine),
        byte_order=sys.byteorder,
        asked=(asked.address, asked.count, asked.number),
        address_is_own=asked.address is None or is_own_address(asked.address),
        launcher=(launcher.name, launcher.process_count, launcher.bind_flag) if launcher else ("nobody", 1, ""),
    )
    all_of = exchange(engine, mine, deadline)
    check_introductions(all_of)
    shares = plan_shares(
        [Place(each.machine, each.cpus) for each in all_of], launcher.bind_flag if launcher else "a launcher of MPI"
    )
    cpus = _take_share(me, shares, all_of)
    if asked.devices is not None:
        config.update("jax_num_cpu_devices", asked.devices)

    described: Any = None
    problem = ""
    try:
        described = _core._describe_process()
    except Exception as error:  # the same for all, or they would wait for each other
        problem = f"{type(error).__name__}: {error}"
    door = Door(host, beyond_host=any(each.host != host for each in all_of))
    second = exchange(engine, (described, problem, cpus, door.card), deadline)
    problems = [f"process {n}: {each[1]}" for n, each in enumerate(second) if each[1]]
    if problems:
        raise ValueError(f"distributed.initialize: not all processes know their devices: {'; '.join(problems)}")
    names = [f"process {n} (pid {each.pid} on {each.host})" for n, each in enumerate(all_of)]
    peers = connect_all(
        door, me, names, [each[3] for each in second], lambda called: exchange(engine, called, deadline), asked.silence
    )
    neighbours = share_memory(peers, me, names, lambda value: exchange(engine, value, deadline))
    transport = MpiTransport(engine, peers, names, neighbours)
    client = _core._join_world([each[0] for each in second], me)
    _install(client, transport)
    everybody = [Member(names[n], each.host, second[n][2]) for n, each in enumerate(all_of)]
    return _Job(engine, peers, transport, client, everybody)


def _take_share(me: int, shares: list[Share], all_of: list[Introduction]) -> tuple[int, ...]:
    """Restricts this process to its CPUs; returns them."""
    share = shares[me]
    affinity = all_of[me].cpus
    own = tuple(_core._share_of_live_cpus(share.part, share.parts)) if share.parts > 1 else affinity
    neighbours = [n for n, each in enumerate(all_of) if each.machine == all_of[me].machine]
    if len(neighbours) > 1:
        everyone = []
        for number in neighbours:
            if number in share.together:
                part = _core._share_of_live_cpus(shares[number].part, share.parts)
                everyone.append(sorted(part))
            else:
                everyone.append(list(all_of[number].cpus))
        _core._restrict_live_machine(sorted(own), everyone)
        if me == share.together[0] and len(share.together) > len(affinity):
            warn_user(
                f"distributed.initialize: {len(share.together)} processes share the CPUs {cpu_list(affinity)} of "
                f"{all_of[me].host}; expected a core for each; they work, but take turns; start fewer",
                RuntimeWarning,
            )
    return own


def _install(client: Any, transport: MpiTransport) -> None:
    from artifex_devices.distributed import transport as transports

    transports.install(client, transport)


def _leave(job: _Job, deadline: float | None) -> str:
    """Waits until all others leave too, then ends MPI; or says why that cannot be."""
    job.peers.say_left()
    while True:
        job.peers.look()
        broken = job.peers.broken()
        here = [peer.name for peer in job.peers.by_number.values() if peer.state == "here" and peer.connection]
        if broken is not None:
            return broken.name + (f" has failed: {broken.reason}" if broken.reason else " is gone without a word")
        if job.transport.is_broken:
            return "the processes no longer worked together"
        if not here:
            break
        if deadline is not None and time.monotonic() > deadline:
            return f"{', '.join(here)} did not come in time"
        job.transport.move_on()
        job.peers.sleep(0.002)
    job.transport.close()
    job.engine.finalize()
    job.peers.close()
    return ""


def _at_exit() -> None:
    """The end of the program: with all others, or, when something went wrong, without ending MPI."""
    global _job
    job, _job = _job, None
    if job is None or job.pid != os.getpid():
        return
    if not farewell.failed() and not _leave(job, None):
        return
    # The launcher ends all processes when the first one ends badly; let them say what they have to say.
    until = time.monotonic() + farewell.LAST_WORDS_S
    while time.monotonic() < until and any(peer.state == "here" for peer in job.peers.by_number.values()):
        job.peers.look()
        job.peers.sleep(0.01)
    if not farewell.failed():
        # Its own exit status says nothing bad, and the launcher reports the first one that it sees.
        time.sleep(farewell.LAST_SIGHT_S)
    if not job.engine.owned:  # mpi4py would wait for ever in MPI_Finalize
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


def _say_failed(reason: str) -> None:
    if _job is not None and _job.pid == os.getpid():
        _job.transport.fail(reason)


def _forget_in_child() -> None:
    global _job
    job, _job = _job, None
    if job is not None:
        job.peers.close()  # else the parent's end would not be seen while the child lives


def _machine_id() -> str:
    """Equal for processes of one machine, also in containers."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return socket.gethostname()


def _versions(engine: mpi_engine.Engine) -> dict[str, str]:
    import numpy as np

    return {
        "artifex_devices": __version__,
        "numpy": np.__version__,
        "python": ".".join(platform.python_version_tuple()[:2]),
        "MPI": engine.library,
    }
