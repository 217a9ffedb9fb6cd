# SPDX-License-Identifier: Apache-2.0
"""The processes that save one checkpoint together; they wait for each other before and after each step."""

from __future__ import annotations

from collections.abc import Callable

from artifex_devices._base.digest import digest_of
from artifex_devices._core import Client
from artifex_devices.distributed import transport as transports


class CheckpointProcesses:
    """All processes of a client, for one operation."""

    def __init__(self, client: Client, operation: str) -> None:
        self.index = client.process_index()
        self.count = client.process_count()
        self._operation = operation
        self._transport = transports.of_client(client, operation) if self.count > 1 else None

    def step(self, name: str, work: Callable[[], None], *, identity: str = "") -> None:
        """Does this process's work, then waits until all processes have done theirs.

        Args:
            name: Name of the step.
            work: Called without arguments.
            identity: Text that is equal in all processes.

        Raises:
            CollectiveError: The work of another process failed, or a process is missing or saves something else.
        """
        transport, everyone = self._transport, range(self.count)
        try:
            work()
        except BaseException as error:
            if transport is not None:
                transport.refuse(f"{self._operation} ({name})", f"{type(error).__name__}: {error}", everyone)
            raise
        if transport is not None:
            transport.agree(f"{self._operation} ({name})", digest_of(f"{name}\0{identity}"), everyone)
