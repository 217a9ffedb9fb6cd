# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C in every blocking call: caught, then all goes on; uncaught, the process dies of it."""

import atexit
import contextlib
import signal
import sys
import threading

import numpy as np
import pytest
import tour


def interrupted_by_a_timer():
    """An alarm is a Ctrl-C. Returns the list of those that Python drops, as they come inside of a __del__ or of a
    callback of a weak reference.
    """
    dropped = []
    sys.unraisablehook = lambda what: dropped.append(what.exc_type)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    return dropped


def repeat(work, condition):
    """Works while a condition holds: CPython 3.13 lets Ctrl-C at the end of a `while` loop escape a `try` around it."""
    while condition():
        work()


def caught(kind):
    """Ctrl-C at 5 moments of each kind of work; then all of it is done once more."""
    work = tour.KINDS[kind]
    work()
    random = np.random.default_rng(3)
    dropped = interrupted_by_a_timer()
    interrupted = 0
    for _ in range(5):
        seen = len(dropped)
        try:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.001, 0.05))
            repeat(work, lambda seen=seen: len(dropped) == seen)
        except KeyboardInterrupt:
            interrupted += 1
        work()
    assert interrupted + dropped.count(KeyboardInterrupt) == 5
    assert set(dropped) <= {KeyboardInterrupt}
    tour.whole()


@pytest.mark.parametrize("kind", tour.KINDS)
def test_ctrl_c_ends_it_and_all_goes_on(own_process, kind):
    own_process(caught, kind)


def worlds_at_any_moment():
    """2000 times, anywhere in the opening and closing of worlds: none is left open, and none is closed twice."""
    import artifex_devices as ad

    dropped = interrupted_by_a_timer()
    random = np.random.default_rng(5)

    @ad.simulate(5)
    def decorated():
        assert ad.device_count() == 5

    def worlds():
        with ad.simulate(3), ad.simulate(2):
            pass
        decorated()
        with ad.simulate(4, all_threads=True):
            pass

    interrupted = 0
    for _ in range(2000):
        seen = len(dropped)
        try:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 4e-4))
            repeat(worlds, lambda seen=seen: len(dropped) == seen)
        except KeyboardInterrupt:
            interrupted += 1
        assert ad.device_count() == 8, interrupted
    assert interrupted + dropped.count(KeyboardInterrupt) == 2000
    assert interrupted > 1000


def test_ctrl_c_leaves_no_world_open(own_process):
    own_process(worlds_at_any_moment)


def never(_):
    threading.Event().wait()


def wait_for_a_batch():
    from artifex_devices.prefetch import prefetch_to_device

    next(prefetch_to_device(map(never, [1])))


def wait_for_a_participant(executor):
    """One body never comes; in one thread nobody else is to come then."""
    import artifex_devices as ad
    from artifex_devices import P, lax

    def body(block):
        if block[0] == 3:
            never(block)
        return lax.psum(block, "x")

    ad.config.update("collective_timeout_s", None)
    ad.shard_map(body, tour.over(P("x")).mesh, P("x"), P(), executor=executor)(np.arange(8))


def search():
    from artifex_devices import cluster, models, planner

    llama = models.transformer("llama-2-7b", batch=64, sequence=4096)
    planner.suggest(llama, cluster.tpu("v5e", (16, 16)), max_axes=3)


def plan_steps():
    from artifex_devices import cluster, models, planner
    from artifex_devices.sharding import Mesh

    model = models.transformer("llama-2-7b", batch=256, sequence=4096)
    mesh = Mesh(np.array(cluster.tpu("v5e", (16, 16)).devices()), ("data",))
    planner.plan_step(model, mesh, {"batch": "data"})


def measure_rates():
    from artifex_devices.roofline import measure_roofline

    measure_roofline(seconds=300, isa="baseline", cache=False)


def calibrate():
    from artifex_devices import calibration

    calibration.calibrate(refresh=True, rounds=100, cache=False, progress=False)


def measure_batches():
    import artifex_devices as ad

    ad.measure_batch_size(
        lambda batch: ad.device_put(batch), lambda n: np.ones((n, 4)), probe_seconds=9, progress=False
    )


def big_worlds():
    import artifex_devices as ad

    with ad.simulate(20_000):
        ad.device_put(1.0, ad.devices()[-1])


LONG = {
    "prefetch": wait_for_a_batch,
    "threads": lambda: wait_for_a_participant("threads"),
    "cooperative": lambda: wait_for_a_participant("cooperative"),
    "suggest": search,
    "plan_step": plan_steps,
    "measure_roofline": measure_rates,
    "calibrate": calibrate,
    "measure_batch_size": measure_batches,
    "big worlds": big_worlds,
}
LOOPS = ["place", "reshard", "copy_to_host", "get_a_tree", "wait_for_a_tree", "from_callback", "elementwise", "mapped"]


def comes_again(what):
    """Repeats a Ctrl-C that Python drops."""
    if what.exc_type is KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, 0.01)


def comes_no_more():
    """At exit a timer would end the process before SIGINT does."""
    sys.unraisablehook = lambda what: None
    signal.setitimer(signal.ITIMER_REAL, 0)


def dies(kind):
    """Works for ever, if nobody ends it."""
    work = LONG.get(kind) or tour.KINDS[kind]
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    sys.unraisablehook = comes_again
    atexit.register(comes_no_more)
    if kind in LOOPS:
        work()
    print("go", flush=True)
    while True:
        work()


@pytest.mark.parametrize("kind", [*LONG, *LOOPS])
def test_an_uncaught_ctrl_c_ends_the_process(own_process, kind):
    own_process(dies, kind, code=-signal.SIGINT, interrupt=True, stderr="KeyboardInterrupt")


def caught_in_long_work(kind):
    from artifex_devices import calibration, planner  # noqa: F401  Ctrl-C amid an import is Python's business

    signal.signal(signal.SIGALRM, signal.default_int_handler)
    sys.unraisablehook = comes_again  # nothing else ends some of this work
    for seconds in (0.05, 0.4):
        with contextlib.suppress(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, seconds)
            while True:
                LONG[kind]()
    tour.whole()


def caught_in_a_reshard_of_4096_shards():
    """From rows to columns, 16.7 million pairs of shards; less than 1 s of this thread's time after the signal."""
    import time

    import artifex_devices as ad

    dropped = interrupted_by_a_timer()
    with ad.simulate(4096):
        mesh = ad.make_mesh((4096,), ("x",))
        rows, columns = (ad.NamedSharding(mesh, spec, uneven="last-short") for spec in (ad.P("x"), ad.P(None, "x")))
        value = np.arange(4095 * 4096, dtype=np.float32).reshape(4095, 4096)
        x = ad.device_put(value, rows)

        def reshard():
            nonlocal begin
            begin = time.thread_time()
            ad.device_put(x, columns).block_until_ready()

        for seconds in (0.01, 0.05, 0.4):
            seen = len(dropped)
            begin = time.thread_time()
            with contextlib.suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, seconds)
                repeat(reshard, lambda seen=seen: len(dropped) == seen)
            assert time.thread_time() - begin < 1
        np.testing.assert_array_equal(np.asarray(ad.device_put(x, columns)), value)


def test_ctrl_c_ends_a_reshard_of_many_shards(own_process):
    own_process(caught_in_a_reshard_of_4096_shards)


@pytest.mark.parametrize("kind", LONG)
def test_ctrl_c_ends_long_work_and_all_goes_on(own_process, kind):
    own_process(caught_in_long_work, kind)
