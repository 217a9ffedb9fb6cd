# SPDX-License-Identifier: Apache-2.0
"""Participants of a mapped function that fail, leave, disagree or sleep."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import numpy as np
from scenario import WrongValueError, same, scenario

X = np.arange(8.0)
GROUP = "participants"
OWN = "the same exception, soon; the next call works"


def boom(block: Any) -> Any:
    """Raises in participant 3."""
    if block[0] == 3:
        raise ValueError("boom in 3")
    return block


def boom_later(block: Any) -> Any:
    """Raises in participant 3 after a first sum, which is 28."""
    if block[0] == 31:
        raise ValueError("boom in 3")
    return block


def leave(block: Any) -> Any:
    """SystemExit in participant 3."""
    if block[0] == 3:
        raise SystemExit(3)
    return block


def asleep(block: Any) -> Any:
    """Participant 3 sleeps for 10 minutes."""
    if block[0] == 3:
        print("asleep", flush=True)
        threading.Event().wait(600)
    return block


@scenario(GROUP, "one of 8 raises while 7 wait in psum (shard_map)", OWN, r"ValueError: boom in 3")
def one_raises(b: Any) -> None:
    np.asarray(b.mapped(lambda block: b.lax.psum(b.python(boom, block), "x"))(X))


@scenario(
    GROUP,
    "one of 8 raises while 7 wait in psum (pmap)",
    OWN,
    r"ValueError: boom in 3",
    note="SIGABRT after more than 60 s is XLA, which ends a process whose collective has waited so long. JAX says that "
    "an exception in `pure_callback` breaks its contract.",
)
def one_raises_in_pmap(b: Any) -> None:
    np.asarray(b.jax.pmap(lambda block: b.lax.psum(plain_python(b, boom, block), "x"), axis_name="x")(X[:, None]))


def plain_python(b: Any, function: Any, block: Any) -> Any:
    """As Binding.python, for pmap, which has no varying axes."""
    if b.name == "ours":
        return function(np.asarray(block))
    kind = b.jax.ShapeDtypeStruct(block.shape, block.dtype)
    return b.jax.pure_callback(lambda each: function(np.asarray(each)), kind, block)


@scenario(GROUP, "one of 8 raises between two collectives", OWN, r"ValueError: boom in 3")
def one_raises_between(b: Any) -> None:
    def body(block: Any) -> Any:
        return b.lax.psum(b.python(boom_later, b.lax.psum(block, "x") + block), "x")

    np.asarray(b.mapped(body)(X))


@scenario(GROUP, "one of 8 raises SystemExit", OWN, r"SystemExit: 3")
def one_exits(b: Any) -> None:
    np.asarray(b.mapped(lambda block: b.lax.psum(b.python(leave, block), "x"))(X))


MISMATCH = r"CollectiveError: .*"


@scenario(GROUP, "one of 8 returns early, before the psum", "an error that shows where each waits", MISMATCH)
def one_leaves_early(b: Any) -> None:
    def body(block: Any) -> Any:
        return b.choose(3, lambda each: each * 1, lambda each: b.lax.psum(each, "x") + 0 * each, block)

    np.asarray(b.mapped(body)(X))


@scenario(GROUP, "one of 8 calls psum twice, the rest once", "an error that shows where each waits", MISMATCH)
def different_counts(b: Any) -> None:
    def body(block: Any) -> Any:
        return b.times(lambda i: 1 + (i == 3), lambda each: b.lax.psum(each, "x") + 0 * each, block)

    np.asarray(b.mapped(body)(X))


@scenario(GROUP, "one of 8 sums two shapes in another order", "an error that shows where each waits", MISMATCH)
def different_orders(b: Any) -> None:
    def first_small(block: Any) -> Any:
        small = b.lax.psum(block, "x")
        return small + b.lax.psum(np.ones(5) * small[0], "x")[:1] + 0 * block

    def first_big(block: Any) -> Any:
        big = b.lax.psum(np.ones(5) * block[0], "x")
        return big[:1] + b.lax.psum(block * big[0], "x") + 0 * block

    found = np.asarray(b.mapped(lambda block: b.choose(3, first_big, first_small, block))(X))
    raise WrongValueError(f"no error; {found.tolist()}")


@scenario(GROUP, "one of 8 calls pmax, the rest psum", "an error that shows where each waits", MISMATCH)
def pmax_beside_psum(b: Any) -> None:
    def body(block: Any) -> Any:
        return b.choose(3, lambda each: b.lax.pmax(each, "x"), lambda each: b.lax.psum(each, "x"), block)

    found = np.asarray(b.mapped(body)(X))
    raise WrongValueError(f"no error; {found.tolist()}")


@scenario(GROUP, "each participant runs another mapped function", "its value, or a clear error", r"ok|RuntimeError: .*")
def nested(b: Any) -> None:
    inner = b.mapped(lambda block: b.lax.psum(block, "x"))

    def run(block: Any) -> Any:
        same(inner(X), np.full(8, 28.0))
        return block

    same(b.mapped(lambda block: b.lax.psum(b.python(run, block), "x"))(X), np.full(8, 28.0))


@scenario(
    GROUP,
    "Ctrl-C, not caught, while one participant sleeps and 7 wait",
    "the process ends within 5 s",
    r"ended by SIGINT",
    interrupt=True,
    timeout_s=20,
)
def uncaught_interrupt(b: Any) -> None:
    np.asarray(b.mapped(lambda block: b.lax.psum(b.python(asleep, block), "x"), **in_threads(b))(X))


def in_threads(b: Any) -> dict[str, Any]:
    """Participants that sleep need threads; those of JAX are threads."""
    return {"executor": "threads"} if b.name == "ours" else {}


@scenario(GROUP, "Ctrl-C, caught, amid collectives", "KeyboardInterrupt within 1 s; the next call works")
def caught_interrupt(b: Any) -> None:
    def body(block: Any) -> Any:
        return b.times(lambda _: 3, lambda each: b.lax.psum(each, "x") + 0 * each, block)

    mapped = b.mapped(body)
    same(mapped(X), np.full(8, 28.0 * 64))
    when = []
    signal.signal(signal.SIGALRM, lambda *_: when.append(time.monotonic()) or signal.raise_signal(signal.SIGINT))
    for _ in range(5):
        begin = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            while time.monotonic() < begin + 30:
                np.asarray(mapped(X))
        except KeyboardInterrupt:
            waited = time.monotonic() - when[-1]
            if waited > 1:
                raise WrongValueError(f"KeyboardInterrupt came after {waited:.1f} s") from None
        else:
            raise WrongValueError("no KeyboardInterrupt in 30 s")


@scenario(
    GROUP, "an axis name that no mesh has", "an error that names it", r"(NameError|ValueError|KeyError): .*nowhere.*"
)
def unknown_axis(b: Any) -> None:
    np.asarray(b.mapped(lambda block: b.lax.psum(block, "nowhere"))(X))


@scenario(
    GROUP,
    "an axis name outside of any mapped function",
    "an error that names it",
    r"(NameError|ValueError|KeyError): .*nowhere.*",
)
def unbound_axis(b: Any) -> None:
    b.lax.psum(X, "nowhere")


@scenario(GROUP, "8 threads run mapped functions while another collects garbage, 3 s", "each value is right")
def programs_in_threads(b: Any) -> None:
    import gc

    mapped = b.mapped(lambda block: b.lax.psum(block, "x"))
    same(mapped(X), np.full(8, 28.0))
    end = time.monotonic() + 3
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            while time.monotonic() < end:
                same(mapped(X + number), np.full(8, 28.0 + 8 * number))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for each in threads:
        each.start()
    while any(each.is_alive() for each in threads):
        gc.collect()
        time.sleep(0.01)  # lets the programs run between collections
    if failures:
        raise failures[0]
