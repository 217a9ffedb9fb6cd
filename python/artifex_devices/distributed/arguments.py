# SPDX-License-Identifier: Apache-2.0
"""What the caller of initialize() says, checked as far as one process can: all at once, before anything starts."""

from __future__ import annotations

import numbers
import operator
import sys
from collections.abc import Sequence
from typing import Any

from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.safe_repr import shown

__all__ = ["Asked"]

_COMMAND = "mpiexec -n {} python script.py"
_METHOD = "mpi4py"
_LAST_PORT = 65535
_MOST_PROCESSES = 2**31 - 1  # MPI counts in ints of C
_MOST_DEVICES = 1 << 24
_LONGEST_ADDRESS = 300  # a name of the DNS has 253 characters


class Asked:
    """What the caller says of the job.

    Attributes:
        address: "host:port" of process 0, or None.
        count: Number of processes, or None.
        number: Of this one, or None.
        devices: How many it is to have, or None.
        timeout: Seconds to wait for the others.
        silence: Seconds without a sign from another host.
        shutdown_timeout: Seconds that shutdown() waits.
    """

    def __init__(self, **given: Any) -> None:
        """Takes the parameters of initialize(); raises one TypeError or ValueError for all that is wrong."""
        self._types: list[str] = []
        self._values: list[str] = []
        self.address = self._address(given["coordinator_address"])
        self.count = self._whole("num_processes", given["num_processes"], 1, _MOST_PROCESSES)
        most = _MOST_PROCESSES if self.count is None else self.count
        self.number = self._whole("process_id", given["process_id"], 0, most - 1)
        self.devices = self._devices(given["local_device_ids"])
        self._method(given["cluster_detection_method"])
        self.timeout = self._seconds("initialization_timeout", given["initialization_timeout"])
        self.silence = self._seconds("heartbeat_timeout_seconds", given["heartbeat_timeout_seconds"])
        self.shutdown_timeout = self._seconds("shutdown_timeout_seconds", given["shutdown_timeout_seconds"])
        for name in ("coordinator_bind_address", "slice_index", "partition_index"):  # JAX's, for accelerators
            if given[name] is not None:
                self._values.append(f"{name} has no meaning here; expected None, got {shown(given[name])}")
        if self._types:
            raise TypeError(f"distributed.initialize: {'; '.join(self._types)}; leave out what MPI knows")
        if self._values:
            raise ValueError(f"distributed.initialize: {'; '.join(self._values)}; correct it, or leave it out")

    def check_alone(self) -> None:
        """For a process that no launcher has started."""
        if self.count is None:
            raise RuntimeError(
                "distributed.initialize: this process was started alone, without a launcher of MPI; expected several "
                f"that know of each other; start the program as: {_COMMAND.format(2)}"
            )
        if self.count != 1:
            raise ValueError(
                f"distributed.initialize: num_processes is {self.count}, but this process was started alone; expected "
                f"1; start the program as: {_COMMAND.format(self.count)}"
            )

    def _address(self, value: Any) -> str | None:
        if value is None:
            return None
        if not isinstance(value, str):
            self._wrong_type("coordinator_address", "text like 'host:1234'", value)
            return None
        host, _, port = value.rpartition(":")
        wrong = ""
        if len(value) > _LONGEST_ADDRESS or not value.isprintable():
            wrong = "is no address"
        elif not (port.isascii() and port.isdecimal()):
            wrong = "has no port"
        elif not host:
            wrong = "has no host"
        elif not 1 <= int(port) <= _LAST_PORT:
            wrong = f"has no port from 1 to {_LAST_PORT}"
        if wrong:
            self._values.append(f"coordinator_address {wrong}; expected 'host:port', got {shown(value)}")
        return value

    def _whole(self, name: str, value: Any, least: int, most: int) -> int | None:
        if value is None:
            return None
        if isinstance(value, bool) or not hasattr(type(value), "__index__"):
            self._wrong_type(name, "an int", value)
            return None
        number = operator.index(value)
        if not least <= number <= most:
            self._values.append(f"{name} is out of range; expected {least} to {most}, got {shown(value)}")
            return None
        return number

    def _devices(self, value: Any) -> int | None:
        if value is None:
            return None
        several = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
        if not several and (isinstance(value, bool) or not hasattr(type(value), "__index__")):
            self._wrong_type("local_device_ids", "an int or a sequence of ints", value)
            return None
        if several and not 1 <= _length(value) <= _MOST_DEVICES:
            self._values.append(
                f"local_device_ids names no devices, or too many; expected 1 to {_MOST_DEVICES} different numbers from "
                f"0, got {shown(value)}"
            )
            return None
        ids = list(value) if several else [value]
        if wrong := [each for each in ids if isinstance(each, bool) or not hasattr(type(each), "__index__")]:
            self._wrong_type("an entry of local_device_ids", "an int", wrong[0])
            return None
        found = [operator.index(each) for each in ids]
        if len(set(found)) < len(found) or min(found) < 0:
            self._values.append(
                f"local_device_ids names devices twice, or below 0; expected different numbers from 0, got "
                f"{shown(value)}"
            )
        return len(found)

    def _method(self, value: Any) -> None:
        if value is None:
            return
        if not isinstance(value, str):
            self._wrong_type("cluster_detection_method", f"None or {_METHOD!r}", value)
        elif value != _METHOD:
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

    def _wrong_type(self, name: str, expected: str, value: Any) -> None:
        self._types.append(f"{name} is of type {type(value).__name__}; expected {expected}, got {shown(value)}")


def _length(values: Sequence[Any]) -> int:
    try:
        return len(values)
    except OverflowError:  # of a range
        return sys.maxsize
