# SPDX-License-Identifier: Apache-2.0
"""Implements distributed.initialize(), is_initialized() and shutdown() in a simulated process."""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING

from artifex_devices._base.checks import failure
from artifex_devices._core import Client
from artifex_devices.distributed.arguments import InitializeArguments

if TYPE_CHECKING:
    from artifex_devices.distributed.simulated.transport import SimulatedTransport

_SHUTDOWN = "distributed.shutdown() was called"


class Membership:
    """The part of a simulated process in its job, from the start of the process to shutdown()."""

    def __init__(self, transport: SimulatedTransport, client: Client) -> None:
        self._transport = transport
        self._client = client
        self._was_initialized = False  # by a call; the process is in the job from its start
        self._has_left = False

    @property
    def process_index(self) -> int:
        """Number of the process."""
        return self._transport.process_index

    @property
    def is_initialized(self) -> bool:
        """Whether the process takes part in the job."""
        return not self._has_left

    def initialize(self, arguments: InitializeArguments) -> None:
        """Checks the arguments of the first call; the process is in the job already."""
        if self._was_initialized or self._has_left:
            raise failure(
                RuntimeError,
                "distributed.initialize",
                "it was called before",
                expected="one call in a program",
                fix="remove the second one, or check distributed.is_initialized()",
            )
        number, count = self._transport.process_index, self._transport.process_count
        here = self._client.local_device_count()
        problems = [
            f"{name} is {found} in process {number}, but run_processes simulates {expected}"
            for name, found, expected in (
                ("num_processes", arguments.num_processes, count),
                ("process_id", arguments.process_id, number),
                ("the number of local_device_ids", arguments.num_devices, here),
            )
            if found not in (None, expected)
        ]
        if problems:
            raise failure(
                ValueError,
                "distributed.initialize",
                "; ".join(problems),
                expected="arguments that match the simulated job",
                fix="leave the arguments out, or give run_processes the same numbers",
            )
        self._was_initialized = True

    def shutdown(self) -> None:
        """Leaves the job together with all processes; does nothing after the first call."""
        if self._has_left:
            return
        self._has_left = True
        transport = self._transport
        transport.peers.send_left()
        transport.wait_until(transport.peers.have_left, "distributed.shutdown", 0)
        transport.broken = _SHUTDOWN

    def leave(self, reason: str) -> None:
        """Reports that the program has ended."""
        if not self._has_left:
            self._has_left = True
            self._transport.peers.send_left()
            self._transport.broken = self._transport.broken or reason


current: contextvars.ContextVar[Membership | None] = contextvars.ContextVar(
    "artifex_devices_simulated_process", default=None
)
