# SPDX-License-Identifier: Apache-2.0
"""The arguments of initialize(): all checks that one process can make before anything starts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from artifex_devices._base.checks import check_int, check_number, check_sequence_of_ints, check_str, failure
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.safe_repr import safe_repr

_COMMAND = "mpiexec -n {} python script.py"
_METHOD = "mpi4py"
_MAX_PORT = 65535
_MAX_PROCESSES = 2**31 - 1  # MPI counts in ints of C
_MAX_DEVICES = 1 << 24
_MAX_ADDRESS = 300  # characters; a name of the DNS has at most 253


class InitializeArguments:
    """Validated arguments of distributed.initialize(); a field is None where MPI or a default decides."""

    def __init__(self, **arguments: Any) -> None:
        """Takes the parameters of initialize(); raises one TypeError or ValueError that lists everything wrong."""
        types: list[str] = []
        values: list[str] = []

        def checked(name: str, check: Callable[..., Any], **limits: Any) -> Any:
            try:
                return check("", name, arguments[name], "", **limits)
            except (TypeError, ValueError) as error:
                wrong = types if isinstance(error, TypeError) else values
                wrong.append(str(error).removeprefix(": ").removesuffix("; "))
                return None

        self.address: str | None = checked("coordinator_address", _check_address)
        self.num_processes: int | None = checked("num_processes", _check_int, minimum=1, maximum=_MAX_PROCESSES)
        last = (self.num_processes or _MAX_PROCESSES) - 1
        self.process_id: int | None = checked("process_id", _check_int, minimum=0, maximum=last)
        self.device_ids: tuple[int, ...] | None = checked("local_device_ids", _check_devices)
        self.num_devices = None if self.device_ids is None else len(self.device_ids)
        checked("cluster_detection_method", _check_method)
        seconds = {"above": 0, "expected": "a number of seconds"}
        self.timeout_s: float = checked("initialization_timeout", check_number, **seconds)
        self.silence_s: float = checked("heartbeat_timeout_seconds", check_number, **seconds)
        self.shutdown_timeout_s: float = checked("shutdown_timeout_seconds", check_number, **seconds)
        for name in ("coordinator_bind_address", "slice_index", "partition_index"):  # JAX's, for accelerators
            checked(name, _check_none)
        if types:
            raise TypeError(f"distributed.initialize: {'; '.join(types)}; leave out what MPI knows")
        if values:
            raise ValueError(f"distributed.initialize: {'; '.join(values)}; correct it, or leave it out")

    def check_single(self) -> None:
        """Raises unless the arguments fit a process that was started without a launcher."""
        if self.num_processes is None:
            raise failure(
                RuntimeError,
                "distributed.initialize",
                "this process was started alone, without a launcher of MPI",
                expected="several processes of one MPI job",
                fix=f"start the program as: {_COMMAND.format(2)}",
            )
        if self.num_processes != 1:
            raise failure(
                ValueError,
                "distributed.initialize",
                f"num_processes is {self.num_processes}, but this process was started alone",
                expected="1",
                fix=f"start the program as: {_COMMAND.format(self.num_processes)}",
            )


def _check_int(operation: str, name: str, value: object, fix: str, **limits: Any) -> int | None:
    return None if value is None else check_int(operation, name, value, fix, **limits)


def _check_none(operation: str, name: str, value: object, fix: str) -> None:
    if value is not None:
        raise _refused(name, "has no meaning here", "None", value)


def _check_address(operation: str, name: str, value: Any, fix: str) -> str | None:
    if value is None:
        return None
    host, _, port = check_str(operation, name, value, fix, expected="a str such as 'host:1234'").rpartition(":")
    problem = ""
    if len(value) > _MAX_ADDRESS or not value.isprintable():
        problem = "is not an address"
    elif not (port.isascii() and port.isdecimal()):
        problem = "has no port"
    elif not host:
        problem = "has no host"
    elif not 1 <= int(port) <= _MAX_PORT:
        problem = f"has no port from 1 to {_MAX_PORT}"
    if problem:
        raise _refused(name, problem, "'host:port'", value)
    return str(value)


def _check_devices(operation: str, name: str, value: object, fix: str) -> tuple[int, ...] | None:
    if value is None:
        return None
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        value = [check_int(operation, name, value, fix, expected="an int or a sequence of ints")]
    try:
        count = len(value)
    except OverflowError:  # of a range
        count = sys.maxsize
    if not 1 <= count <= _MAX_DEVICES:
        expected = f"1 to {_MAX_DEVICES} different numbers from 0"
        raise _refused(name, "names no devices, or too many", expected, value)
    ids = check_sequence_of_ints(operation, name, value, fix)
    if len(set(ids)) < count or min(ids) < 0:
        raise _refused(name, "names devices twice, or below 0", "different numbers from 0", ids)
    return ids


def _check_method(operation: str, name: str, value: Any, fix: str) -> None:
    if value is not None and check_str(operation, name, value, fix, expected=f"None or {_METHOD!r}") != _METHOD:
        hint = did_you_mean(value, [_METHOD])
        raise ValueError(f"{name} is not known; expected None or {_METHOD!r}, got {safe_repr(value)}{hint}")


def _refused(name: str, problem: str, expected: str, value: object) -> ValueError:
    return ValueError(f"{name} {problem}; expected {expected}, got {safe_repr(value)}")
