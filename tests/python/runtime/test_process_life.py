# SPDX-License-Identifier: Apache-2.0
"""What the library does to its process: threads, fork, exit, Ctrl-C, limits. Each case is a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import faulthandler, os, signal, sys, threading, time
faulthandler.dump_traceback_later(50, exit=True)
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for jobs in the background
import numpy as np
import artifex_devices as ad
from polling import wait_until
BIG = np.arange(1 << 22, dtype=np.float32)  # 16 MiB: goes over the worker pool

def sharded(x):
    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    return ad.device_put(x, ad.NamedSharding(mesh, ad.P("x")))

def statm(field):
    with open("/proc/self/statm") as file:
        return int(file.read().split()[field]) * 4096

def native_threads():
    return len(os.listdir("/proc/self/task"))

def native_threads_once_gone(expected):
    # A joined thread stays listed until the kernel has taken it down, a moment after the join returned.
    wait_until(lambda: native_threads() <= expected, 10)
    return native_threads()
"""


def run(
    body: str, *, environment: dict[str, str] | None = None, timeout_s: float = 60
) -> subprocess.CompletedProcess[str]:
    """Runs a script after the prelude with 8 devices."""
    variables = {
        **os.environ,
        "JAX_NUM_CPU_DEVICES": "8",
        "PYTHONPATH": os.pathsep.join(sys.path),
        **(environment or {}),
    }
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", PRELUDE + textwrap.dedent(body)],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env=variables,
        check=False,
    )


def assert_clean(done: subprocess.CompletedProcess[str], stdout: str = "ok\n") -> None:
    """Exit code 0, the output as expected, nothing on stderr."""
    assert (done.returncode, done.stdout, done.stderr) == (0, stdout, "")


def test_no_thread_before_the_first_big_copy_and_none_after_shutdown() -> None:
    done = run("""
        before = native_threads()
        ad.device_put(np.ones(16))
        assert native_threads() == before, "a small placement started threads"
        x = sharded(BIG)
        busy = native_threads()
        ad.shutdown()
        after = native_threads_once_gone(before)
        assert after == before, (before, busy, after)
        assert busy > before or len(os.sched_getaffinity(0)) == 1, "the pool was never used"
        assert np.array_equal(np.asarray(sharded(BIG)), BIG), "the pool comes back after shutdown"
        print("ok")
    """)
    assert_clean(done)


def test_importing_reads_no_topology_writes_nothing_and_changes_no_environment() -> None:
    script = textwrap.dedent("""
        import os, signal
        before = dict(os.environ); handler = signal.getsignal(signal.SIGINT); mask = os.sched_getaffinity(0)
        import artifex_devices
        assert dict(os.environ) == before and signal.getsignal(signal.SIGINT) is handler
        assert os.sched_getaffinity(0) == mask and len(os.listdir("/proc/self/task")) == 1
        assert not artifex_devices._core.internal.base_client_exists()
        artifex_devices.device_put(1.0)
        assert os.sched_getaffinity(0) == mask and dict(os.environ) == before
    """)
    # BLAS makes threads of its own when NumPy is imported.
    variables = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=variables, check=False)
    assert_clean(done, stdout="")


@pytest.mark.parametrize("used_before", [False, True], ids=["unused", "used"])
@pytest.mark.parametrize("child", ["exits", "places"])
def test_a_forked_child_can_exit_or_use_the_library(used_before: bool, child: str) -> None:
    done = run(f"""
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # fork with threads, Python 3.12
        if {used_before}:
            kept = sharded(BIG)
        faulthandler.cancel_dump_traceback_later()  # its thread would be missing in the child
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            if {child == "places"}:
                assert np.array_equal(np.asarray(sharded(BIG + 1)), BIG + 1)
                if {used_before}:
                    assert np.array_equal(np.asarray(kept), BIG)
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        assert np.array_equal(np.asarray(sharded(BIG)), BIG)
        print("ok")
    """)
    assert_clean(done)


def test_fork_while_another_thread_places_leaves_both_sides_working() -> None:
    done = run("""
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        faulthandler.cancel_dump_traceback_later()
        stop = threading.Event()
        def work():
            while not stop.is_set():
                np.asarray(sharded(BIG))
        thread = threading.Thread(target=work)
        thread.start()
        for _ in range(10):
            pid = os.fork()
            if pid == 0:
                signal.alarm(20)
                good = np.array_equal(np.asarray(sharded(BIG)), BIG)
                os._exit(0 if good else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        stop.set()
        thread.join()
        print("ok")
    """)
    assert_clean(done)


def _place_in_child(n: int) -> float:
    import artifex_devices as ad
    import numpy as np

    with ad.simulate(2):
        mesh = ad.Mesh(np.array(ad.devices()), ("x",))
        x = ad.device_put(np.full(1 << 21, float(n)), ad.NamedSharding(mesh, ad.P("x")))
        return float(np.asarray(x).sum())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_multiprocessing_children_place_data(method: str) -> None:
    expected = _place_in_child(3)
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.apply_async(_place_in_child, (3,)).get(timeout=60) == expected


def test_no_room_in_the_address_space_is_an_error_and_the_next_call_works() -> None:
    done = run("""
        import resource
        ad.device_put(np.ones(4))
        used = statm(0)
        x = np.broadcast_to(np.float32(1), (1 << 30,))
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 29), -1))
        try:
            ad.device_put(x)
        except ad.errors.ResourceExhaustedError as error:
            assert isinstance(error, MemoryError) and isinstance(error, RuntimeError)
            assert "RESOURCE_EXHAUSTED" in str(error), error
        else:
            raise AssertionError("4 GiB fitted into 512 MiB")
        assert ad.device_put(np.ones(4)).shape == (4,)
        assert ad.devices()[0].memory_stats()["bytes_in_use"] == 0
        print("ok")
    """)
    assert_clean(done)
