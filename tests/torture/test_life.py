# SPDX-License-Identifier: Apache-2.0
"""Fork with work in flight, what is the process's own, no room for threads, foreign libraries."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import tour
from polling import wait_until


def fork_amid(kind):
    """A child that is forked amid a copy has its value, or says that it has not; then it works, and so does its end."""
    import warnings

    import artifex_devices as ad
    from artifex_devices import P

    warnings.simplefilter("ignore", DeprecationWarning)  # fork with threads, from Python 3.12 on
    big = np.arange(1 << 22, dtype=np.float32).reshape(2048, 2048)
    x = ad.device_put(big, tour.over(P("x")))
    for _ in range(3):
        coming = ad.device_put(x, tour.over(P(None, "x"))) if kind == "reshard" else ad.copy_to_host_async(x)
        child = os.fork()
        if child == 0:
            status = 1
            with contextlib.suppress(BaseException):
                try:
                    if kind == "reshard":
                        tour.equal(coming, big)
                    else:
                        tour.equal(coming.result(), big)
                except RuntimeError as error:
                    assert "forked" in str(error), error
                tour.equal(ad.device_put(big + 1, tour.over(P("x"))), big + 1)
                tour.equal(x, big)
                tour.cooperative()
                tour.threads()
                status = 7
            os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        tour.equal(coming if kind == "reshard" else coming.result(), big)


@pytest.mark.parametrize("kind", ["reshard", "copy"])
def test_a_fork_amid_a_copy(own_process, kind):
    own_process(fork_amid, kind)


def fork_in_a_handler():
    """A signal handler forks amid a copy: in the child the call ends, with its value or in words; then it works."""
    import warnings

    import artifex_devices as ad
    from artifex_devices import P

    warnings.simplefilter("ignore", DeprecationWarning)  # fork with threads, from Python 3.12 on
    big = np.arange(1 << 25, dtype=np.float32).reshape(4096, 8192)  # the copy is long enough to look for signals
    children = []

    def fork(*_):
        children.append(os.fork())
        if children[-1] == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(60)

    for _ in range(4):
        signal.signal(signal.SIGALRM, fork)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        status = 1
        try:
            try:
                copied = ad.device_put(big, tour.over(P("x")))
                back = np.asarray(ad.device_put(copied, tour.over(P(None, "x"))))
                assert np.array_equal(back, big)
            except RuntimeError as error:
                assert children[-1] == 0, error
                assert "forked" in str(error), error
            assert wait_until(lambda: children)
            if children[-1] == 0:
                tour.equal(ad.device_put(big[:64], tour.over(P("x"))), big[:64])
                status = 7
        finally:
            if children and children[-1] == 0:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(children.pop(), 0)[1]) == 7


def test_a_fork_in_a_signal_handler_amid_a_copy(own_process):
    own_process(fork_in_a_handler)


def state():
    """What belongs to the process and not to a library."""
    import locale
    import resource

    own = [getattr(np, name)() for name in ("geterr", "geterrcall")]
    mask = os.umask(0)
    os.umask(mask)
    limits = [resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")]
    handlers = [signal.getsignal(each) for each in sorted(signal.valid_signals())]
    with open("/proc/self/status") as file:
        kernel = [line for line in file if line.startswith(("SigBlk", "SigIgn", "SigCgt", "Umask"))]
    return {
        "handlers": handlers,
        "kernel": kernel,
        "locale": locale.setlocale(locale.LC_ALL),
        "affinity": os.sched_getaffinity(0),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "umask": mask,
        "limits": limits,
        "errors of NumPy": own,
        "subnormals": float(np.float32(1e-45)) * 1.0 == float(np.float32(1e-45)) > 0,
        "rounding": [float(np.float64(1) / 3), float(np.float64(-1) / 3)],
        "switch interval": sys.getswitchinterval(),
        "recursion": sys.getrecursionlimit(),
        "excepthooks": [sys.excepthook, threading.excepthook, sys.unraisablehook],
    }


def polite():
    """All work, in the main thread and in another, before and after the end of the library's threads."""
    before = state()
    tour.whole()
    other = threading.Thread(target=tour.whole)
    other.start()
    other.join()
    import artifex_devices as ad

    ad.shutdown()
    tour.whole()
    after = state()
    changed = {name: (before[name], after[name]) for name in before if after[name] != before[name]}
    assert not changed, changed


def test_what_is_the_processs_own_is_left_alone(own_process):
    assert own_process(polite) == []


def read_once():
    import artifex_devices as ad

    assert ad.device_count() == 8
    os.environ["JAX_NUM_CPU_DEVICES"] = "3"
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=nonsense"
    assert ad.device_count() == 8
    ad.clear_caches()
    ad.shutdown()
    assert ad.device_count() == 8
    tour.place()


def test_the_environment_is_read_once(own_process):
    own_process(read_once)


def no_room_for_threads():
    """So little address space is left that no thread can have its stack: work is done here, or refused in words."""
    import resource

    import artifex_devices as ad
    from artifex_devices import P, lax

    small = np.arange(64, dtype=np.float32)
    tour.equal(ad.device_put(small, tour.over(P("x"))), small)
    value = np.arange(1 << 18, dtype=np.float32).reshape(512, 512)  # 1 MiB: would go over the worker pool
    mapped = ad.shard_map(lambda b: lax.psum(b, "x"), tour.over(P("x")).mesh, P("x"), P(), executor="threads")
    resource.setrlimit(resource.RLIMIT_STACK, (256 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (96 << 20), before[1]))
    for attempt in (
        lambda: tour.equal(ad.device_put(value, tour.over(P("x"))), value),
        lambda: tour.equal(ad.device_put(ad.device_put(value, tour.over(P("x"))), tour.over(P(None, "x"))), value),
        lambda: mapped(np.arange(8)),
        lambda: tour.equal(ad.copy_to_host_async(ad.device_put(value, tour.over(P(None, "x")))).result(), value),
    ):
        try:
            attempt()
        except (RuntimeError, MemoryError) as error:
            assert "thread" in str(error) or "RESOURCE_EXHAUSTED" in str(error), error
    tour.equal(ad.device_put(small, tour.over(P("x"))), small)
    resource.setrlimit(resource.RLIMIT_AS, before)
    tour.whole()


@pytest.mark.skipif("SANITIZED_CORE" in os.environ, reason="the sanitizer's malloc needs address space for each size")
def test_no_room_for_threads_is_an_error_in_words_or_none(own_process):
    own_process(no_room_for_threads)


def thousand_prefetchers():
    import gc

    import artifex_devices as ad
    from artifex_devices.prefetch import prefetch_to_device

    def source():
        while True:
            yield np.zeros((8, 8))

    def open_and_leave(i):
        batches = prefetch_to_device(source(), buffer_size=1 + i % 3)
        for _ in range(i % 3):
            next(batches)
        if i % 2:
            assert batches.close(timeout_s=60)

    before = threading.active_count()
    for i in range(1000):
        open_and_leave(i)
    assert wait_until(lambda: threading.active_count() <= before, 60)
    gc.collect()
    assert ad.live_arrays() == []


def test_a_thousand_prefetchers_come_and_go(own_process):
    own_process(thousand_prefetchers)


def look_around():
    import artifex_devices as ad
    from artifex_devices import doctor

    ad.devices()
    doctor.examine(measure=False)


def test_nothing_is_loaded_from_the_working_directory(own_process, tmp_path):
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        pytest.skip("no C++ compiler to build libraries with")
    source = tmp_path / "trap.cpp"
    source.write_text(
        '#include <cstdio>\n__attribute__((constructor)) static void trap() { std::fopen("loaded", "w"); }\n'
    )
    names = ["libnvidia-ml.so.1", "libcuda.so.1", "libhwloc.so.15", "libmpi.so.40", "libmpi.so.12", "libnuma.so.1"]
    subprocess.run([compiler, "-shared", "-fPIC", str(source), "-o", str(tmp_path / names[0])], check=True)
    for name in names[1:]:
        shutil.copy(tmp_path / names[0], tmp_path / name)
    own_process(look_around, folder=tmp_path)
    assert not (tmp_path / "loaded").exists()
