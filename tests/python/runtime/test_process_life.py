# SPDX-License-Identifier: Apache-2.0
"""What the library does to its process: threads, fork, exit, Ctrl-C, limits. Each case is a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from typing import Any

import pytest

PRELUDE = """
import faulthandler, os, signal, sys, threading, time
faulthandler.dump_traceback_later(50, exit=True)
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for jobs in the background
import numpy as np
import artifex_devices as ad
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
    deadline = time.monotonic() + 10
    while (count := native_threads()) > expected and time.monotonic() < deadline:
        time.sleep(0.001)
    return count
"""


def run(
    body: str, *, environment: dict[str, str] | None = None, timeout_s: float = 60
) -> subprocess.CompletedProcess[str]:
    """Runs a script after the prelude with 8 devices."""
    variables = {**os.environ, "JAX_NUM_CPU_DEVICES": "8", **(environment or {})}
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
        assert not artifex_devices._core._base_client_exists()
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


@pytest.mark.parametrize(
    "body",
    [
        "x = sharded(BIG); y = ad.device_put(x, ad.devices()[0])",
        "threading.Thread(target=lambda: [sharded(BIG) for _ in iter(int, 1)], daemon=True).start(); time.sleep(0.2)",
        "def work():\n  while True: np.asarray(sharded(BIG))\n"
        "threading.Thread(target=work, daemon=True).start(); time.sleep(0.2)",
        "it = ad.DevicePlacement().prefetch_to_device(BIG for _ in iter(int, 1)); next(it)",
        "it = ad.DevicePlacement().prefetch_to_device(time.sleep(999) or 1 for _ in range(9));\n"
        "threading.Thread(target=lambda: next(it), daemon=True).start(); time.sleep(0.2)",
    ],
    ids=["reshard", "placing thread", "gathering thread", "prefetch", "sleeping prefetch"],
)
def test_exit_with_work_in_flight_keeps_the_code_and_says_nothing(body: str) -> None:
    done = run(body + "\nprint('ok', flush=True); sys.exit(3)")  # which ends by itself, long before the source does
    assert (done.returncode, done.stdout, done.stderr) == (3, "ok\n", "")


@pytest.mark.parametrize(
    "body",
    [
        "it = ad.DevicePlacement().prefetch_to_device(time.sleep(999) or 1 for _ in range(9)); go(); next(it)",
        "x = np.ones(1 << 26, np.float32); go()\nwhile True: np.asarray(sharded(x))",
        "x = sharded(np.ones(1 << 26, np.float32)); go()\n"
        "while True: ad.device_put(x, ad.devices()[1]).block_until_ready()",
    ],
    ids=["prefetch", "placing", "resharding"],
)
def test_ctrl_c_ends_a_blocking_call(body: str) -> None:
    script = PRELUDE + textwrap.dedent("""
        def go():
            print("go", flush=True)
    """)
    with subprocess.Popen(
        [sys.executable, "-c", script + body],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "JAX_NUM_CPU_DEVICES": "8"},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "go\n"
        time.sleep(0.3)  # mostly inside the call then; before it is as well
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=40)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")


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


@pytest.mark.skipif("SANITIZED_CORE" in os.environ, reason="the address sanitizer keeps freed memory for a while")
def test_a_hundred_thousand_placements_do_not_grow_the_process() -> None:
    done = run(
        """
        faulthandler.dump_traceback_later(100, exit=True)
        def resident():
            return statm(1)
        x = np.ones((8, 16), np.float32)
        for _ in range(1000):
            sharded(x)
        mesh = ad.Mesh(np.array(ad.devices()), ("x",))
        sharding = ad.NamedSharding(mesh, ad.P("x"))
        before = resident()
        for _ in range(100_000):
            ad.device_put(x, sharding)
        for _ in range(300):
            with ad.simulate(8):
                np.asarray(sharded(x))
        grown = resident() - before
        assert grown < 4 << 20, grown
        assert ad.live_arrays() == []
        print("ok")
    """,
        timeout_s=110,
    )
    assert_clean(done)


def test_eight_threads_place_reshard_read_and_delete_the_same_arrays() -> None:
    done = run("""
        errors = []
        arrays = [sharded(BIG[: 1 << 16]) for _ in range(64)]
        expected = BIG[: 1 << 16]
        def work(seed):
            random = np.random.default_rng(seed)
            for _ in range(300):
                x = arrays[random.integers(64)]
                try:
                    kind = random.integers(4)
                    if kind == 0:
                        assert np.array_equal(np.asarray(x), expected)
                    elif kind == 1:
                        y = ad.device_put(x, ad.devices()[random.integers(8)])
                        assert np.array_equal(np.asarray(y), expected)
                    elif kind == 2:
                        arrays[random.integers(64)] = sharded(expected)
                    else:
                        x.delete()
                        arrays[random.integers(64)] = sharded(expected)
                except RuntimeError as error:
                    if "deleted" not in str(error):
                        errors.append(repr(error))
                except BaseException as error:
                    errors.append(repr(error))
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert not errors, errors[:3]
        del arrays
        assert [device.memory_stats()["bytes_in_use"] for device in ad.devices()] == [0] * 8
        print("ok")
    """)
    assert_clean(done)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("JAX_NUM_CPU_DEVICES", "many"),
        ("JAX_NUM_CPU_DEVICES", "0"),
        ("XLA_FLAGS", "--xla_force_host_platform_device_count=x"),
    ],
)
def test_a_malformed_variable_is_an_error_that_names_it(name: str, value: str) -> None:
    environment: dict[str, Any] = {"JAX_NUM_CPU_DEVICES": "", name: value}
    script = "import artifex_devices as ad\ntry: ad.devices()\nexcept ValueError as error: print(error)"
    variables = {key: text for key, text in {**os.environ, **environment}.items() if text}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=variables, check=False)
    assert done.returncode == 0, done.stderr
    assert name in done.stdout
    assert value.split("=")[-1] in done.stdout


def test_variables_and_config_set_the_number_of_devices() -> None:
    def count(script: str, **variables: str) -> str:
        environment = {key: text for key, text in os.environ.items() if key not in ("JAX_NUM_CPU_DEVICES", "XLA_FLAGS")}
        done = subprocess.run(
            [sys.executable, "-c", "import artifex_devices as ad\n" + script + "\nprint(ad.device_count())"],
            capture_output=True,
            text=True,
            env={**environment, **variables},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    flags = "--xla_other=1 --xla_force_host_platform_device_count=3 --xla_force_host_platform_device_count=5"
    assert count("", XLA_FLAGS=flags) == "5"
    assert count("", XLA_FLAGS=flags, JAX_NUM_CPU_DEVICES="7") == "7"
    assert count("ad.config.update('jax_num_cpu_devices', 9)", JAX_NUM_CPU_DEVICES="7") == "9"
    late = "ad.devices()\ntry: ad.config.update('jax_num_cpu_devices', 2)\nexcept RuntimeError: print('late', end=' ')"
    assert count(late, JAX_NUM_CPU_DEVICES="4") == "late 4"
