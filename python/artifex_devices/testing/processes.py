# SPDX-License-Identifier: Apache-2.0
"""Runs programs of several processes as simulated processes inside one process."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from artifex_devices._base.checks import (
    check_bool,
    check_callable,
    check_int,
    check_number,
    check_sequence,
    check_str,
    failure,
    wrong_value,
)
from artifex_devices._base.public_path import public
from artifex_devices._base.raised_exceptions import add_note
from artifex_devices.distributed.simulated.faults import Fault
from artifex_devices.distributed.simulated.job import SimulatedJob
from artifex_devices.distributed.simulated.scheduler import Event
from artifex_devices.testing.shared_globals import SharedGlobals

_MAX_PROCESSES = 256
_OPERATION = "run_processes"


@public("artifex_devices.testing")
@dataclass(frozen=True)
class SimulatedRun:
    """The outcome of `run_processes`.

    Attributes:
        results: Return value of each process, or its exception where `return_exceptions` is True. None for a process
            that a fault has ended or stopped forever.
        events: Operations, messages and faults in the order in which they happened; equal for equal seeds.
        seed: Seed of the schedule.
        unfinished: Numbers of the processes that a fault has ended or stopped forever.
        shared_globals: Global variables of modules, as "module.name", that more than one process has changed. Real
            processes would each have their own.
    """

    results: list[Any]
    events: tuple[Event, ...]
    seed: int
    unfinished: tuple[int, ...]
    shared_globals: tuple[str, ...]


def run_processes(
    function: Callable[..., Any],
    processes: int = 4,
    devices: int | Sequence[int] = 2,
    seed: int = 0,
    faults: Sequence[Fault] = (),
    *,
    args: Sequence[Any] = (),
    return_exceptions: bool = False,
    platform: str = "cpu",
) -> SimulatedRun:
    """Runs a function once in each of several simulated processes of this interpreter.

    Inside, `process_index()`, `devices()`, `local_devices()`, `distributed`, `multihost_utils`, arrays over all
    devices, `shard_map` and checkpoints behave as under `mpiexec -n 4`. One process runs at a time, until it waits for
    another process. The seed decides which process continues, in which order messages arrive, and where drawn faults
    occur: the same seed gives the same run. Time is virtual: a deadlock is reported at once, and no deadline takes real
    time.

    The processes share what belongs to the interpreter: global variables of modules (see
    `SimulatedRun.shared_globals`), `numpy.random`'s global state, environment variables, the current directory and
    `config`, which is restored at the end.

    Args:
        function: Called as `function(*args)` in each process.
        processes: Number of processes.
        devices: Number of devices of each process, or one number for each.
        seed: Seed of the schedule.
        faults: Faults: see `kill` and `stall`.
        args: Arguments of the function.
        return_exceptions: Whether an exception of a process becomes its result, and the other processes continue until
            they need that process. Otherwise the first exception ends all processes and is raised.
        platform: "cpu", or "gpu" for emulated GPUs.

    Raises:
        BaseException: The first exception of a process, unless `return_exceptions` is True; a note names the process
            and the seed.
        TypeError: An argument is of a wrong type.
        ValueError: A number is out of range.

    Example:
        >>> import artifex_devices as ad
        >>> from artifex_devices import multihost_utils
        >>> from artifex_devices.testing import run_processes
        >>> def gather():
        ...     return multihost_utils.process_allgather(ad.process_index()).tolist()
        >>> run_processes(gather, processes=3, seed=7).results
        [[0, 1, 2], [0, 1, 2], [0, 1, 2]]
    """
    check_callable(_OPERATION, "function", function, fix="give the function of each process")
    check_int(_OPERATION, "processes", processes, "write processes=4", minimum=1, maximum=_MAX_PROCESSES)
    check_int(_OPERATION, "seed", seed, "write seed=7", minimum=0, maximum=2**64 - 1)
    check_bool(_OPERATION, "return_exceptions", return_exceptions, "leave it out for False")
    faults = check_sequence(_OPERATION, "faults", faults, "a list of faults", "write faults=[kill(1)]")
    args = check_sequence(_OPERATION, "args", args, "a list of arguments", "write args=[1]")
    counts = _device_counts(devices, processes)
    _check_faults(faults, processes)
    if check_str(_OPERATION, "platform", platform, "write platform='gpu'") not in ("cpu", "gpu"):
        raise wrong_value(_OPERATION, "platform", platform, "'cpu' or 'gpu'", "leave it out for CPU devices")
    job = SimulatedJob(counts, seed, faults, stops_at_error=not return_exceptions, platform=platform)
    shared = SharedGlobals(function)
    job.scheduler.on_yield = shared.note
    job.run(lambda: function(*args))
    if job.first_error is not None:
        number, error = job.first_error
        add_note(error, f"raised by simulated process {number} of {processes}; run_processes(..., seed={seed})")
        raise error
    return SimulatedRun(
        results=[outcome.error if outcome.error is not None else outcome.value for outcome in job.outcomes],
        events=tuple(job.scheduler.events),
        seed=seed,
        unfinished=tuple(number for number, outcome in enumerate(job.outcomes) if not outcome.has_ended),
        shared_globals=shared.names(),
    )


def kill(process: int | None = None, *, at: str = "", call: int | None = None, messages: int = 0) -> Fault:
    """Returns a fault that ends a process without notice, as if it were killed. Its `finally` blocks run at the end.

    Args:
        process: Number of the process; None to draw it from the seed.
        at: Text in the operation at which it ends, such as "psum" or "device_put"; "" for any operation.
        call: Number of that operation, from 1, among the process's operations with the text. By default the first, or,
            if `process` is None too, drawn from 1 to 10.
        messages: Number of messages of the operation that the process still sends; drawn where `call` is drawn.

    Raises:
        TypeError: An argument is of a wrong type.
        ValueError: A number is out of range.

    Example:
        >>> from artifex_devices.testing import kill, run_processes
        >>> run_processes(lambda: 7, processes=2, faults=[kill(1, at="psum", call=3)]).results
        [7, 7]
    """
    return _fault("kill", process, at, call, messages, None)


def stall(
    process: int | None = None,
    *,
    at: str = "",
    call: int | None = None,
    messages: int = 0,
    seconds: float | None = None,
) -> Fault:
    """Returns a fault that stops a process for some time, as if its host were overloaded or its network down.

    Args:
        process: As for `kill`.
        at: As for `kill`.
        call: As for `kill`.
        messages: As for `kill`.
        seconds: Virtual seconds, or None for forever. Other processes that wait for longer than
            `config.collective_timeout_s` raise CollectiveError.

    Raises:
        TypeError: An argument is of a wrong type.
        ValueError: A number is out of range.

    Example:
        >>> from artifex_devices.testing import run_processes, stall
        >>> run_processes(lambda: 7, processes=2, faults=[stall(at="psum", seconds=5)]).results
        [7, 7]
    """
    if seconds is not None:
        seconds = check_number("stall", "seconds", seconds, "leave it out to stop forever", above=0)
    return _fault("stall", process, at, call, messages, math.inf if seconds is None else seconds)


def _fault(
    operation: str, process: int | None, at: str, call: int | None, messages: int, seconds: float | None
) -> Fault:
    if process is not None:
        check_int(operation, "process", process, "leave it out to draw it", minimum=0)
        call = 1 if call is None else call
    check_str(operation, "at", at, "write at='psum'")
    if call is not None:
        check_int(operation, "call", call, "leave it out for the first one", minimum=1)
    check_int(operation, "messages", messages, "leave it out for 0", minimum=0)
    return Fault(process, at, call, messages, seconds)


def _device_counts(devices: int | Sequence[int], processes: int) -> list[int]:
    counts = list(devices) if isinstance(devices, Sequence) else [devices] * processes
    if len(counts) != processes:
        expected = f"one number, or one for each of {processes} processes"
        raise wrong_value(_OPERATION, "devices", devices, expected, "write devices=2")
    return [check_int(_OPERATION, "devices", count, "write devices=2", minimum=1, maximum=2**16) for count in counts]


def _check_faults(faults: Sequence[Fault], processes: int) -> None:
    for fault in faults:
        if not isinstance(fault, Fault):
            raise failure(
                TypeError,
                _OPERATION,
                f"a fault is of type {type(fault).__name__}",
                expected="the result of kill() or stall()",
                fix="write faults=[kill(1, at='psum')]",
            )
        if fault.process is not None and fault.process >= processes:
            expected = f"0 to {processes - 1}"
            raise wrong_value(_OPERATION, "the process of a fault", fault.process, expected, "leave it out to draw it")
