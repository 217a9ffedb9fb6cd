# SPDX-License-Identifier: Apache-2.0
"""The facts that the processes of a job exchange first, and the check that they are consistent."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from artifex_devices._base.checks import failure
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.distributed.gpus_of_job import SeenGpus
from artifex_devices.distributed.mpi_runtime import MpiRuntime, wait_for_all

_T = TypeVar("_T")


class ProcessFacts(NamedTuple):
    """Facts of one process."""

    host: str  # network name
    machine: str  # identifier of its kernel: equal for processes on one machine
    pid: int
    cpus: tuple[int, ...]  # CPUs that its affinity mask allows, ascending
    versions: dict[str, str]  # must be equal in all processes
    byte_order: str  # "little" or "big"
    arguments: tuple[str | None, int | None, int | None]  # coordinator_address, num_processes and process_id
    address_is_own: bool  # whether coordinator_address is None or belongs to its host
    launcher: tuple[str, int | None, str]  # name, number of processes that it reports, flag that binds processes
    gpus: SeenGpus | None = None  # in jobs of GPUs


def exchange(runtime: MpiRuntime, value: _T, deadline: float) -> list[_T]:
    """Gives every process the values of all, before peers are watched; RuntimeError after the deadline."""
    mpi, world = runtime.mpi, runtime.world
    mine = pickle.dumps(value)
    size = len(mine).to_bytes(8, "little")  # mpi4py does not keep the buffers of a collective alive
    flat = bytearray(8 * world.Get_size())
    request = world.Iallgather([size, mpi.BYTE], [flat, mpi.BYTE])
    wait_for_all(request.Test, deadline, request, size, flat)
    counts = [int.from_bytes(flat[8 * i : 8 * i + 8], "little") for i in range(world.Get_size())]
    starts = [sum(counts[:i]) for i in range(len(counts))]
    data = bytearray(sum(counts))
    request = world.Iallgatherv([mine, mpi.BYTE], [data, counts, starts, mpi.BYTE])
    wait_for_all(request.Test, deadline, request, mine, data, counts, starts)
    return [pickle.loads(data[start : start + count]) for start, count in zip(starts, counts, strict=True)]


def check_facts(facts: Sequence[ProcessFacts]) -> None:
    """Raises one error, the same in every process, that lists everything inconsistent.

    ValueError for wrong arguments and different versions or byte orders; RuntimeError if the launcher has started
    several processes, but MPI reports only this process.
    """
    count = len(facts)
    first = facts[0]
    name, started, _ = first.launcher
    if count == 1 and started is not None and started > 1:
        raise failure(
            RuntimeError,
            "distributed.initialize",
            f"{name} has started {started} processes, but MPI reports one",
            expected="the launcher of the same MPI that mpi4py uses",
            fix="start the program with the mpiexec of the same MPI (python -m mpi4py --mpi-lib-version names it)",
        )
    problems = []
    for number, each in enumerate(facts):
        address, num_processes, process_id = each.arguments
        if num_processes is not None and num_processes != count:
            problems.append(f"num_processes is {num_processes} in process {number}, but the MPI job has {count}")
        if process_id is not None and process_id != number:
            problems.append(f"process_id is {process_id} in the process that is number {number} of the MPI job")
        pairs = {"coordinator_address": (safe_repr(address), safe_repr(first.arguments[0]))}
        pairs |= {thing: (version, first.versions.get(thing, "missing")) for thing, version in each.versions.items()}
        for thing, (found, expected) in pairs.items():
            if found != expected:
                problems.append(f"{thing} is {found} in process {number}, but {expected} in process 0")
        if each.byte_order != first.byte_order:
            problems.append(f"process {number} is {each.byte_order}-endian, but process 0 is {first.byte_order}-endian")
    if not first.address_is_own:
        problems.append(
            f"coordinator_address is {safe_repr(first.arguments[0])}, but process 0 runs on {first.host}, which does "
            "not have that address"
        )
    if problems:
        raise failure(
            ValueError,
            "distributed.initialize",
            "; ".join(problems),
            expected="arguments that match the job, and the same versions in all processes",
            fix="leave the arguments out, and use one environment everywhere",
        )


def is_own_address(address: str) -> bool:
    """Returns whether "host:port" names this host; asks the system without using the port."""
    host = address.rpartition(":")[0].strip("[]")
    if host == socket.gethostname():
        return True
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except OSError:
        return False
    for family, kind, protocol, _, where in found:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.bind(where)  # fails for addresses of other hosts
        except OSError:
            continue
        return True
    return False
