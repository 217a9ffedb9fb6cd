# SPDX-License-Identifier: Apache-2.0
"""Each kind of work with the n-th call of the runtime for pages or threads refused, for n = 1, 2, ...

Each time: the work's value, or MemoryError, or RuntimeError about threads; then nothing lives and nothing is charged
that was not before, the same work gives its value, and no object is lost. Only the runtime's own calls are refused
(short_of.cpp): those of Python and NumPy never are.
"""

import ctypes
import gc
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tour
from polling import wait_until

SOURCE = Path(__file__).resolve().parent / "short_of.cpp"
CALLS = {"pages": 0, "threads": 1}
MOST_CALLS = 25  # that are refused of one kind of work in one way; of more every k-th is

ROUNDS = {"pages": 2, "threads": 4}  # the last two are compared; caches fill in those before
MOST_NEW_OBJECTS = 10  # from one round to the next; found are -2 to 2

# (what is refused, kinds of work that ask for it), a process each
WORK = [
    ("pages", ["place", "reshard", "copy_to_host"]),
    ("threads", ["reshard", "donate", "copy_to_host", "wait"]),
]


@pytest.fixture(scope="session")
def short_of(tmp_path_factory):
    """The library to preload."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no C++ compiler to build the library that refuses calls with")
    library = tmp_path_factory.mktemp("short_of") / "libshort_of.so"
    subprocess.run(
        [compiler, "-std=c++17", "-O1", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl", "-pthread"], check=True
    )
    return library


class ShortOf:
    """The preloaded library, set to watch the runtime."""

    def __init__(self):
        import artifex_devices  # noqa: F401  loads the runtime

        self.library = ctypes.CDLL(os.environ["LD_PRELOAD"])
        self.library.short_of_disarm.restype = ctypes.c_long
        with open("/proc/self/maps") as maps:
            lines = [line.split() for line in maps if line.rstrip().endswith("/libartifex_devices.so")]
        code = [line[0].split("-") for line in lines if "x" in line[1]]
        begin, end = min(int(each[0], 16) for each in code), max(int(each[1], 16) for each in code)
        self.library.short_of_watch(ctypes.c_size_t(begin), ctypes.c_size_t(end))

    def calls_of(self, call, n, later, work):
        """Runs it with call n refused. Returns how many calls there were, and the error."""
        error = None
        self.library.short_of_arm(CALLS[call], ctypes.c_long(n), later)
        try:
            work()
        except BaseException as caught:  # which ones are right is for the caller to say
            error = caught
        calls = self.library.short_of_disarm()
        if error is not None:
            error.__traceback__ = None
        return calls, error


def is_right(error, call):
    """Whether the library may raise this."""
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, RuntimeError) and ("thread" in str(error) or (call == "pages" and "memory" in str(error)))


def in_use():
    """What lives, and what each device is charged."""
    import artifex_devices as ad

    return len(ad.live_arrays()), [each.memory_stats()["bytes_in_use"] for each in ad.devices()]


def comes(true):
    """Whether the function gives True in time: threads of prefetchers that were dropped end in their own time."""
    return wait_until(lambda: true() or (gc.collect(), true())[1], 5)


def comes_to(before):
    """Whether the same is in use."""
    return comes(lambda: in_use() == before)


def python_objects():
    """How many blocks of memory Python's objects take.

    Python's cache of attributes of types is emptied first. It holds up to 4,096 strings: NumPy, pickle and pybind11
    look attributes up by new strings, and each of them may take another place, so that it fills ever more slowly.
    """
    getattr(sys, "_clear_internal_caches", sys._clear_type_cache)()
    gc.collect()
    return sys.getallocatedblocks()


def refused(call, *kinds):
    """Each of these kinds of work with each of its calls refused."""
    import artifex_devices as ad
    from artifex_devices import _core

    # Blocks of 1 MiB and more are mapped one by one, and not kept for reuse here.
    size = 1 << (21 if call == "pages" else 12)
    tour.BIG = np.arange(size, dtype=np.float32).reshape(32, size // 32)
    ad.config.update("cache_bytes", 0)
    ad.config.update("parallel_copy_bytes", 1024)
    ad.config.update("async_copy_bytes", 1024)
    ad.config.update("collective_timeout_s", 20)
    short = ShortOf()

    def refuse(n, later, work):
        _core.internal.shutdown()  # so that the workers are made again
        return short.calls_of(call, n, later, work)

    for kind in kinds:
        work = tour.KINDS[kind]
        for _ in range(3):
            work()
        before = (0, [0] * 8)
        assert comes_to(before), (kind, in_use())
        most, error = refuse(0, False, work)
        assert error is None, (kind, error)
        assert most > 0, kind
        step = max(1, most // MOST_CALLS)
        objects = []
        for _ in range(ROUNDS[call]):
            seen = 0
            for later, n in itertools.product((False, True), range(1, most + 1, step)):
                calls, error = refuse(n, later, work)
                case = f"{kind}: {call} {n} of {calls}{' and later' if later else ''}: {error!r}"
                assert error is None or is_right(error, call), case
                seen += error is not None
                error = None
                assert comes_to(before), (case, before, in_use())
                work()
            objects.append(python_objects())
        most_objects = objects[-2] + MOST_NEW_OBJECTS
        assert objects[-1] <= most_objects or comes(lambda most=most_objects: python_objects() <= most), (kind, objects)
        print(kind, call, most, seen, flush=True)


@pytest.mark.parametrize(("call", "kinds"), WORK, ids=lambda value: value if isinstance(value, str) else value[0])
def test_work_that_is_refused_what_it_asks_for(own_process, short_of, call, kinds):
    lines = own_process(refused, call, *kinds, environment={"LD_PRELOAD": str(short_of)})
    assert len(lines) == len(kinds)
