# SPDX-License-Identifier: Apache-2.0
"""The job that this process belongs to: how it joins and leaves."""

from __future__ import annotations

import atexit
import os
import platform
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import numpy as np

from artifex_devices._base.caller import warn_user
from artifex_devices._base.checks import failure
from artifex_devices._base.refused_arguments import hides_unknown, unknown_argument
from artifex_devices._base.text import cpu_list
from artifex_devices._core import __version__, internal
from artifex_devices.config import config
from artifex_devices.distributed import failure_notice, mpi_runtime
from artifex_devices.distributed import transport as transports
from artifex_devices.distributed.arguments import InitializeArguments
from artifex_devices.distributed.connections import Listener, connect_all
from artifex_devices.distributed.flight_records import FlightRecords, make_job_folder
from artifex_devices.distributed.gpus_of_job import seen_gpus, share_of_gpus
from artifex_devices.distributed.handshake import ProcessFacts, check_facts, exchange, is_own_address
from artifex_devices.distributed.launcher import Launcher, find_launcher
from artifex_devices.distributed.local_peers import share_memory
from artifex_devices.distributed.mpi_runtime import MpiRuntime
from artifex_devices.distributed.mpi_transport import MpiTransport
from artifex_devices.distributed.peers import Peers
from artifex_devices.distributed.simulated import membership
from artifex_devices.errors import CollectiveError


class Member(NamedTuple):
    """A process of the job: its name in messages, its host, and its CPUs, ascending."""

    name: str
    host: str
    cpus: tuple[int, ...]


@dataclass
class _Job:
    """The state that initialize() creates."""

    runtime: MpiRuntime
    peers: Peers
    transport: MpiTransport
    members: tuple[Member, ...]
    shutdown_timeout_s: float = 300
    flight: FlightRecords | None = None
    pid: int = field(default_factory=lambda: os.getpid())


_job: _Job | None = None
_was_initialized = False


def _own_job() -> _Job | None:
    """Returns the job of this process, or None before initialize(), after shutdown() and in a forked child."""
    return _job if _job is not None and _job.pid == os.getpid() else None


def is_initialized() -> bool:
    """Returns whether this process is part of a job: after initialize(), before shutdown().

    Example:
        >>> from artifex_devices import distributed
        >>> distributed.is_initialized()
        False
    """
    member = membership.current.get()
    return member.is_initialized if member is not None else _own_job() is not None


def is_launched() -> bool:
    """Returns whether a launcher of MPI (mpiexec, srun) started this process; for scripts that also run without.

    True in simulated processes too.

    Example:
        >>> from artifex_devices import distributed
        >>> if distributed.is_launched():
        ...     distributed.initialize()  # doctest: +SKIP
    """
    return membership.current.get() is not None or find_launcher() is not None


def members() -> tuple[int, tuple[Member, ...], tuple[int, ...]] | None:
    """Returns the number of this process, all processes of the job, and the processes that share memory with it.

    Returns None before initialize() and after shutdown().
    """
    job = _own_job()
    if job is None:
        return None
    me = job.transport.process_index
    others = (each for each in range(len(job.members)) if each != me)
    return me, job.members, tuple(each for each in others if job.transport.local_peers([me, each]) is not None)


@hides_unknown
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
    **_unknown: NoReturn,
) -> None:
    """Joins the processes that `mpiexec -n 4 python script.py` has started: their devices form one world.

    All of them call it, before the first use of a device. Processes of one machine split its cores, and with them its
    memory nodes, unless the launcher has bound them already. The parameters are JAX's; MPI knows their values, so none
    is needed, and all that are given are checked before anything starts. Ctrl-C ends the wait for the other processes;
    afterwards this process can do everything except join a job. A process of `testing.run_processes` is in its job from
    the start; there the call checks its arguments.

    Args:
        coordinator_address: "host:port" of process 0. The host is checked; no port is opened.
        num_processes: Number of processes.
        process_id: Number of this process.
        local_device_ids: Devices of this process, one for each id. The default is `jax_num_cpu_devices`,
            JAX_NUM_CPU_DEVICES or XLA_FLAGS, or else one device for each CPU domain of its share. In a job of GPUs,
            which JAX_PLATFORMS=cuda asks for: the numbers of the GPUs that this process uses. By default the processes
            of a machine that see the same GPUs divide them equally.
        cluster_detection_method: None or "mpi4py", the only one.
        initialization_timeout: Seconds to wait for the other processes. The timeout and Ctrl-C also end the start of
            MPI itself where it is MPICH; other MPIs are started by mpi4py, which cannot be interrupted.
        heartbeat_timeout_seconds: Seconds without an answer from another host after which its processes count as gone.
            The end of a process is noticed at once: its connections close.
        shutdown_timeout_seconds: Seconds that shutdown(), and the end of a program without it, wait for the other
            processes.
        coordinator_bind_address: None: the job has no coordinator.
        slice_index: None: only accelerators have slices.
        partition_index: None: only accelerators have partitions.

    Raises:
        RuntimeError: The call is not the first one, or a device was used before; no launcher has started several
            processes, MPI is missing, or the other processes do not come in time.
        ValueError: An argument does not match the job, processes differ in what must be equal, or their CPUs overlap;
            all processes raise it.
        TypeError: An argument is of a wrong type.

    Example:
        >>> from artifex_devices import distributed
        >>> distributed.initialize()  # doctest: +SKIP
    """
    if _unknown:
        raise unknown_argument("distributed.initialize", _unknown)
    arguments = InitializeArguments(
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
    member = membership.current.get()
    if member is not None:
        member.initialize(arguments)
        return
    global _job, _was_initialized
    if _was_initialized:
        raise failure(
            RuntimeError,
            "distributed.initialize",
            "it was called before",
            expected="one call in a program",
            fix="remove the second one, or check distributed.is_initialized()",
        )
    if mpi_runtime.has_begun():
        raise failure(
            RuntimeError,
            "distributed.initialize",
            "an earlier call has failed or was interrupted",
            expected="one call in a program, as MPI can be started once only",
            fix="start the program again",
        )
    if internal.base_client_exists():
        raise failure(
            RuntimeError,
            "distributed.initialize",
            "the devices are in use already",
            expected="to come before their first use, by devices(), device_put() and the like",
            fix="call it at the beginning of the program",
        )
    launcher = find_launcher()
    if launcher is None:
        arguments.check_single()
    deadline = time.monotonic() + arguments.timeout_s
    _job = _join(mpi_runtime.start(deadline), arguments, launcher, deadline)
    _was_initialized = True
    failure_notice.install(_report_failure)
    atexit.register(_at_exit)
    os.register_at_fork(after_in_child=_forget_in_child)


def shutdown() -> None:
    """Leaves the job together with all processes. Does nothing before initialize() and after the first call.

    Arrays remain, and their parts in this process can be used. A program calls it by itself when it ends.

    Raises:
        CollectiveError: A process has failed, is gone, or does not come within `shutdown_timeout_seconds`.
    """
    member = membership.current.get()
    if member is not None:
        member.shutdown()
        return
    global _job
    job, _job = _own_job(), None
    if job is None:
        return
    atexit.unregister(_at_exit)
    failure_notice.uninstall()
    problem = _leave(job)
    if problem:
        job.peers.close()
        raise failure(
            CollectiveError,
            "distributed.shutdown",
            problem,
            expected="all processes to call it, or to end",
            fix="see their own messages",
        )


def _join(runtime: MpiRuntime, arguments: InitializeArguments, launcher: Launcher | None, deadline: float) -> _Job:
    me = runtime.world.Get_rank()
    host = socket.gethostname()
    mine = ProcessFacts(
        host=host,
        machine=_machine_id(),
        pid=os.getpid(),
        cpus=tuple(sorted(os.sched_getaffinity(0))),
        versions={
            "artifex_devices": __version__,
            "numpy": np.__version__,
            "python": ".".join(platform.python_version_tuple()[:2]),
            "MPI": runtime.library,
        },
        byte_order=sys.byteorder,
        arguments=(arguments.address, arguments.num_processes, arguments.process_id),
        address_is_own=arguments.address is None or is_own_address(arguments.address),
        launcher=(launcher.name, launcher.process_count, launcher.bind_flag) if launcher else ("nobody", 1, ""),
        gpus=seen_gpus(arguments.device_ids),
    )
    facts = exchange(runtime, mine, deadline)
    check_facts(facts)
    cpus = _take_cpu_share(me, facts, launcher.bind_flag if launcher else "a launcher of MPI")
    gpus = share_of_gpus(me, [each.machine for each in facts], [each.gpus for each in facts])
    if arguments.num_devices is not None and gpus is None:
        config.update("jax_num_cpu_devices", arguments.num_devices)

    described: Any = None
    problem = ""
    try:
        described = internal.describe_process(), None if gpus is None else internal.describe_gpus(gpus)
    except Exception as error:  # all processes raise it; otherwise they would wait
        problem = f"{type(error).__name__}: {error}"
    listener = Listener(host, beyond_host=any(each.host != host for each in facts))
    is_first = all(each.machine != mine.machine for each in facts[:me])
    flight = _start_flight_records(me, facts) if is_first else None
    second = exchange(runtime, (described, problem, cpus, listener.contact, flight.folder if flight else ""), deadline)
    problems = [f"process {n}: {each[1]}" for n, each in enumerate(second) if each[1]]
    if problems:
        raise ValueError(f"distributed.initialize: not all processes know their devices: {'; '.join(problems)}")
    names = [f"process {n} (pid {each.pid} on {each.host})" for n, each in enumerate(facts)]
    peers = connect_all(
        listener,
        me,
        names,
        [each[3] for each in second],
        lambda connected: exchange(runtime, connected, deadline),
        arguments.silence_s,
    )
    local_peers = share_memory(peers, me, names, lambda value: exchange(runtime, value, deadline))
    if not is_first:
        flight = _join_flight_records(me, facts, [each[4] for each in second])
    transport = MpiTransport(runtime, peers, names, local_peers, flight)
    transports.install(internal.join_world([each[0][0] for each in second], me), transport)
    if gpus is not None:
        transports.install(internal.join_gpu_world([each[0][1] for each in second], me, gpus), transport)
    members = tuple(Member(name, each.host, own[2]) for name, each, own in zip(names, facts, second, strict=True))
    return _Job(runtime, peers, transport, members, arguments.shutdown_timeout_s, flight)


def _start_flight_records(me: int, facts: list[ProcessFacts]) -> FlightRecords | None:
    """Creates the records of the first process of a host, in a new folder, or returns None if they are switched off.

    The folder contains a locked file before another process learns of it, so no other job removes it.
    """
    directory = config.flight_record_dir
    if directory is None:
        return None
    try:
        folder = make_job_folder(directory)
    except OSError as error:
        _warn_of_flight_record(error)
        return None
    return _new_flight_records(me, facts, folder)


def _join_flight_records(me: int, facts: list[ProcessFacts], folders: list[str]) -> FlightRecords | None:
    """Creates the records of another process, in the folder of the first process of its host."""
    folder = folders[next(n for n, each in enumerate(facts) if each.machine == facts[me].machine)]
    return _new_flight_records(me, facts, folder) if folder else None


def _new_flight_records(me: int, facts: list[ProcessFacts], folder: str) -> FlightRecords | None:
    try:
        return FlightRecords(folder, me, len(facts), facts[me].host)
    except OSError as error:
        _warn_of_flight_record(error)
        return None


def _warn_of_flight_record(error: OSError) -> None:
    warn_user(
        f"distributed.initialize: operations are not recorded ({error}); expected a folder that can be written; set "
        'config.update("flight_record_dir", "/a/folder"), or to None for no record',
        RuntimeWarning,
    )


def _take_cpu_share(me: int, facts: list[ProcessFacts], bind_flag: str) -> tuple[int, ...]:
    """Restricts this process to its CPUs; returns them."""
    places = [(each.machine, each.cpus) for each in facts]
    _, sharers = internal.plan_cpu_shares(places, bind_flag)[me]
    own = tuple(internal.take_cpu_share(places, bind_flag, me))
    affinity = facts[me].cpus
    if me == sharers[0] and len(sharers) > len(affinity):
        warn_user(
            f"distributed.initialize: {len(sharers)} processes share the CPUs {cpu_list(affinity)} of "
            f"{facts[me].host}; expected a core for each; they will run, but share cores; start fewer processes",
            RuntimeWarning,
        )
    return own


def _leave(job: _Job) -> str:
    """Waits until all others leave too, then ends MPI; returns why that is not possible, or nothing."""
    deadline = time.monotonic() + job.shutdown_timeout_s
    job.peers.send_left()
    while True:
        job.peers.poll()
        broken = job.peers.broken()
        here = [peer.name for peer in job.peers.by_number.values() if peer.state == "here" and peer.connection]
        if broken is not None:
            return broken.name + (f" has failed: {broken.reason}" if broken.reason else " has ended without notice")
        if job.transport.broken:
            return "the processes no longer worked together"
        if not here:
            break
        if time.monotonic() > deadline:
            return (
                f"{', '.join(here)} did not come within {job.shutdown_timeout_s:g} s (shutdown_timeout_seconds of "
                "initialize)"
            )
        job.transport.progress()
        job.peers.sleep(0.002)
    job.transport.close()
    job.runtime.finalize()
    if job.flight is not None:
        job.flight.close()
    job.peers.close()
    return ""


def _at_exit() -> None:
    """Ends the job with all others or, after a failure, without ending MPI."""
    global _job
    job, _job = _own_job(), None
    if job is None:
        return
    if not failure_notice.has_failed():
        problem = _leave(job)
        if not problem:
            return
        if not job.transport.broken and job.peers.broken() is None:  # others report a failure
            text = (
                f"distributed: the program has ended and waits for the other processes: {problem}; expected them to "
                "end too; see where they are, or raise shutdown_timeout_seconds if they work longer"
            )
            os.write(2, f"artifex_devices: {text}\n".encode())
            _end_process()
    # The launcher ends all processes when the first fails; give other processes time to send their messages.
    until = time.monotonic() + failure_notice.NOTICE_WAIT_S
    while time.monotonic() < until and any(peer.state == "here" for peer in job.peers.by_number.values()):
        job.peers.poll()
        job.peers.sleep(0.01)
    if not failure_notice.has_failed():
        # The launcher reports the first exit status that it sees; this process's would hide the failure.
        time.sleep(failure_notice.EXIT_DELAY_S)
    if not job.runtime.owned:  # mpi4py would wait forever in MPI_Finalize
        _end_process()


def _end_process() -> NoReturn:
    """Ends this process with status 1, without the hooks of MPI, which would wait for the other processes."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def _report_failure(reason: str) -> None:
    if (job := _own_job()) is not None:
        job.transport.fail(reason)


def _forget_in_child() -> None:
    global _job
    job, _job = _job, None
    if job is not None:
        job.peers.close()  # otherwise the parent's end would go unnoticed while the child lives


def _machine_id() -> str:
    """Returns an identifier of the kernel: equal for processes of one machine, also in containers."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return socket.gethostname()
