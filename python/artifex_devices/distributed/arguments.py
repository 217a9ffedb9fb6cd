# SPDX-License-Identifier: Apache-2.0
"""What the caller of initialize() says, checked as far as one process can."""

from __future__ import annotations

import operator
from typing import Any

from artifex_devices.shown import shown

__all__ = ["Asked", "refuse_foreign", "seconds"]

_COMMAND = "mpiexec -n {} python script.py"


class Asked:
    """What the caller says of the job.

    Attributes:
        address: "host:port" of process 0, or None.
        count: Number of processes, or None.
        number: Of this one, or None.
        devices: How many it is to have, or None.
    """

    def __init__(self, address: Any, count: Any, number: Any, local_device_ids: Any) -> None:
        if address is not None and not isinstance(address, str):
            raise TypeError(_wrong_type("coordinator_address", "text like 'host:1234'", address))
        self.address: str | None = address
        self.count = _whole("num_processes", count)
        self.number = _whole("process_id", number)
        if address is not None and not address.rpartition(":")[2].isdecimal():
            raise ValueError(
                f"distributed.initialize: coordinator_address has no port; expected 'host:port', got {shown(address)}; "
                "correct it, or leave it out"
            )
        self.devices: int | None = None
        if local_device_ids is not None:
            ids = local_device_ids if isinstance(local_device_ids, (list, tuple, range)) else [local_device_ids]
            numbers = [_whole("local_device_ids", each) for each in ids]
            if not numbers or len(set(numbers)) < len(numbers) or min(n for n in numbers if n is not None) < 0:
                raise ValueError(
                    "distributed.initialize: local_device_ids names no devices; expected different numbers from 0, got "
                    f"{shown(local_device_ids)}; correct it, or leave it out"
                )
            self.devices = len(numbers)

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
                f"1; start the program as: {_COMMAND.format(max(self.count, 1))}"
            )


def refuse_foreign(method: Any, bind_address: Any, slice_index: Any, partition_index: Any) -> None:
    """Raises ValueError for parameters of JAX's that mean nothing on CPUs under MPI."""
    if method not in (None, "mpi4py"):
        raise ValueError(
            "distributed.initialize: cluster_detection_method is not known; expected None or 'mpi4py', got "
            f"{shown(method)}; leave it out: MPI knows its processes"
        )
    for name, value in (
        ("coordinator_bind_address", bind_address),
        ("slice_index", slice_index),
        ("partition_index", partition_index),
    ):
        if value is not None:
            raise ValueError(
                f"distributed.initialize: {name} has no meaning here; expected None, got {shown(value)}; leave it out"
            )


def _whole(name: str, value: Any) -> int | None:
    if value is None:
        return None
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError(_wrong_type(name, "an int", value)) from None


def seconds(name: str, value: Any) -> float:
    """A positive number of seconds; TypeError or ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(_wrong_type(name, "a number of seconds", value))
    if not value > 0:
        raise ValueError(
            f"distributed.initialize: {name} is not positive; expected seconds, got {shown(value)}; leave it out for "
            "the default"
        )
    return float(value)


def _wrong_type(name: str, expected: str, value: Any) -> str:
    return (
        f"distributed.initialize: {name} is of type {type(value).__name__}; expected {expected}, got {shown(value)}; "
        "leave it out: MPI knows it"
    )
