# SPDX-License-Identifier: Apache-2.0
"""Borrowed memory whose last user is a copy: who releases its Python owner, and that nobody waits for the GIL.

Each case is a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
from many_threads import IS_FREE_THREADED

PRELUDE = """
import faulthandler, os, signal, sys, threading, time
faulthandler.dump_traceback_later(50, exit=True)
import numpy as np
import artifex_devices as ad
from artifex_devices.dlpack import from_dlpack
from polling import wait_until

released = []  # the names of the threads on which owners ended

class Owner(np.ndarray):
    watched = says = False  # views of an owner are none

    def __del__(self):
        if self.watched:
            released.append(threading.current_thread().name)
            if self.says:
                print("released on", released[-1], flush=True)

def owned(size=1 << 25, kind=Owner, says=False):
    owner = np.zeros(size, np.float32).view(kind)
    owner.watched, owner.says = True, says
    return owner

def shown(owner, how):
    if how == "dlpack":
        return from_dlpack(owner)
    return ad.device_put(owner, ad.devices()[0], may_alias=True)

def cut(array):
    # Begins to copy the 128 MiB, in many pieces, and returns.
    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    return ad.device_put(array, ad.NamedSharding(mesh, ad.P("x")))

def copying(how="may_alias", says=False):
    # A copy whose batch alone still holds the owner.
    source = shown(owned(says=says), how)
    coming = cut(source)
    source.delete()
    return coming

def until(condition, what):
    assert wait_until(condition), what
"""


def run(body: str) -> None:
    """Runs a script after the prelude with 8 devices; it must end well, print "ok" and nothing else."""
    variables = {**os.environ, "JAX_NUM_CPU_DEVICES": "8", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", PRELUDE + textwrap.dedent(body)],
        capture_output=True,
        text=True,
        timeout=100,
        env=variables,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")


@pytest.mark.parametrize("way", ["put", "get", "host copy", "copy"])
def test_a_small_read_of_a_copy_under_way_does_not_hold_up_the_worker(way: str) -> None:
    run(f"""
        with ad.simulate(4096):
            source = shown(owned(), "may_alias")
            coming = cut(source)
            source.delete()
            shard = coming.addressable_data(4095)
            assert shard.nbytes == 32 << 10
            if "{way}" == "put":
                with ad.simulate(2):
                    assert np.asarray(ad.device_put(shard, ad.devices()[1])).sum() == 0
            elif "{way}" == "get":
                assert np.asarray(shard).sum() == 0
            elif "{way}" == "host copy":
                assert ad.copy_to_host_async(shard).result().sum() == 0
            else:
                assert np.asarray(ad.device_put(shard, may_alias=False)).sum() == 0
            until(lambda: released, "the owner was not released")
        print("ok")
    """)


@pytest.mark.parametrize("how", ["may_alias", "dlpack"])
def test_the_interpreter_releases_what_a_worker_has_dropped_without_a_call_of_the_library(how: str) -> None:
    run(f"""
        coming = copying("{how}")
        until(lambda: released, "the owner was not released")
        assert released == ["MainThread"], released
        print("ok")
    """)


def test_the_next_call_of_any_thread_releases_what_a_worker_has_dropped() -> None:
    run("""
        def work():
            coming = copying()
            until(coming.is_ready, "the copy did not end")
            until(lambda: ad.live_arrays() and released, "the owner was not released")

        # The main thread runs no Python code meanwhile.
        thread = threading.Thread(target=work, name="caller")
        thread.start()
        thread.join()
        assert released == ["caller"], released
        print("ok")
    """)


def test_finalizers_may_use_the_library_and_raise() -> None:
    run("""
        class Using(Owner):
            def __del__(self):
                if self.watched:
                    released.append(float(np.asarray(cut(np.ones(64, np.float32))).sum()))
                    raise ValueError("in a finalizer")

        raised = []
        sys.unraisablehook = lambda unraisable: raised.append(str(unraisable.exc_value))
        coming = [cut(shown(owned(1 << 22, Using), "may_alias")) for _ in range(5)]
        until(lambda: len(raised) == 5, "not all owners were released")
        assert released == [64.0] * 5 and raised == ["in a finalizer"] * 5, (released, raised)
        print("ok")
    """)


def test_an_owner_that_a_worker_drops_at_exit_is_released() -> None:
    script = """
        coming = copying(says=True)
    """
    variables = {**os.environ, "JAX_NUM_CPU_DEVICES": "8", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=100,
        env=variables,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "released on MainThread\n", "")


@pytest.mark.skipif(IS_FREE_THREADED, reason="free-threaded CPython runs no pending calls in a child of such a thread")
def test_a_forked_child_releases_what_was_dropped_before_and_what_its_own_workers_drop() -> None:
    run("""
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # fork with threads, Python 3.12
        faulthandler.cancel_dump_traceback_later()  # its thread would be missing in the child
        status = []

        def work():
            coming = copying()
            until(coming.is_ready, "the copy did not end")
            time.sleep(0.2)  # the worker drops its owner meanwhile; the main thread runs no Python code
            before = list(released)
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                code = 1
                try:
                    assert released == (before or ["caller"]), released
                    copying()
                    until(lambda: len(released) == 2, "the child released nothing")
                    code = 7
                finally:
                    os._exit(code)
            status.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            until(lambda: ad.live_arrays() and released, "the owner was not released")

        thread = threading.Thread(target=work, name="caller")
        thread.start()
        thread.join()
        assert status == [7] and released == ["caller"], (status, released)
        print("ok")
    """)


def test_small_copies_that_workers_make_are_waited_for_without_the_gil() -> None:
    """The sanitized extension ends the process where a thread waits with the GIL (docs/decisions/0019 and 0021)."""
    run("""
        from artifex_devices import P, lax

        ad.config.update("parallel_copy_bytes", 1)
        ad.config.update("async_copy_bytes", 1)
        mesh = ad.Mesh(np.array(ad.devices()), ("x",))
        rows, columns = (ad.NamedSharding(mesh, spec) for spec in (P("x"), P(None, "x")))
        value = np.arange(1024, dtype=np.float32).reshape(32, 32)
        whole = np.asarray
        for _ in range(20):
            x = ad.device_put(value, rows)
            y = ad.device_put(x, columns)
            assert np.array_equal(whole(ad.device_put(x, columns)), value)
            assert np.array_equal(ad.copy_to_host_async(y).result(), value)
            assert np.array_equal(whole(x + y), value + value)
            assert np.array_equal(whole(ad.make_array_from_callback((32, 32), columns, lambda i: value[i])), value)
            assert np.array_equal(memoryview(ad.device_put(value)), value)
            summed = ad.shard_map(lambda b: lax.psum(b, "x"), mesh, P("x"), P())(value)
            assert np.array_equal(whole(summed), value.reshape(8, 4, 32).sum(0))
            with ad.simulate(2):
                assert np.array_equal(whole(ad.device_put(y, ad.devices()[1])), value)
        print("ok")
    """)
