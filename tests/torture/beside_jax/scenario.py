# SPDX-License-Identifier: Apache-2.0
"""Scenarios: functions of a Binding, run in separate processes, with rules for their outcomes."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

FINE = r"ok"
# Any class of error with a text, except those that indicate a defect in the library.
REFUSED = r"(?!SystemError|AssertionError|InternalError)\w*Error: (?!.*std::).+"


@dataclass(frozen=True)
class Scenario:
    """One row. `good` is a regular expression for the whole outcome; `should` describes it."""

    name: str
    group: str
    title: str
    should: str
    good: str
    body: Callable[[Any], Any]
    devices: int = 8
    code: int = 0  # the exit status that the process must have
    silent: bool = False  # nothing may be on standard error
    interrupt: bool = False  # gets Ctrl-C after it has printed a line, and must then end
    runs: int = 1
    timeout_s: float = 75.0  # longer than the 60 s after which XLA ends a process
    then: bool = True  # run good_calls() afterwards
    leave: bool = False  # end by os._exit, because the row is not about the exit
    note: str = ""  # context for a fair reading


SCENARIOS: dict[str, Scenario] = {}


def scenario(group: str, title: str, should: str, good: str = FINE, **more: Any) -> Callable[[Any], Any]:
    """Registers a function of a Binding under its name."""

    def register(body: Any) -> Any:
        assert body.__name__ not in SCENARIOS
        SCENARIOS[body.__name__] = Scenario(body.__name__, group, title, should, good, body, **more)
        return body

    return register


class WrongValueError(Exception):
    """A value differs from the expected one."""


def same(found: Any, expected: Any, what: str = "") -> None:
    """Raises unless both are equal bit for bit."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.dtype != expected.dtype or found.shape != expected.shape or found.tobytes() != expected.tobytes():
        raise WrongValueError(f"{what}{' ' if what else ''}{_short(found)} instead of {_short(expected)}")


def _short(value: np.ndarray[Any, Any]) -> str:
    return " ".join(np.array2string(value, threshold=8, edgeitems=2).split())


def accepted(value: object) -> None:
    """Fails: input that must be refused gave a value."""
    raise WrongValueError(f"accepted: {value!r}"[:200])


def good_calls(b: Any) -> None:
    """Places, computes, reshards, reads and sums over the participants."""
    x = np.arange(8.0)
    placed = b.jax.device_put(x, b.over("x"))
    same(placed + 1, x + 1)
    same(b.jax.device_put(placed, b.over()), x)
    if len(b.jax.devices()) == 8:
        same(b.mapped(lambda block: b.lax.psum(block, "x"))(placed), np.full(8, 28.0))


def in_fork(child: Callable[[], Any], seconds: float = 30) -> None:
    """Runs child() in a forked process; raises unless that ends normally."""
    number = os.fork()
    if number == 0:
        code = 1
        with contextlib.suppress(Exception):
            child()
            code = 7
        os._exit(code)
    ended = wait_for_child(number, seconds)
    if ended != "exit 7":
        raise WrongValueError(f"the forked child {ended}")


def wait_for_child(number: int, seconds: float) -> str:
    """How it ended: "exit N", "died by SIGX" or "hangs", in which case it is killed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(number, os.WNOHANG)
        if found:
            code = os.waitstatus_to_exitcode(status)
            return f"exit {code}" if code >= 0 else f"died by {signal.Signals(-code).name}"
        time.sleep(0.02)
    os.kill(number, signal.SIGKILL)
    os.waitpid(number, 0)
    return f"hangs (killed after {seconds:g} s)"


def aligned(count: int, dtype: Any = np.float64, offset: int = 0) -> np.ndarray[Any, Any]:
    """An array of arange(count) whose memory begins `offset` bytes after a multiple of 64."""
    size = np.dtype(dtype).itemsize * count
    memory = np.empty(size + 128, np.uint8)
    begin = -memory.ctypes.data % 64 + offset
    made = memory[begin : begin + size].view(dtype)
    made[:] = np.arange(count)
    return made


@contextlib.contextmanager
def address_space(more_bytes: int | None = None, all_bytes: int | None = None) -> Iterator[None]:
    """Sets RLIMIT_AS to the bytes in use plus more_bytes, or to all_bytes."""
    import resource

    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (all_bytes or used + (more_bytes or 0), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def resident_bytes() -> int:
    """Resident memory of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
