# SPDX-License-Identifier: Apache-2.0
"""Fork, exit, and the state of the process."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np
from scenario import WrongValueError, good_calls, in_fork, same, scenario, wait_for_child

GROUP = "the life of a process"


@scenario(
    GROUP,
    "a forked child uses device_put",
    "works there",
    note="JAX warns at os.fork that it is incompatible with threads, and JAX has many.",
)
def fork_then_use(b: Any) -> None:
    good_calls(b)
    x = np.arange(64.0)

    def child() -> None:
        same(b.jax.device_put(x, b.over("x")), x)
        good_calls(b)

    in_fork(child)


@scenario(GROUP, "a forked child only calls sys.exit", "ends")
def fork_then_exit(b: Any) -> None:
    good_calls(b)
    number = os.fork()
    if number == 0:
        raise SystemExit(7)  # up to the interpreter's own end
    ended = wait_for_child(number, 30)
    if ended != "exit 7":
        raise WrongValueError(f"the forked child {ended}")


@scenario(
    GROUP, "a fork during a reshard of 16 MiB; the child reads the result and continues", "the value, or a clear error"
)
def fork_amid_reshard(b: Any) -> None:
    good_calls(b)
    big = np.arange(1 << 22, dtype=np.float32).reshape(2048, 2048)
    array = b.jax.device_put(big, b.over("x"))
    for _ in range(3):
        coming = b.jax.device_put(array, b.over(None, "x"))

        def child(coming: Any = coming) -> None:
            try:
                same(coming, big)
            except RuntimeError as error:
                if "fork" not in str(error):
                    raise
            good_calls(b)

        in_fork(child, 15)
        same(coming, big)


@scenario(
    GROUP,
    "daemon threads place and reshard when the interpreter ends, 10 processes",
    "the exit status is kept, nothing is printed",
    code=7,
    silent=True,
    runs=10,
    then=False,
    note="CPython 3.11 ends a thread that returns to it then by pthread_exit, and C++ frames abort.",
)
def daemons_at_exit(b: Any) -> None:
    good_calls(b)
    big = np.arange(1 << 20, dtype=np.float32).reshape(1024, 1024)

    def go_on() -> None:
        while True:
            array = b.jax.device_put(big, b.over("x"))
            np.asarray(b.jax.device_put(array, b.over(None, "x")))

    for _ in range(4):
        threading.Thread(target=go_on, daemon=True).start()
    time.sleep(0.5)  # a moment in which the threads are at work


@scenario(
    GROUP,
    "the interpreter ends with reshards of 64 MiB in flight, 3 processes",
    "the exit status is kept, nothing is printed",
    code=7,
    silent=True,
    runs=3,
    then=False,
)
def copies_at_exit(b: Any) -> None:
    big = np.arange(1 << 24, dtype=np.float32).reshape(4096, 4096)
    array = b.jax.device_put(big, b.over("x"))
    for _ in range(3):
        b.jax.device_put(array, b.over(None, "x"))


def state() -> dict[str, Any]:
    """The state of the process."""
    import locale
    import resource

    limits = [resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")]
    with open("/proc/self/status", encoding="ascii") as file:
        kernel = [line for line in file if line.startswith(("SigBlk", "SigIgn", "SigCgt", "Umask"))]
    return {
        "signal handlers": [signal.getsignal(each) for each in sorted(signal.valid_signals())],
        "signal masks": kernel,
        "locale": locale.setlocale(locale.LC_ALL),
        "affinity": os.sched_getaffinity(0),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "limits": limits,
        "subnormals": float(np.float32(1e-45)) > 0,
    }


@scenario(GROUP, "signal handlers, masks, locale, affinity, environment, limits after work", "unchanged")
def own_state(b: Any) -> None:
    thread = threading.Thread()  # with its first one, the C library catches two signals of its own
    thread.start()
    thread.join()
    before = state()
    good_calls(b)
    other = threading.Thread(target=good_calls, args=(b,))
    other.start()
    other.join()
    after = state()
    changed = [name for name in before if after[name] != before[name]]
    if changed:
        raise WrongValueError(f"changed: {', '.join(changed)}")


@scenario(GROUP, "JAX_NUM_CPU_DEVICES changes after the first use", "still 8 devices")
def environment_later(b: Any) -> None:
    good_calls(b)
    os.environ["JAX_NUM_CPU_DEVICES"] = "3"
    same(b.jax.device_count(), 8)
