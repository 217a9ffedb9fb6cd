# SPDX-License-Identifier: Apache-2.0
"""What starts jobs of several processes, and what became of them."""

import importlib.util
import os
import pickle
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

import pytest
from polling import wait_until

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
DROPPED = ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES", "PYTHONUNBUFFERED")  # the last one tears lines of processes apart


def find_mpiexec():
    """mpiexec of the MPI that mpi4py uses: beside this Python first. Skips the tests where there is none."""
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("there is no mpi4py in this environment (pip install 'artifex_devices[mpi]')")
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        pytest.skip("there is no mpiexec, beside this Python or on the PATH")
    return found


def package_file():
    """The file of artifex_devices that this Python imports: of an installed wheel, or of a checkout if editable."""
    return importlib.util.find_spec("artifex_devices").origin


class Outcome:
    """What became of one process."""

    def __init__(self, folder, number):
        try:
            self.state, self.value, self.trace = pickle.loads((folder / f"outcome.{number}").read_bytes())
        except FileNotFoundError:
            self.state, self.value, self.trace = "ended without an outcome", None, ""
        self.stack = stack_of(folder, number)


def wait_for_outcomes(folder, *numbers):
    """Called in a body: waits, outside of this library, until these processes have ended theirs."""
    wait_until(lambda: all((Path(folder) / f"outcome.{number}").exists() for number in numbers), 40)


class SimulatedOutcome:
    """What became of one simulated process; see Outcome."""

    stack = ""

    def __init__(self, value, is_unfinished):
        self.state, self.value, self.trace = "returned", value, ""
        if is_unfinished:
            self.state = "ended without an outcome"
        elif isinstance(value, BaseException):
            self.state, self.value = "raised", (type(value).__name__, str(value))
            self.trace = "".join(traceback.format_exception(value))


def transport():
    """The transport of the calling process."""
    from artifex_devices import _core
    from artifex_devices.distributed import transport as transports

    return transports.of_client(_core.internal.current_client(), "test")


def end_without_notice():
    """Called in a body: ends its process as a crash does."""
    from artifex_devices.distributed.simulated import membership
    from artifex_devices.testing import kill

    if membership.current.get() is None:
        os.kill(os.getpid(), signal.SIGKILL)
    found = transport()
    found._scheduler.strike(found.process_index, kill())


def stack_of(folder, number):
    """Where the threads of a process stood when its time was over; "" where it was in time."""
    file = folder / f"stack.{number}"
    return file.read_text() if file.exists() else ""


class Job:
    """A job that has ended.

    Attributes:
        outcomes: Of each process.
        output: Standard output and error of all processes and of the launcher.
        status: Exit status of the launcher.
        seconds: How long it ran.
        timed_out: Whether it had to be ended.
    """

    def __init__(self, folder, count, output, status, seconds, timed_out):
        self.outcomes = [Outcome(folder, number) for number in range(count)]
        self.output, self.status, self.seconds, self.timed_out = output, status, seconds, timed_out

    @classmethod
    def simulated(cls, body, arguments, count, devices, seed, platform):
        """Runs the body in simulated processes."""
        from artifex_devices.testing import run_processes

        job = cls.__new__(cls)
        begin = time.monotonic()
        done = run_processes(body, count, devices, seed, args=arguments, return_exceptions=True, platform=platform)
        job.outcomes = [SimulatedOutcome(value, number in done.unfinished) for number, value in enumerate(done.results)]
        job.status = int(any(outcome.state != "returned" for outcome in job.outcomes))
        job.output, job.seconds, job.timed_out = "\n".join(map(str, done.events)), time.monotonic() - begin, False
        return job

    @property
    def values(self):
        """What the bodies have returned; fails the test unless all of them did, and the job ended well."""
        if self.status != 0 or any(outcome.state != "returned" for outcome in self.outcomes):
            pytest.fail(str(self))
        return [outcome.value for outcome in self.outcomes]

    @property
    def errors(self):
        """What the bodies have raised, as (name of the class, text) or None; fails the test if the job hung."""
        if self.timed_out:
            pytest.fail(str(self))
        return [outcome.value if outcome.state == "raised" else None for outcome in self.outcomes]

    def __str__(self):
        parts = [
            f"the job of {len(self.outcomes)} processes ended with status {self.status} after {self.seconds:.1f} s"
        ]
        if self.timed_out:
            parts[0] += ", killed because it hung"
        for number, outcome in enumerate(self.outcomes):
            parts += [f"--- process {number}: {outcome.state}", outcome.trace, outcome.stack]
        return "\n".join([*(part for part in parts if part), "--- output", self.output])


def environment_of(devices, more):
    """Variables of a job: ours, less what would change the number of devices, and what lets root start Open MPI."""
    kept = {key: value for key, value in os.environ.items() if key not in DROPPED}
    kept["OMPI_ALLOW_RUN_AS_ROOT"] = kept["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    kept["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"
    kept["PRTE_MCA_hwloc_default_binding_policy"] = "none"
    if devices is not None:
        kept["JAX_NUM_CPU_DEVICES"] = str(devices)
    return {**kept, **more}
