# SPDX-License-Identifier: Apache-2.0
"""What a signal handler raises reaches the caller as it is, whatever the caller waits in."""

import signal

import numpy as np
import pytest
import tour


def unpack(x):
    from artifex_devices.xla_client import Layout

    return Layout((1, 0)).unpack(x, x.shape, x.dtype)


READ = {
    "asarray": np.asarray,
    "array": np.array,
    "array of two": lambda x: np.array([x, x]),
    "memoryview": memoryview,
    "bytes": bytes,
    "frombuffer": lambda x: np.frombuffer(x, np.float32),
    "unpack": unpack,
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
