# SPDX-License-Identifier: Apache-2.0
"""Participants that raise, leave early, disagree, nest or sleep, in any mixture: a value or an error, always."""

import contextlib
import gc
import sys
import threading
import time

import numpy as np
import pytest

EXECUTORS = ["cooperative", "threads"]


class OwnError(Exception):
    pass


def ring(executor, body, count=8):
    """[body(0), ..., body(count - 1)] by a mapped program over an axis x; host values only."""
    import artifex_devices as ad
    from artifex_devices import P

    mesh = ad.Mesh(np.array(ad.devices()[:count]), ("x",))
    results = [None] * count

    def run(block):
        i = int(block[0])
        results[i] = body(i)
        return block

    ad.shard_map(run, mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False, executor=executor)(np.arange(count))
    return results


def mixtures(executor):
    """300 programs, each with faults drawn from a seed; what is drawn says what must come of it."""
    from artifex_devices import lax
    from artifex_devices.errors import CollectiveError

    outcomes = {"value": 0, "own": 0, "disagree": 0}
    for seed in range(300):
        random = np.random.default_rng(seed)
        steps = int(random.integers(1, 5))
        fault = random.choice(["none", "none", "raise", "leave", "other operation", "other shape", "one more", "nest"])
        who, when = int(random.integers(8)), int(random.integers(steps))

        def body(i, seed=seed, steps=steps, fault=fault, who=who, when=when):
            total = 0
            for step in range(steps):
                if i == who and step == when:
                    if fault == "raise":
                        raise OwnError(seed)
                    if fault == "leave":
                        return total
                    if fault == "other operation":
                        lax.pmax(np.ones(2), "x")
                    if fault == "other shape":
                        lax.psum(np.ones(3), "x")
                    if fault == "one more":
                        lax.psum(np.ones(2), "x")
                    if fault == "nest":
                        assert ring(executor, lambda k: int(lax.psum(np.array(k), "x")), 4) == [6] * 4
                total += int(lax.psum(np.full(2, i), "x")[0])
            return total

        try:
            got = ring(executor, body)
        except OwnError as error:
            assert (fault, error.args) == ("raise", (seed,))
            outcomes["own"] += 1
        except CollectiveError as error:
            assert fault in ("leave", "other operation", "other shape", "one more"), (fault, error)
            assert "cpu:" in str(error), error
            outcomes["disagree"] += 1
        else:
            assert fault in ("none", "nest"), (fault, who, when, steps)
            assert got == [28 * steps] * 8
            outcomes["value"] += 1
        assert ring(executor, lambda i: int(lax.psum(np.array(i), "x"))) == [28] * 8
    assert min(outcomes.values()) > 20, outcomes


@pytest.mark.parametrize("executor", EXECUTORS)
def test_any_mixture_of_faults_ends_and_the_next_call_works(own_process, executor):
    own_process(mixtures, executor)


def sleeper():
    """One body sleeps for ever, another raises: the caller hears of it long before any deadline of 1000 s."""
    import artifex_devices as ad
    from artifex_devices import lax

    ad.config.update("collective_timeout_s", 1000.0)
    gate = threading.Event()

    def body(i):
        if i == 2:
            gate.wait()
        if i == 5:
            raise OwnError
        lax.psum(np.ones(1), "x")

    try:
        for _ in range(2):
            with pytest.raises(OwnError):
                ring("threads", body)
            assert ring("threads", lambda i: int(lax.psum(np.array(i), "x"))) == [28] * 8
    finally:
        gate.set()


def test_a_body_that_sleeps_does_not_keep_a_failure_from_the_caller(own_process):
    own_process(sleeper)


def short_lives():
    """Threads that run programs, fail in them and end, while others collect garbage."""
    from artifex_devices import lax

    ring("cooperative", lambda i: lax.psum(np.array(i), "x"))
    sys.setswitchinterval(1e-4)
    gc.collect()
    gc.freeze()  # a collection looks at what is new only, and is quick
    end_s = time.monotonic() + 4
    wrong = []

    def work(number):
        def body(i):
            total = lax.psum(np.array(i), "x")
            if i == number % 8:
                raise OwnError
            return lax.psum(total, "x")

        try:
            with contextlib.suppress(OwnError):
                ring("cooperative", body)
                wrong.append("no error")
            if number % 3 == 0:
                ring("cooperative", lambda i: lax.psum(np.array(i), "x"))
        except BaseException as error:
            wrong.append(error)

    def collect():
        while time.monotonic() < end_s:
            gc.collect()
            time.sleep(0.001)  # lets the programs run between collections

    collectors = [threading.Thread(target=collect) for _ in range(2)]
    for each in collectors:
        each.start()
    number = 0
    while time.monotonic() < end_s:
        threads = [threading.Thread(target=work, args=(number + i,)) for i in range(6)]
        number += 6
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    for each in collectors:
        each.join()
    assert wrong == []
    assert number >= 6


def test_threads_with_programs_come_and_go_while_others_collect_garbage(own_process):
    own_process(short_lives)
