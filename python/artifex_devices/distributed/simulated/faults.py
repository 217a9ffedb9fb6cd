# SPDX-License-Identifier: Apache-2.0
"""Faults of simulated processes: when a process ends without notice, or stops for some time."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from artifex_devices._base.public_path import public

_MAX_DRAWN_CALL = 10
_MAX_DRAWN_MESSAGES = 3


@public("artifex_devices.testing")
@dataclass(frozen=True)
class Fault:
    """A fault of one process.

    Attributes:
        process: Number of the process, or None to draw it from the seed.
        at: Text in the operation at which the fault occurs; "" for any operation.
        call: Number of that operation among the process's operations that contain the text, from 1, or None to draw it
            from the seed.
        messages: Number of messages of the operation that the process sends before the fault.
        seconds: Virtual seconds for which the process stops, or None for a process that ends without notice.
    """

    process: int | None
    at: str
    call: int | None
    messages: int
    seconds: float | None

    @property
    def text(self) -> str:
        """The fault in words."""
        if self.seconds is None:
            return "ends without notice"
        return "stops forever" if math.isinf(self.seconds) else f"stops for {self.seconds:g} s"


class FaultPlan:
    """The faults of one run, in the order in which they were given; each occurs at most once."""

    def __init__(self, faults: Sequence[Fault], processes: int, generator: random.Random) -> None:
        self._waiting: list[Fault] = []
        for fault in faults:
            process = generator.randrange(processes) if fault.process is None else fault.process
            call, messages = fault.call, fault.messages
            if call is None:
                call = generator.randint(1, _MAX_DRAWN_CALL)
                messages = generator.randint(0, _MAX_DRAWN_MESSAGES)
            self._waiting.append(replace(fault, process=process, call=call, messages=messages))
        self._calls = dict.fromkeys(self._waiting, 0)
        self._begun: dict[Fault, int] = {}  # faults whose operation has begun: messages until they occur

    def operation(self, process: int, text: str) -> Fault | None:
        """Returns the fault that occurs where a process begins an operation, or None."""
        for fault in [each for each in self._waiting if each.process == process]:
            if fault in self._begun:
                return self._take(fault)
            if fault.at in text:
                self._calls[fault] += 1
                if self._calls[fault] == fault.call:
                    if fault.messages == 0:
                        return self._take(fault)
                    self._begun[fault] = fault.messages
        return None

    def message(self, process: int) -> Fault | None:
        """Returns the fault that occurs where a process sends a message, or None."""
        for fault, left in list(self._begun.items()):
            if fault.process == process:
                if left == 0:
                    return self._take(fault)
                self._begun[fault] = left - 1
        return None

    def _take(self, fault: Fault) -> Fault:
        self._waiting.remove(fault)
        self._begun.pop(fault, None)
        return fault
