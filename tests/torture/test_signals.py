# SPDX-License-Identifier: Apache-2.0
"""What a signal handler raises reaches the caller as it is, whatever the caller waits in, also in forked children."""

import atexit
import contextlib
import os
import resource
import signal
import threading
import time

import numpy as np
import pytest
import tour

READ = {
    "asarray": np.asarray,
    "array": np.array,
    "array of two": lambda x: np.array([x, x]),
    "memoryview": memoryview,
    "bytes": bytes,
    "frombuffer": lambda x: np.frombuffer(x, np.float32),
    "block_until_ready": lambda x: x.block_until_ready(),
    "str": str,
}
ERRORS = {"exit": lambda: SystemExit(3), "Ctrl-C": KeyboardInterrupt, "time-out": lambda: TimeoutError("too late")}


def unfinished():
    """Returns a function that returns Arrays on one device whose copies have just begun and take 0.1 s or more."""
    import artifex_devices as ad
    from artifex_devices import P

    x = ad.device_put(np.arange(1 << 26, dtype=np.float32).reshape(8192, 8192), tour.over(P(None, "x")))
    return lambda: ad.device_put(x, ad.devices()[0])


def receive(reader, error):
    """The handler raises amid a wait, or after it."""
    copied = unfinished()
    raised = []

    def handler(*_):
        raised.append(ERRORS[error]())
        raise raised[-1]

    READ[reader](copied())  # imports what it needs: importlib drops some exceptions
    signal.signal(signal.SIGALRM, handler)
    for _ in range(3):
        del raised[:]
        x = copied()
        signal.setitimer(signal.ITIMER_REAL, 0.005)
        try:
            READ[reader](x)
            while not raised:
                pass
        except BaseException as received:
            assert received is raised[0], repr(received)
        else:
            raise AssertionError("the exception was lost")
        np.testing.assert_array_equal(np.asarray(x)[:, 0], np.arange(0, 1 << 26, 8192, dtype=np.float32))


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("reader", READ)
def test_the_exception_of_a_signal_handler_reaches_the_caller(own_process, reader, error):
    own_process(receive, reader, error)


def exit_at_sigterm():
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGTERM))
    signal.signal(signal.SIGTERM, lambda *_: exit_with(3))
    copied = unfinished()
    x = copied()
    signal.setitimer(signal.ITIMER_REAL, 0.005)
    while True:
        np.asarray(x)
        x = copied()


def exit_with(code):
    raise SystemExit(code)


def test_sys_exit_in_a_handler_ends_a_loop_of_reads(own_process):
    own_process(exit_at_sigterm, code=3)


def fork_in_a_thread(kind):
    """In the child the forking thread is the main thread."""
    import warnings

    from artifex_devices import cluster, models, planner

    warnings.simplefilter("ignore", DeprecationWarning)  # fork with threads, from Python 3.12 on
    model = models.transformer("llama-2-7b", batch=64, sequence=4096)
    machine = cluster.tpu("v5e", (16, 16))
    tour.place()
    ended = []

    def wait_for_ctrl_c():
        """A search takes 8 s of this thread's time."""
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        begin_s = time.thread_time()
        with contextlib.suppress(KeyboardInterrupt):
            planner.suggest(model, machine, max_axes=3)
        assert time.thread_time() - begin_s < 2

    def work_after_exit():
        atexit._run_exitfuncs()
        tour.whole()

    work = {"Ctrl-C": wait_for_ctrl_c, "exit": work_after_exit}[kind]

    def fork():
        child = os.fork()
        if child == 0:
            status = 1
            with contextlib.suppress(BaseException):
                resource.setrlimit(resource.RLIMIT_CPU, (60, 60))  # ends a child that works forever
                work()
                tour.place()
                status = 7
            os._exit(status)
        ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    assert ended == [7]


@pytest.mark.parametrize("kind", ["Ctrl-C", "exit"])
def test_a_child_forked_in_another_thread(own_process, kind):
    own_process(fork_in_a_thread, kind)
