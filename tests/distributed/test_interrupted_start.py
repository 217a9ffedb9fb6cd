# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while initialize() waits for a process that does not come: it ends at once, and all but a job can be had."""

import os
import signal
import sys
import threading
import time

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import distributed
from launching import wait_for_outcomes
from polling import wait_until

pytestmark = pytest.mark.real_processes


def interrupt_when_it_waits(function):
    """From a thread: SIGINT as soon as the first thread is in this function of the package, and waits in it."""
    main = threading.main_thread().ident

    def waits():
        frame = sys._current_frames()[main]
        names = set()
        while frame is not None:
            names.add(frame.f_code.co_name)
            frame = frame.f_back
        return {function, "wait_for_all"} <= names

    def watch():
        if wait_until(waits, 40):
            os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()


def stay_away(until, folder):
    """Takes part in so much of the beginning and waits until the others have ended."""
    if until != "MPI's start":
        import mpi4py

        mpi4py.rc.initialize = mpi4py.rc.finalize = False
        from mpi4py import MPI

        MPI.Init_thread(MPI.THREAD_MULTIPLE)
        if until == "introductions":
            MPI.COMM_WORLD.Ibarrier().Wait()
            MPI.COMM_WORLD.Dup()
    before = time.monotonic()
    wait_for_outcomes(folder, 0)
    return time.monotonic() - before < 39  # else nobody has ended


def interrupted(function):
    interrupt_when_it_waits(function)
    with pytest.raises(KeyboardInterrupt):
        distributed.initialize()
    with pytest.raises(RuntimeError, match="an earlier call has failed or was interrupted"):
        distributed.initialize()
    mesh = ad.sharding.Mesh(np.array(ad.devices()), ("x",))
    total = ad.shard_map(lambda row: ad.lax.psum(row, "x"), mesh=mesh, in_specs=ad.P("x"), out_specs=ad.P())(
        np.arange(4.0)
    )
    return np.asarray(total).tolist(), len(ad.devices()), distributed.is_initialized()


def at(until, function, folder):
    number = next(os.environ[key] for key in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK") if key in os.environ)
    return stay_away(until, folder) if number == "1" else interrupted(function)


@pytest.mark.parametrize(
    ("until", "function"), [("MPI's start", "_begin"), ("a barrier", "__init__"), ("introductions", "exchange")]
)
def test_ctrl_c_ends_the_wait_for_the_others(processes, tmp_path, until, function):
    job = processes(2, at, until, function, str(tmp_path / "job0"), initialize=False)
    assert job.outcomes[0].value == ([2.0, 4.0], 2, False), job.output
    assert job.outcomes[1].value is True, job.output


def late(folder):
    number = next(os.environ[key] for key in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK") if key in os.environ)
    if number == "1":
        return stay_away("MPI's start", folder)
    with pytest.raises(
        RuntimeError, match=r"not all processes of the job have come in time \(initialization_timeout\)"
    ):
        distributed.initialize(initialization_timeout=0.5)
    return np.asarray(ad.device_put(np.arange(3))).tolist()


def test_the_deadline_holds_in_mpis_own_start(processes, tmp_path):
    job = processes(2, late, str(tmp_path / "job0"), initialize=False)
    assert [each.value for each in job.outcomes] == [[0, 1, 2], True], job.output
