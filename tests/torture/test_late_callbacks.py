# SPDX-License-Identifier: Apache-2.0
"""Callbacks at interpreter exit that run after the library's own use the library, and wait for threads that use it.

`logging.shutdown` and callbacks that a program registers before it imports the library are such callbacks. The module
imports the library in functions only, so that they can register first.
"""

import atexit
import logging
import os
import sys
import threading
import time

import numpy as np
import pytest

BUSY_S = 0.3  # how long a slow task, or the threads before an exit, are at work


def repeat_in_a_daemon_thread(work):
    def repeat():
        while True:
            work()

    threading.Thread(target=repeat, daemon=True).start()


def over_four(value):
    import artifex_devices as ad

    mesh = ad.Mesh(np.array(ad.devices()[:4]), ("x",))
    return ad.device_put(value, ad.NamedSharding(mesh, ad.P("x")))


def log_arrays():
    """`logging.shutdown` takes the lock under which a thread formats an Array, which waits for a copy."""
    import artifex_devices as ad

    x = over_four(np.ones((4, 1 << 19), np.float32))
    columns = ad.NamedSharding(x.sharding.mesh, ad.P(None, "x"))
    for name in "abc":
        log = logging.getLogger(name)
        log.propagate = False
        log.addHandler(logging.FileHandler(os.devnull, mode="w"))

        def log_one(log=log):
            y = ad.device_put(x, columns)
            log.warning("%s", y)
            y.block_until_ready()  # a closed handler does not format it

        repeat_in_a_daemon_thread(log_one)


def choose():
    """np.where runs on workers that take the GIL."""
    import artifex_devices as ad

    rows = ad.NamedSharding(ad.Mesh(np.array(ad.devices()), ("x",)), ad.P("x"))
    c, x = (ad.device_put(np.ones((8, 1 << 21), dtype), rows) for dtype in (bool, np.float32))
    repeat_in_a_daemon_thread(lambda: np.where(c, x, x))


def last_on_the_pool():
    """Workers that take the GIL are in a task until exit has begun, and then use the library."""
    from artifex_devices import _core

    begun, exiting = threading.Semaphore(0), threading.Event()
    value = np.ones((4, 1 << 18))

    def task():
        begun.release()
        exiting.wait()
        time.sleep(BUSY_S)
        over_four(value)

    tasks = [task] * 2
    repeat_in_a_daemon_thread(lambda: _core.internal.run_parallel(tasks))
    begun.acquire()
    begun.acquire()
    atexit.register(exiting.set)  # called before the callback of the library


REPEATED = {each.__name__: each for each in [log_arrays, choose, last_on_the_pool]}
ROUNDS = 8


def leave_amid(kind):
    REPEATED[kind]()
    time.sleep(BUSY_S)


@pytest.mark.parametrize("kind", REPEATED)
def test_exit_ends_while_daemon_threads(own_process, kind):
    """Some exits would hang, not all."""
    for _ in range(ROUNDS):
        assert own_process(leave_amid, kind) == []


def join_a_thread():
    stop = threading.Event()

    def work():
        x = over_four(np.ones((4, 1 << 19), np.float32))
        while not stop.is_set():
            np.asarray(x + x)

    thread = threading.Thread(target=work, daemon=True)

    def callback():
        stop.set()
        thread.join()

    return callback, thread.start


def join_a_thread_that_runs_programs():
    """Its participants are threads that it starts."""
    stop, done = threading.Event(), threading.Semaphore(0)
    thread = threading.Thread(target=lambda: run_programs(stop, done), daemon=True)

    def callback():
        while done.acquire(blocking=False):
            pass
        for _ in range(3):
            done.acquire()
        stop.set()
        thread.join()

    return callback, thread.start


def run_programs(stop, done):
    import artifex_devices as ad
    from artifex_devices import P, lax

    x = over_four(np.arange(4))
    body = ad.shard_map(lambda block: lax.psum(block, "x"), x.sharding.mesh, P("x"), P(), executor="threads")
    while not stop.is_set():
        assert np.asarray(body(x)).item() == 6
        done.release()


def save():
    import tempfile

    folder = tempfile.TemporaryDirectory()

    def callback():
        from artifex_devices import checkpoint

        path = os.path.join(folder.name, "1")
        assert checkpoint.save_async(path, {"x": np.arange(1 << 20)}).done()  # nothing would wait for it later
        np.testing.assert_array_equal(checkpoint.restore(path)["x"], np.arange(1 << 20))
        folder.cleanup()

    return callback, lambda: None


def read_ahead():
    def callback():
        from artifex_devices.prefetch import prefetch_to_device

        batches = prefetch_to_device(np.full((256, 256), i) for i in range(4))
        assert [int(batch[0, 0]) for batch in batches] == [0, 1, 2, 3]

    return callback, lambda: None


def use_the_pool():
    def callback():
        value = np.arange(4 << 19, dtype=np.float32)
        x = over_four(value)
        np.testing.assert_array_equal(np.asarray(np.where(x > 9, x, -x)), np.where(value > 9, value, -value))

    return callback, lambda: None


LATE = {
    each.__name__: each for each in [join_a_thread, join_a_thread_that_runs_programs, save, read_ahead, use_the_pool]
}
START_THREADS = {"save", "read_ahead", "join_a_thread_that_runs_programs"}


def call_back(kind):
    assert "artifex_devices" not in sys.modules
    callback, begin = LATE[kind]()

    def report():
        callback()
        print("done")

    atexit.register(report)
    import artifex_devices as ad

    ad.devices()
    begin()
    time.sleep(BUSY_S)


@pytest.mark.parametrize("kind", LATE)
def test_a_callback_that_was_registered_before_the_library_can(own_process, kind):
    if kind in START_THREADS and (3, 12) <= sys.version_info < (3, 12, 3):
        pytest.skip("CPython 3.12.0 to 3.12.2 starts no threads at exit")
    assert own_process(call_back, kind) == ["done"]
