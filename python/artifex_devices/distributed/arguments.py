# SPDX-License-Identifier: Apache-2.0
"""The arguments of initialize(), checked before anything starts as far as one process can."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from artifex_devices._base.checks import check_int, check_number, check_sequence_of_ints, check_str
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.safe_repr import safe_repr

_COMMAND = "mpiexec -n {} python script.py"
_METHOD = "mpi4py"
_MAX_PORT = 65535
_MAX_PROCESSES = 2**31 - 1  # MPI counts in ints of C
_MAX_DEVICES = 1 << 24
_MAX_ADDRESS = 300  # characters; a name of the DNS has at most 253


class InitializeArguments:
    """Validated arguments of distributed.initialize(); None where MPI or a default decides."""

    def __init__(self, **arguments: Any) -> None:
        """Takes the parameters of initialize(); raises one TypeError or ValueError that lists everything wrong."""
        self._types: list[str] = []
        self._values: list[str] = []
        self.address = self._address(arguments["coordinator_address"])
        self.num_processes = self._int("num_processes", arguments["num_processes"], 1, _MAX_PROCESSES)
        last = (self.num_processes or _MAX_PROCESSES) - 1
        self.process_id = self._int("process_id", arguments["process_id"], 0, last)
        self.num_devices = self._devices(arguments["local_device_ids"])
        self._check_method(arguments["cluster_detection_method"])
        self.timeout_s = self._seconds("initialization_timeout", arguments["initialization_timeout"])
        self.silence_s = self._seconds("heartbeat_timeout_seconds", arguments["heartbeat_timeout_seconds"])
        self.shutdown_timeout_s = self._seconds("shutdown_timeout_seconds", arguments["shutdown_timeout_seconds"])
        for name in ("coordinator_bind_address", "slice_index", "partition_index"):  # JAX's, for accelerators
            if arguments[name] is not None:
                self._refuse(name, "has no meaning here", "None", arguments[name])
        if self._types:
            raise TypeError(f"distributed.initialize: {'; '.join(self._types)}; leave out what MPI knows")
        if self._values:
            raise ValueError(f"distributed.initialize: {'; '.join(self._values)}; correct it, or leave it out")

    def check_single(self) -> None:
        """Raises unless the arguments fit a process that was started without a launcher."""
        if self.num_processes is None:
            raise RuntimeError(
                "distributed.initialize: this process was started alone, without a launcher of MPI; expected several "
                f"processes of one MPI job; start the program as: {_COMMAND.format(2)}"
            )
        if self.num_processes != 1:
            raise ValueError(
                f"distributed.initialize: num_processes is {self.num_processes}, but this process was started alone; "
                f"expected 1; start the program as: {_COMMAND.format(self.num_processes)}"
            )

    def _checked(self, check: Callable[..., Any], name: str, value: Any, **limits: Any) -> Any:
        """The checked value; collects the error and returns None where the check raises."""
        try:
            return check("", name, value, "", **limits)
        except (TypeError, ValueError) as error:
            problem = str(error).removeprefix(": ").removesuffix("; ")
            (self._types if isinstance(error, TypeError) else self._values).append(problem)
            return None

    def _address(self, value: Any) -> str | None:
        name = "coordinator_address"
        if value is None or self._checked(check_str, name, value, expected="a str such as 'host:1234'") is None:
            return None
        host, _, port = value.rpartition(":")
        if len(value) > _MAX_ADDRESS or not value.isprintable():
            self._refuse(name, "is not an address", "'host:port'", value)
        elif not (port.isascii() and port.isdecimal()):
            self._refuse(name, "has no port", "'host:port'", value)
        elif not host:
            self._refuse(name, "has no host", "'host:port'", value)
        elif not 1 <= int(port) <= _MAX_PORT:
            self._refuse(name, f"has no port from 1 to {_MAX_PORT}", "'host:port'", value)
        return str(value)

    def _refuse(self, name: str, problem: str, expected: str, value: Any) -> None:
        self._values.append(f"{name} {problem}; expected {expected}, got {safe_repr(value)}")

    def _int(self, name: str, value: Any, minimum: int, maximum: int) -> int | None:
        return None if value is None else self._checked(check_int, name, value, minimum=minimum, maximum=maximum)

    def _devices(self, value: Any) -> int | None:
        if value is None:
            return None
        name = "local_device_ids"
        if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
            value = [self._checked(check_int, name, value, expected="an int or a sequence of ints")]
        elif not 1 <= _length(value) <= _MAX_DEVICES:
            expected = f"1 to {_MAX_DEVICES} different numbers from 0"
            self._refuse(name, "names no devices, or too many", expected, value)
            return None
        else:
            value = self._checked(check_sequence_of_ints, name, value)
        if value is None or None in value:
            return None
        if len(set(value)) < len(value) or min(value) < 0:
            self._refuse(name, "names devices twice, or below 0", "different numbers from 0", value)
        return len(value)

    def _check_method(self, value: Any) -> None:
        name = "cluster_detection_method"
        if value is not None and self._checked(check_str, name, value, expected=f"None or {_METHOD!r}") is not None:
            hint = did_you_mean(value, [_METHOD])
            if value != _METHOD:
                self._values.append(f"{name} is not known; expected None or {_METHOD!r}, got {safe_repr(value)}{hint}")

    def _seconds(self, name: str, value: Any) -> float:
        seconds = self._checked(check_number, name, value, above=0, expected="a number of seconds")
        if seconds is not None and seconds > sys.float_info.max:  # an int
            self._values.append(f"{name} is {safe_repr(value)}; expected a finite number of seconds")
            seconds = None
        return 0.0 if seconds is None else float(seconds)


def _length(values: Sequence[Any]) -> int:
    try:
        return len(values)
    except OverflowError:  # of a range
        return sys.maxsize
