# SPDX-License-Identifier: Apache-2.0
"""What the processes of a job tell each other first, and whether it fits together."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from artifex_devices._base.safe_repr import shown
from artifex_devices.distributed.mpi_runtime import Engine, wait_for_all

__all__ = ["Introduction", "check_introductions", "exchange", "is_own_address"]

_T = TypeVar("_T")


class Introduction(NamedTuple):
    """One process.

    Attributes:
        host: Its name in the network.
        machine: Equal for processes that run on one kernel.
        pid: Its number there.
        cpus: That its affinity mask allows, ascending.
        versions: Of what must be equal everywhere.
        byte_order: "little" or "big".
        asked: What its program said of coordinator_address, num_processes and process_id.
        address_is_own: Whether coordinator_address is of this process's host, if it was given.
        launcher: Name, number of processes that it says it started, flag that binds.
    """

    host: str
    machine: str
    pid: int
    cpus: tuple[int, ...]
    versions: dict[str, str]
    byte_order: str
    asked: tuple[str | None, int | None, int | None]
    address_is_own: bool
    launcher: tuple[str, int | None, str]


def exchange(engine: Engine, value: _T, deadline: float) -> list[_T]:
    """Gives every process the values of all; for the beginning of a job, before peers are watched.

    Raises:
        RuntimeError: Not all have come by the deadline (time.monotonic()).
    """
    mpi, world = engine.mpi, engine.world
    mine = pickle.dumps(value)
    size = len(mine).to_bytes(8, "little")  # mpi4py does not keep what a collective sends: we do, until it is done
    flat = bytearray(8 * world.Get_size())
    request = world.Iallgather([size, mpi.BYTE], [flat, mpi.BYTE])
    wait_for_all(request.Test, deadline, request, size, flat)
    counts = [int.from_bytes(flat[8 * i : 8 * i + 8], "little") for i in range(world.Get_size())]
    starts = [sum(counts[:i]) for i in range(len(counts))]
    data = bytearray(sum(counts))
    request = world.Iallgatherv([mine, mpi.BYTE], [data, counts, starts, mpi.BYTE])
    wait_for_all(request.Test, deadline, request, mine, data, counts, starts)
    return [pickle.loads(data[start : start + count]) for start, count in zip(starts, counts, strict=True)]


def check_introductions(all_of: Sequence[Introduction]) -> None:
    """Raises one error, the same in every process, that names everything that does not fit.

    Raises:
        ValueError: Arguments do not say what is so, or versions or byte orders differ.
        RuntimeError: The launcher has started several processes, but MPI knows of this one only.
    """
    count = len(all_of)
    name, started, _ = all_of[0].launcher
    if count == 1 and started is not None and started > 1:
        raise RuntimeError(
            f"distributed.initialize: {name} has started {started} processes, but MPI knows of one; expected the "
            "launcher of the same MPI that mpi4py uses; start the program with the mpiexec beside it (python -m mpi4py "
            "--mpi-lib-version names it)"
        )
    problems = []
    for number, each in enumerate(all_of):
        address, asked_count, asked_number = each.asked
        if asked_count is not None and asked_count != count:
            problems.append(f"num_processes is {asked_count} in process {number}, but the MPI job has {count}")
        if asked_number is not None and asked_number != number:
            problems.append(f"process_id is {asked_number} in the process that is number {number} of the MPI job")
        if address != all_of[0].asked[0]:
            problems.append(
                f"coordinator_address is {shown(address)} in process {number}, but {shown(all_of[0].asked[0])} in "
                "process 0"
            )
        for thing, version in each.versions.items():
            expected = all_of[0].versions.get(thing)
            if version != expected:
                problems.append(f"{thing} is {version} in process {number}, but {expected} in process 0")
        if each.byte_order != all_of[0].byte_order:
            problems.append(
                f"process {number} is {each.byte_order}-endian, but process 0 is {all_of[0].byte_order}-endian"
            )
    if not all_of[0].address_is_own:
        problems.append(
            f"coordinator_address is {shown(all_of[0].asked[0])}, but process 0 runs on {all_of[0].host}, which has "
            "not that address"
        )
    if problems:
        raise ValueError(
            f"distributed.initialize: {'; '.join(problems)}; expected the arguments to say what the job is, and all "
            "processes to be alike; leave the arguments out, and use one environment everywhere"
        )


def is_own_address(address: str) -> bool:
    """Whether "host:port" names this host; asks the system, without using the port."""
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
                probe.bind(where)  # refused for addresses of others
        except OSError:
            continue
        return True
    return False
