# SPDX-License-Identifier: Apache-2.0
"""A job of simulated processes: its clients, and what becomes of each process."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Sequence
from typing import Any

from artifex_devices._core import Client, internal
from artifex_devices._runtime.process_clients import clients_of
from artifex_devices.config import config
from artifex_devices.distributed import exchange
from artifex_devices.distributed import transport as transports
from artifex_devices.distributed.failure_notice import error_text
from artifex_devices.distributed.simulated import membership
from artifex_devices.distributed.simulated.faults import Fault
from artifex_devices.distributed.simulated.membership import Membership
from artifex_devices.distributed.simulated.scheduler import Scheduler, Unwound
from artifex_devices.distributed.simulated.transport import SimulatedTransport

_DEADLOCK = "the processes wait for each other and none can go on"
_ENDED = "the process has ended"


class Outcome:
    """The end of a process: its return value, its exception, or neither if the run ended it."""

    def __init__(self) -> None:
        self.has_ended = False
        self.value: Any = None
        self.error: BaseException | None = None


class SimulatedJob:
    """A job that runs once."""

    def __init__(
        self,
        devices: Sequence[int],
        seed: int,
        faults: Sequence[Fault] = (),
        *,
        stops_at_error: bool = True,
        platform: str = "cpu",
    ) -> None:
        """`devices` has the number of devices of each process; devices of the platform "gpu" are emulated.

        With `stops_at_error` the first exception of a process ends the run; otherwise the other processes learn of it.
        """
        count = len(devices)
        names = [f"process {number} (simulated)" for number in range(count)]
        self.scheduler = Scheduler(count, seed, faults)
        self.outcomes = [Outcome() for _ in range(count)]
        self.first_error: tuple[int, BaseException] | None = None
        self._devices = devices
        self._platform = platform
        self._stops_at_error = stops_at_error
        self._transports = [SimulatedTransport(number, names, self.scheduler) for number in range(count)]
        left: dict[int, list[Any]] = {number: [] for number in range(count)}
        for each in self._transports:
            each.peers.all = [transport.peers for transport in self._transports]
            each.left_for_others = left
        self.scheduler.on_lost = lambda number: self._transports[number].peers.send_lost()
        self.scheduler.on_deadlock = self._break_deadlock

    def run(self, function: Callable[[], Any]) -> None:
        """Calls the function in each process, and returns when all have ended."""
        clients = clients_of(self._devices, platform=self._platform)
        contexts = [contextvars.copy_context() for _ in clients]
        settings = config.values
        for client, transport in zip(clients, self._transports, strict=True):
            transports.install(client, transport)
        try:
            self.scheduler.run(lambda number: contexts[number].run(self._play, number, clients[number], function))
        finally:
            for client in clients:
                transports.remove(client)
                exchange.forget(client)
            for name, value in config.values.items():
                if value != settings[name]:
                    config.update(name, settings[name])

    def _play(self, number: int, client: Client, function: Callable[[], Any]) -> None:
        """Runs the function in one process; records what it returns or raises, and reports its end."""
        outcome, transport = self.outcomes[number], self._transports[number]
        member = Membership(transport, client)
        frame = internal.push_world(client)
        internal.set_trace_process(number)
        membership.current.set(member)
        try:
            value = function()
            self.scheduler.check_runs(number)
            outcome.value = value
        except Unwound:
            raise
        except BaseException as error:
            self.scheduler.check_runs(number)
            self.scheduler.log(number, "raise", error_text(error))
            has_exited = isinstance(error, SystemExit)
            if not self._stops_at_error:
                outcome.error = error
            elif not has_exited or error.code:  # type: ignore[attr-defined]
                self.first_error = self.first_error or (number, error)
                self.scheduler.stop()
                return
            if not has_exited:
                transport.fail(error_text(error))
        else:
            self.scheduler.log(number, "return", type(outcome.value).__name__)
        finally:
            internal.pop_world(frame)
        outcome.has_ended = True
        if outcome.error is None or isinstance(outcome.error, SystemExit):
            member.leave(_ENDED)

    def _break_deadlock(self) -> None:
        """Makes every process raise the table of all positions, as after a mismatch."""
        for transport in self._transports:
            transport.peers.stuck_reason = transport.peers.stuck_reason or _DEADLOCK
