# SPDX-License-Identifier: Apache-2.0
"""Exit while daemon threads work: the exit code is right and nothing is printed, whatever they do."""

import sys
import threading
import time

import numpy as np
import pytest
import tour

COPIES = [tour.place, tour.reshard, tour.copy_to_host, tour.wait, tour.donate, tour.abandon_a_reshard]


def small():
    import artifex_devices as ad
    from artifex_devices import P

    x = ad.device_put(np.arange(8.0), tour.over(P("x")))
    for _ in range(20):
        tour.equal(x + x, np.arange(8.0) * 2)


class Name:
    """A mesh axis and an index whose special methods are Python code."""

    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return sum(range(self.number))

    def __eq__(self, other):
        return isinstance(other, Name) and sum([self.number]) == other.number

    def __index__(self):
        return sum([self.number])


def leaves():
    from artifex_devices import tree

    added = tree.map(lambda x: x + 1, [[1, (2,)], {"a": 3}], is_leaf=lambda x: sum(range(9)) == 0)
    assert added == [[2, (3,)], {"a": 4}]


def blocks():
    import artifex_devices as ad

    value = np.arange(8.0)
    tour.equal(ad.make_array_from_callback((8,), tour.over(ad.P("x")), lambda index: value[index].copy()), value)


def names():
    import artifex_devices as ad

    assert ad.P(Name(8), (Name(9), Name(10))) == ad.P(Name(8), (Name(9), Name(10)))
    assert tour.over(ad.P("x")).shard_shape((Name(8), Name(16))) == (1, 16)


def texts():
    import artifex_devices as ad

    assert str(ad.device_put(np.arange(8.0), tour.over(ad.P("x")))) == str(np.arange(8.0))


WORK = {
    "called by the library": [leaves, blocks, names, texts] * 2,
    "copies": COPIES,
    "cooperative": [tour.cooperative] * 6,
    "programs": [tour.cooperative, tour.threads, tour.mapped] * 2,
    "element-wise": [small, tour.elementwise, tour.reduce] * 2,
    "all": [*COPIES[:2], tour.cooperative, tour.threads, small, tour.prefetch, tour.worlds, tour.pickles],
}


def leave(kind, code, seconds):
    """Daemon threads go on when the main thread leaves; the GIL changes hands all the time."""
    tour.whole()  # what it imports is there before the process ends
    sys.setswitchinterval(1e-5)
    for work in WORK[kind]:

        def go_on(work=work):
            while True:
                work()

        threading.Thread(target=go_on, daemon=True).start()
    time.sleep(float(seconds))  # a moment in which the threads are at work
    if kind == "copies":
        tour.abandon_a_reshard()
        tour.abandon_a_copy_to_host()
        tour.abandon_a_prefetch()
    sys.exit(int(code))


@pytest.mark.parametrize("kind", WORK)
def test_exit_while_daemon_threads_work_keeps_the_code_and_says_nothing(own_process, kind):
    """CPython up to 3.13 ends threads that come too late by unwinding their stacks, C++ frames of others too."""
    for number, code in enumerate([0, 7, 7]):
        assert own_process(leave, kind, code, 0.1 + 0.1 * number, code=code) == []
