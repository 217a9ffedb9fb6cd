# SPDX-License-Identifier: Apache-2.0
"""The arguments of initialize(), checked before anything starts as far as one process can."""

from __future__ import annotations

import numbers
import operator
import sys
from collections.abc import Sequence
from typing import Any

from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.safe_repr import shown

__all__ = ["InitializeArguments"]

_COMMAND = "mpiexec -n {} python script.py"
_METHOD = "mpi4py"
_MAX_PORT = 65535
_MAX_PROCESSES = 2**31 - 1  # MPI counts in ints of C
_MAX_DEVICES = 1 << 24
_MAX_ADDRESS = 300  # characters; a name of the DNS has at most 253


class InitializeArguments:
    """Validated arguments of distributed.initialize().

    Attributes:
        address: "host:port" of process 0, or None.
        num_processes: Number of processes, or None to ask MPI.
        process_id: Number of this process, or None to ask MPI.
        num_devices: Number of devices of this process, or None for the default.
        timeout_s: Seconds to wait for the other processes.
        silence_s: Seconds without an answer from another host after which it counts as gone.
        shutdown_timeout_s: Seconds that shutdown() waits.
    """

    def __init__(self, **arguments: Any) -> None:
        """Takes the parameters of initialize(); raises one TypeError or ValueError that lists everything wrong."""
        self._types: list[str] = []
        self._values: list[str] = []
        self.address = self._address(arguments["coordinator_address"])
        self.num_processes = self._int("num_processes", arguments["num_processes"], 1, _MAX_PROCESSES)
        self.process_id = self._int(
            "process_id", arguments["process_id"], 0, (self.num_processes or _MAX_PROCESSES) - 1
        )
        self.num_devices = self._devices(arguments["local_device_ids"])
        self._check_method(arguments["cluster_detection_method"])
        self.timeout_s = self._seconds("initialization_timeout", arguments["initialization_timeout"])
        self.silence_s = self._seconds("heartbeat_timeout_seconds", arguments["heartbeat_timeout_seconds"])
        self.shutdown_timeout_s = self._seconds("shutdown_timeout_seconds", arguments["shutdown_timeout_seconds"])
        for name in ("coordinator_bind_address", "slice_index", "partition_index"):  # JAX's, for accelerators
            if arguments[name] is not None:
                self._values.append(f"{name} has no meaning here; expected None, got {shown(arguments[name])}")
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

    def _address(self, value: Any) -> str | None:
        if value is None:
            return None
        if not isinstance(value, str):
            return self._wrong_type("coordinator_address", "a str such as 'host:1234'", value)
        host, _, port = value.rpartition(":")
        wrong = ""
        if len(value) > _MAX_ADDRESS or not value.isprintable():
            wrong = "is not an address"
        elif not (port.isascii() and port.isdecimal()):
            wrong = "has no port"
        elif not host:
            wrong = "has no host"
        elif not 1 <= int(port) <= _MAX_PORT:
            wrong = f"has no port from 1 to {_MAX_PORT}"
        if wrong:
            self._values.append(f"coordinator_address {wrong}; expected 'host:port', got {shown(value)}")
        return value

    def _int(self, name: str, value: Any, minimum: int, maximum: int) -> int | None:
        if value is None:
            return None
        if not _is_int(value):
            return self._wrong_type(name, "an int", value)
        number = operator.index(value)
        if not minimum <= number <= maximum:
            self._values.append(f"{name} is out of range; expected {minimum} to {maximum}, got {shown(value)}")
            return None
        return number

    def _devices(self, value: Any) -> int | None:
        if value is None:
            return None
        is_sequence = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
        if not is_sequence and not _is_int(value):
            return self._wrong_type("local_device_ids", "an int or a sequence of ints", value)
        if is_sequence and not 1 <= _length(value) <= _MAX_DEVICES:
            self._values.append(
                f"local_device_ids names no devices, or too many; expected 1 to {_MAX_DEVICES} different numbers from "
                f"0, got {shown(value)}"
            )
            return None
        ids = list(value) if is_sequence else [value]
        if wrong := [each for each in ids if not _is_int(each)]:
            return self._wrong_type("an entry of local_device_ids", "an int", wrong[0])
        found = [operator.index(each) for each in ids]
        if len(set(found)) < len(found) or min(found) < 0:
            self._values.append(
                f"local_device_ids names devices twice, or below 0; expected different numbers from 0, got "
                f"{shown(value)}"
            )
        return len(found)

    def _check_method(self, value: Any) -> None:
        if value is not None and not isinstance(value, str):
            self._wrong_type("cluster_detection_method", f"None or {_METHOD!r}", value)
        elif value not in (None, _METHOD):
            self._values.append(
                f"cluster_detection_method is not known; expected None or {_METHOD!r}, got {shown(value)}"
                f"{did_you_mean(value, [_METHOD])}"
            )

    def _seconds(self, name: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            self._wrong_type(name, "a number of seconds", value)
            return 0.0
        number: Any = value
        if not 0 < number <= sys.float_info.max:
            self._values.append(f"{name} is not positive and finite; expected seconds, got {shown(value)}")
            return 0.0
        return float(number)

    def _wrong_type(self, name: str, expected: str, value: Any) -> Any:
        self._types.append(f"{name} is of type {type(value).__name__}; expected {expected}, got {shown(value)}")


def _is_int(value: Any) -> bool:
    return not isinstance(value, bool) and hasattr(type(value), "__index__")


def _length(values: Sequence[Any]) -> int:
    try:
        return len(values)
    except OverflowError:  # of a range
        return sys.maxsize
